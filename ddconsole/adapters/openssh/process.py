"""One command through the master: a client process of ssh whose pipes are the command's."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from ddconsole.adapters.openssh.master import Master, quiet_client
from ddconsole.adapters.shell.process import CHUNK, OneReader, PipedInput
from ddconsole.adapters.ssh.errors import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FAILED = 255
"""ssh's own failure; a command may end with it too."""

REFUSED = b"Session open refused by peer"


class MuxProcess(PipedInput):
    """The `Piped` of a client. `on_end` is called once when it is let go."""

    def __init__(self, process: asyncio.subprocess.Process, master: Master) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise TypeError("all three of the process's ends have to be pipes")
        super().__init__(process.stdin)
        self._process = process
        self._master = master
        self._stdout, self._stderr = process.stdout, process.stderr
        self._first, self._errors = b"", b""
        self.on_end: Callable[[], None] = lambda: None
        self._let_go = False
        self.read_stdout = OneReader(self._read_stdout)
        self.read_stderr = OneReader(self._read_stderr)

    @classmethod
    async def start(cls, master: Master, command: str, argv: Sequence[str], host: str) -> MuxProcess:
        """Start `command`, which is a whole shell line, through the master.

        Raises:
            DdconsoleError: this machine cannot start a process.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *quiet_client(master.path), b"--", b"ddconsole", command.encode("utf-8", "surrogateescape"),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            raise explain(exc, host) from exc
        return cls(process, master)

    async def begin(self) -> bool:
        """Wait until the host has run something, which prints at least its marker; False when nothing was run."""
        self._first = await self._stdout.read(CHUNK)
        if not self._first:
            self._errors = await self._stderr.read()
            await self._process.wait()
        return bool(self._first)

    @property
    def was_refused(self) -> bool:
        """The host opened no session for it. The command was never started."""
        return not self._first and REFUSED in self._errors

    @property
    def said(self) -> str:
        """What ssh said when nothing was run."""
        return self._errors.decode("utf-8", "replace")

    async def _read_stdout(self, size: int) -> bytes:
        first, self._first = self._first, b""
        return first or await self._stdout.read(size)

    async def _read_stderr(self, size: int) -> bytes:
        errors, self._errors = self._errors, b""
        return errors or await self._stderr.read(size)

    async def wait(self) -> int | None:
        """The status, or None when the connection was lost under it."""
        status = await self._process.wait()
        if status == FAILED and not await self._master.survives():
            return None
        return status if status >= 0 else 128 - status

    def abandon(self) -> None:
        """Kill the client, if it has not ended: the master closes its session, and the guard ends its command."""
        if self._let_go:
            return
        self._let_go = True
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
        self._stdin.close()
        self.on_end()
