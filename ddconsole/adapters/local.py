"""This machine as the GPU host (`host: local`): the same guard, without a connection in between.

The guard matters here too: when the console is killed, its pipes close, and the commands that it ran end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.adapters.shell import Mode, command_name, guarded_argv
from ddconsole.adapters.shell.host import GuardedHost
from ddconsole.adapters.shell.process import OneReader, Piped, PipedInput
from ddconsole.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.ports import Forward


class LocalConnector:
    """The `Connector` port for this machine."""

    def __init__(self, name: str = "local") -> None:
        self._name = name

    async def connect(self) -> LocalHost:
        """There is nothing that could fail."""
        return LocalHost(self._name)


class LocalHost(GuardedHost):
    """The `Host` port on this machine; commands run in sessions of their own, in the user's home folder."""

    def __init__(self, name: str = "local") -> None:
        super().__init__(name)

    async def _start(self, argv: Sequence[str], marker: str, mode: Mode) -> Piped:
        try:
            return await spawn(guarded_argv(argv, marker, mode))
        except OSError as exc:
            raise HostError(
                f"`{command_name(argv)}` cannot be started",
                evidence=(str(exc),),
                advice="Is this machine out of memory or processes? A very long argument has to go by standard input.",
            ) from exc

    async def forward(self, port: int) -> Forward:
        """The port itself: it is on this machine already."""
        return LocalForward(port)

    async def ping(self) -> float:
        """Seconds for one turn of the event loop: the only way there is."""
        start = time.perf_counter()
        await asyncio.sleep(0)
        return time.perf_counter() - start

    async def close(self) -> None:
        """End our commands. What was started in a session of its own goes on."""
        await self._end_all()


async def spawn(words: Sequence[str], *, env: Mapping[str, str] | None = None, umask: int = -1) -> LocalProcess:
    """Start a guarded command in a session of its own, in the user's home folder. A `umask` of -1 is our own.

    Its words are UTF-8 whatever the locale says, as they are on the other side of an ssh connection.

    Raises:
        OSError: this machine cannot start it.
    """
    process = await asyncio.create_subprocess_exec(
        *(word.encode("utf-8", "surrogateescape") for word in words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path.home(),
        start_new_session=True,
        env=env,
        umask=umask,
    )
    return LocalProcess(process)


class LocalProcess(PipedInput):
    """A guarded command that leads its own session and process group."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise TypeError("all three of the process's ends have to be pipes")
        super().__init__(process.stdin)
        self._process = process
        self.read_stdout = OneReader(process.stdout.read)
        self.read_stderr = OneReader(process.stderr.read)

    async def wait(self) -> int | None:
        """The status as a shell gives it: 128 + the signal that ended it."""
        status = await self._process.wait()
        return status if status >= 0 else 128 - status

    def abandon(self) -> None:
        """Kill what is left of the group, if its leader has not ended by itself, and close the pipe to it."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._stdin.close()


@dataclass(frozen=True, slots=True)
class LocalForward:
    """The `Forward` port where nothing has to be forwarded."""

    local_port: int

    async def close(self) -> None:
        """Nothing to stop."""
