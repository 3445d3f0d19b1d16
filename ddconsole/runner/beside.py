"""What is read beside a pass: the tunnel's round trip, and the engine's own counters and decode lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.ports import SelfReporting, ServerCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import DecodeTick, Engine
    from ddconsole.runner.follow import LogFollower

MAX_TICKS = 100_000
"""Decode lines of one pass that are kept: three numbers each."""


class Beside:
    """Listens to the engine's log while a pass runs, and reads its counters when asked.

    Use it as a context manager around the pass. An engine that reports nothing is left alone.
    """

    def __init__(self, engine: Engine, base_url: str, follower: LogFollower) -> None:
        self._engine = engine if isinstance(engine, SelfReporting) else None
        self._base_url = base_url
        self._follower = follower
        self._ticks: list[DecodeTick] = []

    def __enter__(self) -> Beside:
        if self._engine is not None:
            self._follower.heard = self._hear
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.heard = None

    async def counts(self) -> ServerCounts | None:
        """The engine's counters, and the decode lines so far."""
        if self._engine is None:
            return None
        found = await self._engine.counts(self._base_url)
        return replace(found or ServerCounts(), ticks=tuple(self._ticks))

    def _hear(self, lines: Sequence[str]) -> None:
        if self._engine is None or len(self._ticks) >= MAX_TICKS:
            return
        self._ticks += [tick for line in lines if (tick := self._engine.decode_tick(line)) is not None]
