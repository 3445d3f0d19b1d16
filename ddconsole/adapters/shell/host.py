"""`run` and `stream` as every host does them; a host has only to say how a process is started."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ddconsole.adapters.shell import Mode, new_marker
from ddconsole.adapters.shell.process import GuardedStream, Piped, put_down, run_guarded, timed_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import ByteStream, Completed


class GuardedHost(ABC):
    """The half of the `Host` port that does not depend on how the host is reached."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._streams: set[GuardedStream] = set()
        self._reaping: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """As the profile has it."""
        return self._name

    @abstractmethod
    async def _start(self, argv: Sequence[str], marker: str, mode: Mode) -> Piped:
        """Start `argv` under the guard."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        """Run a short command to its end; waiting for a free channel counts as its time.

        Raises:
            UnreachableError: the connection is lost.
            HostError: it could not be started, or did not end within `timeout` seconds (it has been ended).
        """
        marker, mode = new_marker(), Mode.FEED if stdin else Mode.RUN
        piped: Piped | None = None
        try:
            async with asyncio.timeout(timeout):
                piped = await self._start(argv, marker, mode)
                completed = await run_guarded(piped, argv, host=self._name, marker=marker, mode=mode, stdin=stdin)
        except TimeoutError:
            if piped is not None:
                await put_down(piped)
            raise timed_out(self._name, argv, timeout) from None
        except BaseException:  # cancelled, or it went wrong: nothing may be left behind in either case
            if piped is not None:
                self._reap(piped)
            raise
        piped.abandon()
        return completed

    async def stream(self, argv: Sequence[str]) -> ByteStream:
        """Start a long-running command and read its standard output. It ends with the stream or the connection.

        Raises:
            UnreachableError: the connection is lost.
            HostError: the host gives no channel for it.
        """
        marker = new_marker()
        piped = await self._start(argv, marker, Mode.STREAM)
        stream = GuardedStream(piped, argv, host=self._name, marker=marker)
        self._streams = {known for known in self._streams if not known.closed} | {stream}
        return stream

    def _reap(self, piped: Piped) -> None:
        """End a command without waiting for it."""
        piped.end_input()
        task = asyncio.create_task(put_down(piped), name="end an abandoned command")
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)

    async def _end_all(self) -> None:
        """End whatever still runs through this host object."""
        await asyncio.gather(*(stream.close() for stream in self._streams), *self._reaping)
        self._streams = set()
