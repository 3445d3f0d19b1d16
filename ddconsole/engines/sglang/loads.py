"""Weights being loaded: which rank is at which model, how long each took, and the bars that the first rank draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ddconsole.core.progress import ShardBar
from ddconsole.engines.sglang.downloads import Downloads
from ddconsole.engines.sglang.shardbar import Pace

if TYPE_CHECKING:
    from ddconsole.engines.sglang.shardbar import Bar

TARGET: Final = "target"
DRAFT: Final = "draft"
GRAPHS: Final = "graphs"


@dataclass(slots=True)
class Loads:
    """A rank's first load is the target's, its second the draft's, whatever stands between them.

    The first rank by name draws the bars: they are of the model that it is at.

    Attributes:
        one_model: the engine has said that it loads no drafter.
        seconds: what each rank says its load took, by model.
        downloads: what is pulled before it can be loaded.
    """

    one_model: bool = False
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    downloads: Downloads = field(default_factory=Downloads)
    _begun: dict[str, int] = field(default_factory=dict)
    _drawn: str = TARGET
    _bars: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    _paces: dict[str, Pace] = field(default_factory=dict)

    def begin(self, rank: str) -> str:
        """`rank` begins to load; which model."""
        self._begun[rank] = self._begun.get(rank, 0) + 1
        self._drawn = self._model(min(self._begun))
        return self._model(rank)

    def end(self, rank: str, seconds: float | None) -> None:
        """`rank` has loaded, and says in how many seconds if its version does."""
        self.downloads.clear()
        if seconds is not None:
            self.seconds.setdefault(self._model(rank), {})[rank] = seconds

    def is_whole(self, rank: str) -> bool:
        """Whether all that `rank` loads has been begun, as far as the engine has said what that is."""
        return self.one_model or self._model(rank) == DRAFT

    def see(self, bar: Bar | None, at: float) -> None:
        """A state of a bar, at `at` (monotonic seconds). Bars of unknown things are no progress of a boot."""
        if bar is not None and bar.kind == "download":
            self.downloads.see(bar)
        if bar is None or bar.kind not in ("weights", "graphs"):
            return
        self.downloads.clear()
        slot = GRAPHS if bar.kind == "graphs" else self._drawn
        pace = self._paces.get(slot)
        if pace is None:
            pace = self._paces[slot] = Pace()
        pace.see(bar.done, at)
        self._bars[slot] = (bar.done, bar.total)

    def bar(self, slot: str) -> ShardBar | None:
        """The bar of `target`, `draft` or `graphs`; None before its first state."""
        if slot not in self._bars:
            return None
        done, total = self._bars[slot]
        return ShardBar(done, total, self._paces[slot].eta_s(total))

    def _model(self, rank: str) -> str:
        return DRAFT if self._begun.get(rank, 0) >= 2 else TARGET
