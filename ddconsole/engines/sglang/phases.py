"""Which phase the boot is in, when eight ranks report it and versions differ in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ddconsole.core.progress import Phase

STAMP_SLACK_S: Final = 2.0
"""Seconds by which a time between two stamps of whole seconds may be off the time between their arrivals."""

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")


@dataclass(slots=True)
class _Rank:
    """How many phases a rank has entered, and the last of them."""

    entered: int = 0
    phase: Phase = Phase.INIT


@dataclass(slots=True)
class PhaseClock:
    """The phase of the slowest rank, and the seconds that each phase took.

    Ranks walk the same phases in the same order, whatever the order is; so the slowest is the one that has entered
    the fewest. A phase that comes twice (old versions: KV and graphs for target and draft) adds up.

    Seconds are those between the arrivals of the lines, to the millisecond, unless the log's own stamps tell otherwise:
    then the lines came late, all at once after a lost connection, and the stamps are right.
    """

    finished: dict[Phase, float] = field(default_factory=dict)
    _ranks: dict[str, _Rank] = field(default_factory=dict)
    _phase: Phase = Phase.INIT
    _since: float | None = None
    _since_stamp: float | None = None
    _line: str = ""
    _whole: bool = False

    @property
    def phase(self) -> Phase:
        """Where the slowest rank is."""
        return self._phase

    @property
    def has_stamp(self) -> bool:
        """Whether the begin of the phase is known by the log's own time."""
        return self._since_stamp is not None

    @property
    def behind(self) -> tuple[str, ...]:
        """The ranks that the phase waits for; none when all are equally far, or the engine speaks as a whole."""
        if self._whole or not self._ranks:
            return ()
        least = min(rank.entered for rank in self._ranks.values())
        late = tuple(sorted(name for name, rank in self._ranks.items() if rank.entered == least))
        return late if len(late) < len(self._ranks) else ()

    def start(self, at: float) -> None:
        """The first bytes arrived."""
        if self._since is None:
            self._since = at

    def stamped(self, line: str) -> None:
        """A line with the log's own time came; it is read only when a phase ends with it."""
        if self._since_stamp is None:
            self._since_stamp = stamp_seconds(line)
        self._line = line

    def join(self, rank: str) -> None:
        """A rank has shown itself; it will be waited for."""
        self._ranks.setdefault(rank, _Rank())

    def enter(self, rank: str, phase: Phase, at: float) -> None:
        """`rank` is in `phase` now."""
        state = self._ranks.setdefault(rank, _Rank())
        if state.phase is phase:
            return
        state.entered += 1
        state.phase = phase
        if not self._whole:
            self._turn(min(self._ranks.values(), key=lambda each: each.entered).phase, at)

    def enter_all(self, phase: Phase, at: float) -> None:
        """The engine as a whole is in `phase`: the ranks have nothing more to say."""
        if self._phase is not Phase.READY:
            self._whole = True
            self._turn(phase, at)

    def _turn(self, phase: Phase, at: float) -> None:
        if phase is self._phase:
            return
        stamp = stamp_seconds(self._line)
        self.finished[self._phase] = self.finished.get(self._phase, 0.0) + self._took(at, stamp)
        self._phase, self._since, self._since_stamp = phase, at, stamp

    def _took(self, at: float, stamp: float | None) -> float:
        arrived = max(at - self._since, 0.0) if self._since is not None else 0.0
        if stamp is None or self._since_stamp is None or stamp < self._since_stamp:
            return arrived
        told = stamp - self._since_stamp
        return arrived if abs(arrived - told) <= STAMP_SLACK_S else told


def stamp_seconds(line: str) -> float | None:
    """The host's local time at the begin of a line, in seconds; only differences mean anything."""
    match = _STAMP.match(line)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    return (moment - datetime(1970, 1, 1)).total_seconds() + float(f"0.{match[2] or 0}")
