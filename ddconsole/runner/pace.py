"""How long an experiment is measured: to its end, until its time box is used up, or until it is hopeless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.early import HOPELESS_CODE, hopeless, out_of_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.early import Best, Stop
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Clock


class Pace:
    """The time box of an attempt's passes, one for each repeat, and the best result to be measured against.

    Args:
        box_s: seconds for all passes of a repeat; None is no box.
        best: what the best result so far did, by pass; empty where nothing is ended early.
    """

    def __init__(self, clock: Clock, box_s: float | None = None, best: Mapping[str, Best] | None = None) -> None:
        self._clock = clock
        self._box_s = box_s
        self._best = best or {}
        self._since = clock.monotonic()

    def begin(self) -> None:
        """A repeat begins, and its time box with it."""
        self._since = self._clock.monotonic()

    def left_s(self) -> float | None:
        """Seconds until the box is used up, at or below zero when it is; None without a box."""
        return None if self._box_s is None else self._box_s - (self._clock.monotonic() - self._since)

    def of(self, name: str) -> PassPace:
        """The look-out for one measurement of a pass."""
        return PassPace(self, self._best.get(name))

    def look(self, records: Sequence[RequestRecord], total: int, best: Best | None) -> Stop | None:
        """Why no further request of a level should be asked, or None."""
        elapsed = self._clock.monotonic() - self._since
        return hopeless(records, best) or out_of_time(len(records), elapsed, self._box_s, total)


class PassPace:
    """Asked before each request of a pass; remembers why it said that it is enough."""

    def __init__(self, pace: Pace, best: Best | None) -> None:
        self._pace = pace
        self._best = best
        self.stop: Stop | None = None

    def __call__(self, records: Sequence[RequestRecord], total: int) -> bool:
        """Whether the level has enough."""
        stop = self._pace.look(records, total, self._best)
        self.stop = self.stop or stop
        return stop is not None

    def another(self) -> bool:
        """Whether a further level is worth its time: the config is not hopeless, and the box is not used up."""
        left = self._pace.left_s()
        return (self.stop is None or self.stop.code != HOPELESS_CODE) and (left is None or left > 0)
