"""ProxyCommand: a command of the user's own whose input and output are the way to the host.

asyncssh would run it without a shell, which breaks `nc %h %p 2>/dev/null`, and would mix what it says on standard error
into the connection. It gets a socket of its own here, and its last words are the evidence when it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

from ddconsole.adapters.ssh.errors import printable
from ddconsole.core.errors import UnreachableError

KEPT_BYTES = 2_000
"""So much of its last words is kept."""

LAST_WORDS_S = 1.0
"""Seconds for it to end after the connection through it has failed; one that still runs did not fail."""


class ProxyProcess:
    """A running ProxyCommand. `socket` is our end of the way."""

    def __init__(self, command: str, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        self.command = command
        self.socket = end
        self._process = process
        self._said = b""
        self._listening = asyncio.create_task(self._listen(), name="stderr of ProxyCommand")

    @classmethod
    async def start(cls, command: str) -> ProxyProcess:
        """Start it as ssh does: by the user's shell, which replaces itself by the command."""
        ours, theirs = socket.socketpair()
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            process = await asyncio.create_subprocess_exec(
                shell, "-c", f"exec {command}",
                stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=asyncio.subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(command, process, ours)

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._said = (self._said + data)[-KEPT_BYTES:]

    async def failure(self, host: str) -> UnreachableError | None:
        """Its failure, if it has ended or said something; None while it runs in silence: then the host is to blame."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._process.wait()
                await asyncio.wait({self._listening})
        status = self._process.returncode
        if status in (None, 0) and not self._said:
            return None
        said = [printable(line) for line in self._said.decode("utf-8", "replace").splitlines() if line.strip()]
        ended = "it still runs" if status is None else f"it ended with status {status}"
        return UnreachableError(
            f"the ProxyCommand of {host} failed",
            evidence=(printable(self.command), ended, *said[-5:]),
            advice=f"Run it by hand: it has to print the host's ssh greeting. `ssh -G {host}` shows it.",
        )

    async def close(self) -> None:
        """End it and its children."""
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        self._listening.cancel()
        await asyncio.wait({self._listening})
