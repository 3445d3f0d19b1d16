"""The program's parent in the sandbox: counts what the program started, and says how it ended. Stdlib only.

Limits of the kernel are kept by each process; this one keeps the sums: tasks (processes and threads) and resident
memory of the program with all its descendants, which come to this process when their own parent dies. Needs /proc:
elsewhere only the program's own end is told.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from typing import NamedTuple, NoReturn

TICK_S = 0.05
SCAN_SHARE = 0.1
"""At most this share of the time is spent on looking at a program of few processes."""

FEW = 4

GRACE_S = 0.1
"""What a child may take to end after its parent."""

BEGAN = b"began\n"
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
LINUX = sys.platform.startswith("linux")


class Task(NamedTuple):
    """A live process below this one: its pid, its threads, and resident bytes that are no file's."""

    pid: int
    threads: int
    memory: int


def prctl(option: int, value: int) -> None:
    """prctl(2), where there is one."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def read(path: str) -> bytes:
    """A file of /proc; empty when its process is gone, or is not ours to look at."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def descendants() -> list[Task]:
    """Every live process below this one. Zombies hold nothing and are left out."""
    if not LINUX:
        return []
    fields = {pid: read(f"/proc/{pid}/stat").rpartition(b")")[2].split() for pid in _pids()}
    children: dict[int, list[int]] = {}
    for pid, stat in fields.items():
        if stat:
            children.setdefault(int(stat[1]), []).append(pid)
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        found += [Task(pid, int(fields[pid][17]), _private(pid)) for pid in below if fields[pid][0] not in b"ZX"]
    return found


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _private(pid: int) -> int:
    """Resident bytes less those of files. Pages that forks still share are counted in each of them."""
    pages = read(f"/proc/{pid}/statm").split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 2 else 0


def _proportional(task: Task) -> int:
    """Resident bytes with shared pages split among their holders: dear, so only asked when the cheap sum is over."""
    for line in read(f"/proc/{task.pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return task.memory


class Keeper:
    """Watches one program until its end.

    Args:
        program: its pid.
        whispers: the pipe on which it says what it did not catch.
        report: where the verdict goes, a word and a newline.
        tasks, memory: bounds of all its processes together; memory in bytes.
    """

    def __init__(self, program: int, whispers: int, report: int, *, tasks: int, memory: int) -> None:
        self._program, self._whispers, self._report = program, whispers, report
        self._tasks, self._memory = tasks, memory
        self._status: int | None = None

    def keep(self) -> NoReturn:
        """Until the program has ended or is ended; then this process ends as it did, with nothing left below."""
        woken, poller = _wake_on_child(), select.poll()
        poller.register(woken, select.POLLIN)
        poller.register(self._report, 0)  # its error alone: nobody reads any more
        self._say(BEGAN)
        pause, word = TICK_S, None
        while word is None and not self._ended():
            if self._report in dict(poller.poll(pause * 1000)):
                self._abandon()
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 512)
            began = time.monotonic()
            below = descendants()
            word = self._over(below)
            pause = TICK_S if len(below) > FEW else max(TICK_S, (time.monotonic() - began) / SCAN_SHARE)
        word = word or self._last_word()
        self._say(word.encode() + b"\n")
        self._end_all()
        code = 128 + signal.SIGKILL if self._status is None else os.waitstatus_to_exitcode(self._status)
        os._exit(code if code >= 0 else 128 - code)

    def _say(self, words: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._report, words)

    def _abandon(self) -> NoReturn:
        """The console has gone, or has given this run up before its cage was closed."""
        self._end_all()
        os._exit(1)

    def _ended(self) -> bool:
        """Reap whoever has ended, and say whether the program has."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._program:
                    self._status = ended[1]
        return self._status is not None

    def _over(self, below: list[Task]) -> str | None:
        """The bound that is overstepped."""
        if sum(task.threads for task in below) > self._tasks:
            return "processes"
        if sum(task.memory for task in below) > self._memory and sum(map(_proportional, below)) > self._memory:
            return "memory"
        return None

    def _last_word(self) -> str:
        """The verdict of a program that ended by itself."""
        assert self._status is not None
        below = descendants()
        over = self._over(below)
        code = os.waitstatus_to_exitcode(self._status)
        if over or code == -signal.SIGXCPU:
            return over or "timeout"
        if code < 0:
            return "signalled"
        os.set_blocking(self._whispers, False)
        with contextlib.suppress(BlockingIOError):
            whisper = os.read(self._whispers, 64).decode("ascii", "replace").strip()
            if code and whisper.isalpha():
                return whisper
        if code:
            return "error"
        return "children" if below and self._stay() else "ok"

    def _stay(self) -> bool:
        """Some process is still there after the grace."""
        until = time.monotonic() + GRACE_S
        while self._ended() and descendants():
            if time.monotonic() > until:
                return True
            time.sleep(GRACE_S / 10)
        return False

    def _end_all(self) -> None:
        """The program's group at one stroke, which no fork outruns; then whoever left it."""
        while True:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if LINUX:
                    os.killpg(self._program, signal.SIGKILL)
                elif self._status is None:
                    os.kill(self._program, signal.SIGKILL)
            below = descendants()
            for task in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(task.pid, signal.SIGKILL)
            self._ended()
            if not below:
                return
            time.sleep(0.002)


def _wake_on_child() -> int:
    """A descriptor that can be read when a child has ended."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def fork_program() -> tuple[int, int]:
    """Become the parent of the program. Returns (0, where it whispers) in it, (its pid, where to hear it) here."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    hear, say = os.pipe()
    pid = os.fork()
    os.close(hear if pid == 0 else say)
    prctl(PR_SET_DUMPABLE, int(pid == 0))
    return (0, say) if pid == 0 else (pid, hear)
