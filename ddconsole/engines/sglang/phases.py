"""Which phase the boot is in, when eight ranks report it and versions differ in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

from ddconsole.core.progress import Phase


@dataclass(slots=True)
class _Rank:
    """How many phases a rank has entered, and the last of them."""

    entered: int = 0
    phase: Phase = Phase.INIT


@dataclass(slots=True)
class PhaseClock:
    """The phase of the slowest rank, and the seconds that each phase took by when its lines arrived.

    Ranks walk the same phases in the same order, whatever the order is; so the slowest is the one that has entered
    the fewest. A phase that comes twice (old versions: KV and graphs for target and draft) adds up.
    """

    finished: dict[Phase, float] = field(default_factory=dict)
    _ranks: dict[str, _Rank] = field(default_factory=dict)
    _phase: Phase = Phase.INIT
    _since: float | None = None
    _whole: bool = False

    @property
    def phase(self) -> Phase:
        """Where the slowest rank is."""
        return self._phase

    def start(self, at: float) -> None:
        """The first bytes arrived."""
        if self._since is None:
            self._since = at

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
        took = max(at - self._since, 0.0) if self._since is not None else 0.0
        self.finished[self._phase] = self.finished.get(self._phase, 0.0) + took
        self._phase, self._since = phase, at
