"""One result against another: how much faster, and whether that is more than its noise.

Prompts are paired: both configs answered the same ones, so each resample draws prompts and takes both configs' answers
to them. What differs between boots of the same config is not in the interval; the number of boots is said with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.stats import bootstrap_interval, ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Pair = tuple[tuple[float, float], tuple[float, float]]
    """A prompt's (ΣC, ΣE2E in seconds) in the config at hand and in its reference."""

RATE = "tok_s_e2e"
"""What is compared: ΣC/ΣE2E at concurrency 1."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B, in percent of B's tok/s end to end.

    Attributes:
        delta_pct: (A / B − 1) · 100, over the prompts that both have, or over all where they share none.
        low_pct, high_pct: the 95 % interval by resampling prompts, paired; None with fewer than three of them.
        pairs: prompts that both answered.
        boots: boots behind A and behind B.
    """

    a: str
    b: str
    delta_pct: float
    low_pct: float | None
    high_pct: float | None
    pairs: int
    boots: tuple[int, int] = (1, 1)

    @property
    def ci_pct(self) -> float | None:
        """Half the width of the interval, for `+12 % ±3`."""
        if self.low_pct is None or self.high_pct is None:
            return None
        return (self.high_pct - self.low_pct) / 2

    @property
    def word(self) -> str:
        """faster, slower, or not distinguishable: also where there is no interval to tell."""
        if self.low_pct is not None and self.low_pct > 0:
            return "faster"
        if self.high_pct is not None and self.high_pct < 0:
            return "slower"
        return "not distinguishable"

    def to_json(self) -> dict[str, Any]:
        """The `vs_reference` object of a result."""
        ci = self.ci_pct
        return {"id": self.b, "delta_pct": round(self.delta_pct, 2), "ci_pct": None if ci is None else round(ci, 2)}


def compare(a: Mapping[str, Any], b: Mapping[str, Any]) -> Comparison | None:
    """Result `a` against result `b`, both items of `results list --json`. None where one has no speed."""
    if not a.get(RATE) or not b.get(RATE):
        return None
    pairs = paired_prompts(a, b)
    delta = delta_pct(pairs) if pairs else _percent(ratio(a[RATE], b[RATE]))
    if delta is None:
        return None
    interval = bootstrap_interval(len(pairs), lambda drawn: delta_pct([pairs[index] for index in drawn]))
    low, high = interval or (None, None)
    return Comparison(str(a["id"]), str(b["id"]), delta, low, high, len(pairs))


def paired_prompts(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Pair]:
    """What both did with each prompt that both answered, in a fixed order."""
    mine, theirs = a.get("by_prompt") or {}, b.get("by_prompt") or {}
    shared = sorted(mine.keys() & theirs.keys())
    return [((mine[p][0], mine[p][1]), (theirs[p][0], theirs[p][1])) for p in shared]


def delta_pct(pairs: Sequence[Pair]) -> float | None:
    """How much faster A is over these prompts, in percent: both rates are ΣC/ΣE2E."""
    rates = [ratio(sum(pair[side][0] for pair in pairs), sum(pair[side][1] for pair in pairs)) for side in (0, 1)]
    if rates[0] is None or not rates[1]:
        return None
    return _percent(rates[0] / rates[1])


def reference_of(
    item: Mapping[str, Any], items: Iterable[Mapping[str, Any]], trained_block_size: int | None
) -> Mapping[str, Any] | None:
    """The chain of this drafter at its trained block size, as it would be deployed: what a tree has to beat.

    Of the passed results with the same workload on the same host, the newest with the same window, else the newest.
    None where there is none, or when `item` is that chain itself.

    Args:
        trained_block_size: None takes the chain at any block size.
    """
    if _is_reference(item, trained_block_size):
        return None
    chains = [
        other
        for other in items
        if _is_reference(other, trained_block_size)
        and other.get("outcome") == "passed"
        and other.get("workload") == item.get("workload")
        and other.get("measured_on") == item.get("measured_on")
        and other.get(RATE)
    ]
    if not chains:
        return None
    window = _effective(item).get("window")
    return max(chains, key=lambda other: (_effective(other).get("window") == window, str(other.get("finished_at"))))


def vs_reference(
    item: Mapping[str, Any], items: Iterable[Mapping[str, Any]], *, trained_block_size: int | None = None
) -> dict[str, Any] | None:
    """The `vs_reference` of a result among all of a profile's results; None where there is nothing to compare with."""
    reference = reference_of(item, items, trained_block_size)
    compared = None if reference is None else compare(item, reference)
    return None if compared is None else compared.to_json()


def compared(items: Sequence[dict[str, Any]], trained_block_size: int | None = None) -> list[dict[str, Any]]:
    """The results, each with its comparison to the chain that it has to beat; one that has it keeps it."""
    return [
        item
        | {"vs_reference": item.get("vs_reference") or vs_reference(item, items, trained_block_size=trained_block_size)}
        for item in items
    ]


def _is_reference(item: Mapping[str, Any], trained_block_size: int | None) -> bool:
    effective = _effective(item)
    trained = trained_block_size is None or effective.get("block_size") == trained_block_size
    return effective.get("algorithm") == "chain" and trained


def _effective(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return item.get("effective") or item.get("config") or {}


def _percent(factor: float | None) -> float | None:
    return None if factor is None else (factor - 1) * 100
