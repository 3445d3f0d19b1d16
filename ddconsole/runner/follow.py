"""The engine's log, followed by offset over every reconnection: no byte lost, none twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.core.events import FindingSeen, LogLines
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ddconsole.core.ports import AttemptKey, BootTracker, ByteStream, Clock, Host, Launched, Launcher
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session

RETRY_S = 1.0
"""Seconds before the host is asked again when the command that follows the log could not run, or had nothing."""

SHOW_EVERY_S = 0.1
"""Log lines reach the feed in batches this far apart at the closest, so that a flood costs ten events a second."""


class LogFollower:
    """Feeds one launch's log to its tracker, its lines to the feed and its warnings to the journal, until closed."""

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
        self.heard: Callable[[Sequence[str]], None] | None = None
        self.last_byte_at = clock.monotonic()
        self._begun_at = self._heard_from = self.last_byte_at
        self._deaf = False
        self._key: AttemptKey | None = None
        self._told = 0

    @property
    def key(self) -> AttemptKey | None:
        """The attempt that the engine works for."""
        return self._key

    @key.setter
    def key(self, key: AttemptKey | None) -> None:
        """Another attempt on the same engine: what the log warned of holds for it too, and is told again."""
        if key != self._key:
            self._key, self._told = key, 0
            self._tell_warnings()

    @property
    def spoke_at(self) -> float:
        """When the engine last said something of itself; the begin before that. Echoes of our probes are no word."""
        return self._begun_at if self.tracker.spoke_at is None else self.tracker.spoke_at

    def silent_s(self) -> float:
        """Seconds without a word in which one would have been heard: a lost connection is no silence of the engine."""
        return 0.0 if self._deaf else self._clock.monotonic() - max(self.spoke_at, self._heard_from)

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
            before = self.offset
            with contextlib.suppress(HostError):  # too busy for one more command: the log is there, so is the offset
                await self._session.on_host(self._read)
            # a stream that ended without a byte: the log was wiped away, or nobody can follow it just now
            await self._clock.sleep(SHOW_EVERY_S if self.offset > before else RETRY_S)

    async def _read(self, host: Host) -> None:
        """Follow from the offset on until the stream ends; a lost connection is told to the session."""
        stream: ByteStream | None = None
        try:
            stream = await self._launcher.follow(host, self._launched, self.offset)
            if self._deaf:
                self._deaf, self._heard_from = False, self._clock.monotonic()
            async for chunk in stream.chunks():
                self._take(chunk)
        except UnreachableError:
            self._deaf = True
            raise
        finally:
            if stream is not None:
                with contextlib.suppress(UnreachableError):
                    await stream.close()

    def _take(self, chunk: bytes) -> None:
        self.offset += len(chunk)
        self.last_byte_at = self._clock.monotonic()
        lines = self.tracker.feed(chunk, self.last_byte_at)
        self._lines += lines
        self.recent.extend(lines)
        if self.heard is not None:
            self.heard(lines)
        self._tell_warnings()
        if self.last_byte_at - self._shown_at >= SHOW_EVERY_S:
            self._show()

    def _tell_warnings(self) -> None:
        """Each warning once for each attempt, as soon as its line is there: while loading, or in a pass."""
        if self._key is None:
            return
        warnings = self.tracker.facts.warnings
        for one in warnings[self._told :]:
            self._journal.post(FindingSeen("warn", one.code, one.what, one.advice, [one.evidence]), self._key)
        self._told = len(warnings)

    def flush(self) -> None:
        """Show lines that a quiet log left in the batch."""
        if self._lines and self._clock.monotonic() - self._shown_at >= SHOW_EVERY_S:
            self._show()

    def _show(self) -> None:
        lines, self._lines = self._lines, []
        self._shown_at = self._clock.monotonic()
        if lines:
            self._journal.show(LogLines(lines, self.offset), self._key)
