"""Each card under load: idle ones lower their PCIe generation and their clocks, so only what is seen at work counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ddconsole.core.gpu import GpuSample

BUSY_PCT: Final = 50.0
"""Utilization from which a card is at work."""


@dataclass(slots=True)
class LinksUnderLoad:
    """The best generation and width of each card, and the range of its SM clock, since the last `clear`.

    From samples of a busy card alone.
    """

    _links: dict[int, tuple[int, int]] = field(default_factory=dict)
    _clocks: dict[int, tuple[int, int]] = field(default_factory=dict)

    def take(self, samples: Iterable[GpuSample]) -> None:
        """Look at one tick."""
        for sample in samples:
            if (sample.utilization_pct or 0.0) < BUSY_PCT:
                continue
            if sample.pcie_gen is not None and sample.pcie_width is not None:
                generation, width = self._links.get(sample.index, (0, 0))
                self._links[sample.index] = (max(generation, sample.pcie_gen), max(width, sample.pcie_width))
            if (clock := sample.sm_clock_mhz) is not None:
                low, high = self._clocks.get(sample.index, (clock, clock))
                self._clocks[sample.index] = (min(low, clock), max(high, clock))

    def clear(self) -> None:
        """Another attempt begins."""
        self._links, self._clocks = {}, {}

    def clocks_json(self) -> list[dict[str, Any]]:
        """`{index, low_mhz, high_mhz}` of the SM clock of each card that was seen at work."""
        return [
            {"index": index, "low_mhz": low, "high_mhz": high} for index, (low, high) in sorted(self._clocks.items())
        ]

    def to_json(self) -> list[dict[str, Any]]:
        """`{index, gen, width}` of each card that was seen at work."""
        return [{"index": index, "gen": gen, "width": width} for index, (gen, width) in sorted(self._links.items())]


def slow_links(under_load: Iterable[Mapping[str, Any]], cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Cards whose link stayed below its best even under load, in words. `cards` are preflight's facts."""
    best = {card.get("index"): card.get("pcie.link.gen.max") for card in cards}
    return [
        f"card {link['index']} gen {link['gen']} of {most:.0f}"
        for link in under_load
        if isinstance(most := best.get(link["index"]), int | float) and link["gen"] < most
    ]
