"""What is read beside a pass: decode lines while it runs, and counters when asked."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ddconsole.core.ports import DecodeTick, SelfReporting, ServerCounts
from ddconsole.runner.beside import Beside


class Follower:
    """The part of a log follower that a pass listens to."""

    def __init__(self) -> None:
        self.heard: Callable[[Sequence[str]], None] | None = None


class Reporting:
    """An engine whose log lines are numbers."""

    def __init__(self, counts: ServerCounts | None) -> None:
        self._counts = counts

    async def counts(self, base_url: str) -> ServerCounts | None:
        return self._counts

    def decode_tick(self, line: str) -> DecodeTick | None:
        return DecodeTick(1, float(line)) if line.isdecimal() else None


@pytest.mark.parametrize("counts", [ServerCounts(tokens=7.0), None])
async def test_lines_of_the_pass_alone_are_counted(counts: ServerCounts | None) -> None:
    """From its beginning to its end, beside whatever the engine counts."""
    follower: Any = Follower()
    engine: Any = Reporting(counts)
    assert isinstance(engine, SelfReporting)
    with Beside(engine, "http://x", follower) as beside:
        follower.heard(["12", "Prefill batch"])
        first = await beside.counts()
        follower.heard(["13", "14"])
        second = await beside.counts()
    assert follower.heard is None
    assert first is not None
    assert second is not None
    assert (first.tokens, first.seen_ticks) == (None if counts is None else 7.0, 1)
    assert [tick.tokens_per_s for tick in second.ticks] == [12.0, 13.0, 14.0]


async def test_an_engine_that_reports_nothing_is_left_alone() -> None:
    """Not every engine counts itself."""
    follower: Any = Follower()
    engine: Any = SimpleNamespace()
    with Beside(engine, "http://x", follower) as beside:
        assert follower.heard is None
        assert await beside.counts() is None
