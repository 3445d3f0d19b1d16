"""The sandbox on this machine: a model's code runs here, and can neither harm nor outlive it.

It is held by bubblewrap where that works, else by namespaces of our own, else by limits alone; which one is found out
once, by trying. Whatever happens inside, a run ends within its wall time, and all its processes end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from typing import TYPE_CHECKING

from ddconsole.adapters.sandbox.cage import cages, homes, python_folders
from ddconsole.adapters.sandbox.jail import is_below
from ddconsole.core.errors import DdconsoleError
from ddconsole.core.ports import SandboxResult

if TYPE_CHECKING:
    from ddconsole.adapters.sandbox.cage import Cage

OUTPUT_BYTES = 1024 * 1024
"""How much a program may write to its outputs together; more ends it."""

STOP_S = 3.0
"""How long the reaper may take to end what it holds, before the group is killed."""

PROBE_WALL_S = 10.0

TOKEN_NAME = "DDCONSOLE_SANDBOX"
"""Environment variable by which a run's strays are found again."""

HELD = "held"

PROBE = """
import os, socket
found = []
if any(os.path.lexists(path) for path in {homes!r}):
    found.append("the home is visible")
if [name for _, name in socket.if_nameindex() if name != "lo"]:
    found.append("the network is visible")
try:
    open({foreign!r}, "w").close()
    found.append("the system is writable")
except OSError:
    pass
with open("/tmp/probe", "w") as file:
    file.write("x")
print("; ".join(found) or {held!r})
"""
"""What a cage has to stand: nothing of the home, no network, a read-only system, a temporary folder."""


async def open_sandbox(isolation: str | None = None) -> LocalSandbox:
    """The best sandbox that this machine allows, found by trying; takes about a tenth of a second.

    Args:
        isolation: `bubblewrap`, `namespace` or `rlimits` asks for that one alone.

    Raises:
        DdconsoleError: none holds, with what each of them said.
    """
    said = []
    for cage in cages():
        if isolation is None or cage.isolation == isolation:
            sandbox = LocalSandbox(cage)
            problem = await sandbox.problem()
            if problem is None:
                return sandbox
            said.append(f"{cage.isolation}: {problem}")
    raise DdconsoleError(
        f"no sandbox of kind {isolation} holds here" if isolation else "no sandbox holds here",
        evidence=tuple(said),
        advice="Install bubblewrap, or allow user namespaces.",
    )


class LocalSandbox:
    """Runs programs in one kind of cage. Holds nothing between runs; runs may overlap."""

    def __init__(self, cage: Cage) -> None:
        self._cage = cage

    @property
    def isolation(self) -> str:
        """What holds it: `bubblewrap`, `namespace`, `rlimits`."""
        return self._cage.isolation

    async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
        """Run `source` with the isolated interpreter, and end all its children.

        `verdict` is the first of these that is true:

        - output: it wrote more than OUTPUT_BYTES.
        - processes: it had more than PROCESSES of them, threads included, or the failed fork that says so was its end.
        - memory: all its processes together were over `memory_mb`, or one of them was and that was its end.
        - timeout: wall or CPU time.
        - parent: its keeper was killed, or an attempt at another process was refused and that was its end.
        - network, home, files: what it did not catch says that it wanted the network, a file of a home, or more room
          (file size, disk, open files, a read-only folder) than there is.
        - signalled: it was ended by a signal.
        - error: any other exit status but 0, or the cage did not start.
        - children: it ended well and left processes running, which were ended.
        - ok: exit status 0. So is a program that catches any of the above, and goes on.
        """
        began = time.monotonic()
        run = _Run(self._cage, wall_s, memory_mb)
        verdict = await run.to_end(source.encode())
        seconds = time.monotonic() - began
        return SandboxResult(verdict, _text(run.stdout), _text(run.stderr), seconds)

    async def problem(self) -> str | None:
        """Why this cage does not hold here; None when it does. Limits alone have only to start."""
        source = f"print({HELD!r})" if self.isolation == "rlimits" else _probe_source()
        try:
            result = await self.run_python(source, wall_s=PROBE_WALL_S)
        except OSError as error:
            return str(error)
        if result.stdout.strip() == HELD:
            return None
        return (result.stdout.strip() or result.stderr.strip().rpartition("\n")[2] or result.verdict)[:300]


class _Ears(asyncio.SubprocessProtocol):
    """Hears a program's outputs, up to the cap, and its end.

    Attributes:
        ended: set when the program exits or floods.
        exited: set when its exit status is known.
        quiet: set when nobody holds its outputs any more.
    """

    def __init__(self) -> None:
        self.outputs = {1: bytearray(), 2: bytearray()}
        self.flooded = False
        self.ended = asyncio.Event()
        self.exited = asyncio.Event()
        self.quiet = asyncio.Event()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.flooded:
            return
        self.outputs[fd] += data
        if sum(map(len, self.outputs.values())) > OUTPUT_BYTES:
            self.flooded = True
            self.ended.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.quiet.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.ended.set()


class _Run:
    """One program in its cage, from start to the proof of its end."""

    def __init__(self, cage: Cage, wall_s: float, memory_mb: int) -> None:
        self._cage = cage
        self._wall_s = wall_s
        self._memory_mb = memory_mb
        self._token = secrets.token_hex(8)
        self._ears = _Ears()

    @property
    def stdout(self) -> bytearray:
        """What it wrote, up to the cap."""
        return self._ears.outputs[1]

    @property
    def stderr(self) -> bytearray:
        """What it wrote, up to the cap."""
        return self._ears.outputs[2]

    async def to_end(self, source: bytes) -> str:
        """Start, feed, listen, and end it in every case, a cancellation included. Returns the verdict."""
        report, say = os.pipe()
        try:
            try:
                transport = await self._started(say)
            finally:
                os.close(say)
            timed_out = await self._listen(transport, source)
            return self._verdict(_words(report), timed_out)
        finally:
            os.close(report)

    async def _listen(self, transport: asyncio.SubprocessTransport, source: bytes) -> bool:
        """Until it has ended, by itself or not, with all it started; true when its time was over."""
        timed_out = False
        try:
            stdin = transport.get_pipe_transport(0)
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(source)
            stdin.close()
            async with asyncio.timeout(self._wall_s):
                await self._ears.ended.wait()
        except TimeoutError:
            timed_out = True
        finally:
            try:
                await self._end(transport)
            finally:
                transport.close()
        return timed_out

    async def _started(self, report: int) -> asyncio.SubprocessTransport:
        """A start is never broken off in the middle: what was started by then would be nobody's."""
        starting = asyncio.ensure_future(self._start(report))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            transport = await starting
            try:
                await self._end(transport)
            finally:
                transport.close()
            raise

    async def _start(self, report: int) -> asyncio.SubprocessTransport:
        pipe = asyncio.subprocess.PIPE
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", TOKEN_NAME: self._token}
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: self._ears,
            *self._cage.argv(self._wall_s, self._memory_mb, report),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd="/",
            start_new_session=True,
            pass_fds=(report,),
        )
        return transport

    async def _end(self, transport: asyncio.SubprocessTransport) -> None:
        """Nothing of the run is left when this returns."""
        pid = transport.get_pid()
        if transport.get_returncode() is None and self._cage.gentle_stop:
            await self._ask_to_stop(transport)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if self._cage.isolation == "rlimits":
            end_strays(self._token)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._ears.exited.wait()
                await self._ears.quiet.wait()

    async def _ask_to_stop(self, transport: asyncio.SubprocessTransport) -> None:
        """TERM, which lets the reaper end children that left the group."""
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            transport.terminate()
            await asyncio.wait_for(self._ears.exited.wait(), STOP_S)

    def _verdict(self, words: list[str], timed_out: bool) -> str:
        """From what the keeper said: nothing, that it had begun, or that and its verdict."""
        if self._ears.flooded:
            return "output"
        if len(words) > 1:
            return words[1]
        if timed_out:
            return "timeout"
        return "parent" if words else "error"


def _words(report: int) -> list[str]:
    """What stands in the pipe by now; its writers are gone, or were killed."""
    os.set_blocking(report, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(report, 256).decode("ascii", "replace").split()
    return []


def end_strays(token: str) -> None:
    """End processes that left the group of their run, and whose reaper was killed: found by their environment."""
    if not sys.platform.startswith("linux"):
        return
    mark = f"{TOKEN_NAME}={token}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/environ", "rb") as file:
                    marked = mark in file.read().split(b"\0")
                if marked:
                    os.kill(int(name), signal.SIGKILL)


def _probe_source() -> str:
    """The probe for this machine: entries of the home that have to be invisible, and a file that cannot be written."""
    entries = []
    for home in homes():
        with contextlib.suppress(OSError):
            entries += [os.path.join(home, name) for name in sorted(os.listdir(home))]
    private = [path for path in entries if not any(is_below(folder, path) for folder in python_folders())]
    return PROBE.format(homes=private[:50], foreign=os.path.join(python_folders()[0], ".probe"), held=HELD)


def _text(data: bytearray) -> str:
    return bytes(data[:OUTPUT_BYTES]).decode("utf-8", "replace")
