"""The toy engine's schedulers: real child processes that hold nothing, so that stopping them means something.

They are forked before the root has threads or an event loop. Each waits on one pipe whose writing end only the root
has: when the root ends, in whatever way, the pipe ends and so do they (SGLang uses the parent-death signal).
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ddconsole.demo.engine_log import EngineLog

PR_SET_NAME = 15
ARG_START, ARG_END = 45, 46
"""Places of these fields in /proc/PID/stat after the command's name (fields 48 and 49 of proc(5))."""


class Ranks:
    """The schedulers' processes, rank by rank."""

    def __init__(self, pids: list[int], pipe: int) -> None:
        self.pids = pids
        self._pipe = pipe
        self._alive = set(pids)

    @classmethod
    def start(cls, count: int) -> Ranks:
        """Fork `count` schedulers. Call it while the process has one thread."""
        reading, writing = os.pipe()
        gc.freeze()
        pids = []
        for rank in range(count):
            pid = os.fork()
            if pid == 0:
                os.close(writing)
                _be_scheduler(rank, reading)
            pids.append(pid)
        os.close(reading)
        return cls(pids, writing)

    def died(self) -> tuple[int, int] | None:
        """(rank, exit code) of a scheduler that has ended on its own, minus the signal's number if killed; or None."""
        for rank, pid in enumerate(self.pids):
            if pid in self._alive:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    self._alive.discard(pid)
                    return rank, os.waitstatus_to_exitcode(status)
        return None

    def kill(self) -> None:
        """End all of them and collect them."""
        for pid in list(self._alive):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._alive.discard(pid)


def crash(log: EngineLog, ranks: Ranks, message: str) -> NoReturn:
    """End as SGLang does when a scheduler fails: the root kills its tree, itself included (exit 137)."""
    log.main(message)
    ranks.kill()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable: the process has killed itself")


def _be_scheduler(rank: int, reading: int) -> NoReturn:
    """The whole life of a scheduler: wait until the root is gone."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group, they are for the root to act on
            signal.signal(number, signal.SIG_IGN)
        set_title(f"sglang::scheduler_TP{rank}")
        while os.read(reading, 1):
            continue
    finally:
        os._exit(0)


def set_title(title: str) -> None:
    """Show `title` in ps: the thread's name, and the bytes of the command line. Linux only; elsewhere nothing."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode(), 0, 0, 0)
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    if end > start > 0:
        ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)
