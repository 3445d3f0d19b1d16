"""A clock of its own time: sleepers wake in the order of their deadlines, and an hour passes in a moment."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

STEP_S = 0.001
"""Real seconds between two wakings, in which other tasks and threads get on with their work."""


class VirtualClock:
    """Jumps from deadline to deadline. Nothing in it depends on the machine's own clock."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._scheduled = False
        self.busy = 0
        """Work under way on other threads; no time passes while there is some."""

    def now(self) -> datetime:
        return datetime(2026, 12, 2, 14, 0, tzinfo=UTC) + timedelta(seconds=self.seconds - 1000.0)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        loop = asyncio.get_running_loop()
        waking: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._sleepers, (self.seconds + max(seconds, 0.0), next(self._order), waking))
        self._schedule(loop)
        await waking

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._scheduled and self._sleepers:
            self._scheduled = True
            loop.call_later(STEP_S, self._wake, loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        while self._sleepers and not self.busy:
            deadline, _, waking = heapq.heappop(self._sleepers)
            if not waking.done():
                self.seconds = max(self.seconds, deadline)
                waking.set_result(None)
                break
        self._schedule(loop)
