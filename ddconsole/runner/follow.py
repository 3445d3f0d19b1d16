"""The engine's log, followed by offset over every reconnection: no byte lost, none twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from ddconsole.core.errors import UnreachableError
from ddconsole.core.events import LogLines
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from ddconsole.core.ports import AttemptKey, BootTracker, Clock, Host, Launched, Launcher
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session

SHOW_EVERY_S = 0.1
"""Log lines reach the feed in batches this far apart at the closest, so that a flood costs ten events a second."""


class LogFollower:
    """Feeds one launch's log to its tracker, and its lines to the feed, until it is closed."""

    def __init__(
        self,
        session: Session,
        launcher: Launcher,
        launched: Launched,
        tracker: BootTracker,
        journal: Journal,
        clock: Clock,
    ) -> None:
        self._session = session
        self._launcher = launcher
        self._launched = launched
        self._journal = journal
        self._clock = clock
        self._lines: list[str] = []
        self._shown_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self.tracker = tracker
        self.offset = 0
        self.recent: deque[str] = deque(maxlen=20)
        self.key: AttemptKey | None = None
        self.last_byte_at = clock.monotonic()

    def start(self) -> None:
        """Begin to follow, from the log's first byte."""
        self._task = asyncio.create_task(self._follow(), name="follow-log")

    async def close(self) -> None:
        """Stop following; the lines seen are shown."""
        task, self._task = self._task, None
        await end_task(task)
        self._show()

    async def drain(self, limit_s: float = 2.0) -> None:
        """Wait until nothing more comes for a moment: after a death, the last lines hold the cause."""
        deadline = self._clock.monotonic() + limit_s
        while self._clock.monotonic() < min(deadline, self.last_byte_at + 0.3) or self.offset == 0:
            if self._clock.monotonic() >= deadline:
                break
            await self._clock.sleep(0.05)
        self._show()

    async def _follow(self) -> None:
        while True:
            await self._session.on_host(self._read)
            await self._clock.sleep(SHOW_EVERY_S)

    async def _read(self, host: Host) -> None:
        stream = await self._launcher.follow(host, self._launched, self.offset)
        try:
            async for chunk in stream.chunks():
                self._take(chunk)
        finally:
            with contextlib.suppress(UnreachableError):
                await stream.close()

    def _take(self, chunk: bytes) -> None:
        self.offset += len(chunk)
        self.last_byte_at = self._clock.monotonic()
        lines = self.tracker.feed(chunk, self.last_byte_at)
        self._lines += lines
        self.recent.extend(lines)
        if self.last_byte_at - self._shown_at >= SHOW_EVERY_S:
            self._show()

    def flush(self) -> None:
        """Show lines that a quiet log left in the batch."""
        if self._lines and self._clock.monotonic() - self._shown_at >= SHOW_EVERY_S:
            self._show()

    def _show(self) -> None:
        lines, self._lines = self._lines, []
        self._shown_at = self._clock.monotonic()
        if lines:
            self._journal.show(LogLines(lines, self.offset), self.key)
