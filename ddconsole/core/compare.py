"""One config against another: how much faster, and whether that is more than its noise.

Two levels of chance are kept apart. *Prompts* are paired: both configs answered the same ones, so each resample draws
prompts and takes both configs' answers to them. *Boots* are drawn beside them: how far the boots of one config lie from
their mean is pooled over both configs, so that a config with one boot inherits the spread of its neighbour. Where
neither was booted twice that spread is not known; the number of boots is always said.

All of it happens on the logarithm of a figure, where a difference is a ratio and means of boots are geometric.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, Known, asks_alike, is_ranked, same_engine, suite_of
from ddconsole.core.drift import drift_between, drifts
from ddconsole.core.recipe import RESAMPLING_SEED
from ddconsole.core.stats import RESAMPLES, Z_95, interval_of, ratio, small_sample_stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ddconsole.core.boots import BootSpread, Figure, Measurement

    Side = tuple[tuple[tuple[float, float], ...], ...]
    """A config: for each boot the (top, bottom) totals of each prompt, prompts in one order for all boots."""

POWER_POINT = Z_95 + 0.8416
"""Standard errors that a difference must be long to be told from noise four times out of five."""

MAX_REPEATS = 100
"""More repeats than this are not worth naming: the configs are equal for every purpose."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B, in percent of B's figure (tok/s end to end unless another was named).

    Attributes:
        delta_pct: (A / B − 1) · 100, over the prompts that all boots of both have, or over all where they share none.
        low_pct, high_pct: the 95 % interval; None with fewer than three shared prompts.
        pairs: prompts that both answered.
        boots: boots behind A and behind B. With one each, what a restart changes is not in the interval.
        better: +1 where more of the figure is better, −1 where less is.
        drift: why the difference may be the hour's and not the config's, or empty.
    """

    a: str
    b: str
    delta_pct: float
    low_pct: float | None
    high_pct: float | None
    pairs: int
    boots: tuple[int, int] = (1, 1)
    better: int = 1
    drift: str = ""

    @property
    def ci_pct(self) -> float | None:
        """Half the width of the interval, for `+12 % ±3`."""
        if self.low_pct is None or self.high_pct is None:
            return None
        return (self.high_pct - self.low_pct) / 2

    @property
    def word(self) -> str:
        """faster, slower, or not distinguishable: also where there is no interval to tell."""
        above = self.low_pct is not None and self.low_pct > 0
        below = self.high_pct is not None and self.high_pct < 0
        if not above and not below:
            return "not distinguishable"
        return "faster" if above == (self.better > 0) else "slower"

    @property
    def repeats_to_settle(self) -> int | None:
        """How often each config would have to be measured in all for this difference to stand out of its noise.

        Supposes that the difference is what it looks like now and that repeats (boots, or as many further prompts)
        shrink the interval by their square root; then it is told four times out of five. None where it is told
        already, where there is no interval, and where it would take more than `MAX_REPEATS`.
        """
        half = self.ci_pct
        if half is None or self.word != "not distinguishable" or not self.delta_pct:
            return None
        needed = min(self.boots) * (half * POWER_POINT / Z_95 / abs(self.delta_pct)) ** 2
        return max(math.ceil(needed), min(self.boots) + 1) if needed <= MAX_REPEATS else None

    @property
    def text(self) -> str:
        """`E15 is faster than E11 by 12.4 % ± 3.1 (8 prompts, 1 + 3 boots)`, with what would settle it."""
        counts = f"{self.pairs} prompts, {self.boots[0]} + {self.boots[1]} boots"
        interval = "" if self.ci_pct is None else f" ± {self.ci_pct:.1f}"
        if self.word != "not distinguishable":
            said = f"{self.a} is {self.word} than {self.b} by {abs(self.delta_pct):.1f} %{interval} ({counts})"
        else:
            said = f"{self.a} and {self.b} are not distinguishable: {self.delta_pct:+.1f} %{interval} ({counts})"
            said += f"; {self.settle_text}"
        return said + (f"; {self.drift}" if self.drift else "")

    @property
    def settle_text(self) -> str:
        """What it would take to tell them apart."""
        if self.ci_pct is None:
            return "fewer than three shared prompts say nothing of noise"
        repeats = self.repeats_to_settle
        if repeats is None:
            return f"over {MAX_REPEATS} repeats would be needed: take them as equal"
        return f"about {repeats} measurements of each would settle it, if the difference is real"

    def to_json(self) -> dict[str, Any]:
        """The `vs_reference` object of a result."""
        return {
            "id": self.b,
            "delta_pct": round(self.delta_pct, 2),
            "ci_pct": _rounded(self.ci_pct),
            "low_pct": _rounded(self.low_pct),
            "high_pct": _rounded(self.high_pct),
            "word": self.word,
            "pairs": self.pairs,
            "boots": list(self.boots),
            "repeats_to_settle": self.repeats_to_settle,
            "drift": self.drift or None,
        }


def compare(
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    items: Iterable[Mapping[str, Any]] | Known = (),
    figure: Figure = E2E,
) -> Comparison | None:
    """Result `a` against result `b`, both items of `results list --json`. None where one lacks the figure.

    Args:
        items: results in which further boots of both configs are looked for. Two boots of one config are compared
            with each other alone.
    """
    if not a.get(figure.name) or not b.get(figure.name):
        return None
    known = items if isinstance(items, Known) else Known(items)
    alone = Known() if same_engine(a) == same_engine(b) else known
    boots_a, boots_b = alone.boots(a), alone.boots(b)
    side_a, side_b = paired(boots_a, boots_b, figure) if asks_alike(a, b) else ((), ())
    delta = log_ratio(side_a, side_b)
    if delta is None:
        share = ratio(a[figure.name], b[figure.name]) or 1.0
        delta, side_a, side_b = math.log(share), (), ()
    low, high = _interval(side_a, side_b, known.spread(a, figure)) or (None, None)
    return Comparison(
        name_of(a),
        name_of(b),
        _percent(delta),
        None if low is None else _percent(low),
        None if high is None else _percent(high),
        len(side_a[0]) if side_a else 0,
        (len(boots_a), len(boots_b)),
        figure.better or 1,
        drift_between(a, b, known.once(drifts)),
    )


def paired(a: Sequence[Measurement], b: Sequence[Measurement], figure: Figure) -> tuple[Side, Side]:
    """What every boot of both did with each prompt that all of them answered, in a fixed order."""
    shared = sorted(set.intersection(*(set(boot) for boot in (*a, *b))))
    sides = [tuple(tuple(figure.parts(boot[prompt]) for prompt in shared) for boot in side) for side in (a, b)]
    return (sides[0], sides[1]) if shared else ((), ())


def log_ratio(a: Side, b: Side, drawn: Sequence[int] | None = None) -> float | None:
    """ln(A / B) of a figure, each the geometric mean over its boots; ln A where B is empty.

    Args:
        drawn: places of the prompts to take, with repetition; all of them once when None.

    Returns:
        None where it is not defined: a boot without the figure, or none at all.
    """
    mine = _mean_log(a, drawn)
    theirs = _mean_log(b, drawn) if b else 0.0
    return None if mine is None or theirs is None else mine - theirs


def _mean_log(side: Side, drawn: Sequence[int] | None) -> float | None:
    total = 0.0
    for boot in side:
        taken = boot if drawn is None else [boot[place] for place in drawn]
        top, bottom = sum(pair[0] for pair in taken), sum(pair[1] for pair in taken)
        if top <= 0 or bottom <= 0:
            return None
        total += math.log(top / bottom)
    return total / len(side) if side else None


@lru_cache(maxsize=4096)
def _interval(a: Side, b: Side, spread: BootSpread, seed: int = RESAMPLING_SEED) -> tuple[float, float] | None:
    """The 95 % interval of ln(A / B), of ln A where B is empty; None with fewer than three prompts.

    Each resample adds a deviation by prompts, both configs taking the same ones, to a deviation by boots, each config
    drawing as many as it has from all known deviations. Both are stretched for their small numbers.
    """
    prompts = len(a[0]) if a else 0
    whole = log_ratio(a, b) if prompts >= 3 else None
    if whole is None:
        return None
    draw = random.Random(seed)
    by_prompt = small_sample_stretch(prompts)
    by_boot = small_sample_stretch(len(spread.deviations), spread.freedom) if spread.freedom else 0.0
    values = []
    for _ in range(RESAMPLES):
        drawn = log_ratio(a, b, draw.choices(range(prompts), k=prompts))
        if drawn is not None:
            shift = _mean_drawn(draw, spread.deviations, len(a)) - _mean_drawn(draw, spread.deviations, len(b))
            values.append(whole + by_prompt * (drawn - whole) + by_boot * shift)
    return interval_of(values)


def _mean_drawn(draw: random.Random, deviations: Sequence[float], count: int) -> float:
    return math.fsum(draw.choices(deviations, k=count)) / count if deviations and count else 0.0


def own_interval(
    item: Mapping[str, Any], figure: Figure, items: Iterable[Mapping[str, Any]] | Known = ()
) -> tuple[float, float] | None:
    """The 95 % interval of a result's own figure, by its prompts and its config's boots, in the figure's unit.

    It says what other prompts of the kind would give; two configs are compared by `compare`, which pairs them.
    """
    known = items if isinstance(items, Known) else Known(items)
    side, _ = paired(known.boots(item), (), figure)
    found = _interval(side, (), known.spread(item, figure))
    return None if found is None else (math.exp(found[0]) * figure.scale, math.exp(found[1]) * figure.scale)


def reference_of(
    item: Mapping[str, Any], items: Iterable[Mapping[str, Any]], trained_block_size: int | None
) -> Mapping[str, Any] | None:
    """The chain of this drafter at its trained block size, as it would be deployed: what a tree has to beat.

    Of the passed results with the same workload on the same host: one that was asked alike, of the same suite, the same
    window and the newest, in this order of weight. None where there is none, or when `item` is that chain itself.

    Args:
        trained_block_size: None takes the chain at any block size.
    """
    if _is_reference(item, trained_block_size):
        return None
    chains = [
        other
        for other in items
        if _is_reference(other, trained_block_size)
        and is_ranked(other)
        and other.get("workload") == item.get("workload")
        and other.get("measured_on") == item.get("measured_on")
    ]
    suite, window = suite_of(item), _effective(item).get("window")
    return max(
        chains,
        key=lambda other: (
            asks_alike(other, item),
            suite_of(other) == suite,
            _effective(other).get("window") == window,
            str(other.get("finished_at")),
        ),
        default=None,
    )


def vs_reference(
    item: Mapping[str, Any], items: Iterable[Mapping[str, Any]] | Known, *, trained_block_size: int | None = None
) -> dict[str, Any] | None:
    """The `vs_reference` of a result among all of a profile's results; None where there is nothing to compare with."""
    known = items if isinstance(items, Known) else Known(items)
    reference = reference_of(item, known.items, trained_block_size)
    compared = None if reference is None else compare(item, reference, known)
    return None if compared is None else compared.to_json()


def compared(items: Sequence[dict[str, Any]], trained_block_size: int | None = None) -> list[dict[str, Any]]:
    """The results, each with its comparison to the chain that it has to beat; one that has it keeps it."""
    known = Known(items)
    return [
        item
        | {"vs_reference": item.get("vs_reference") or vs_reference(item, known, trained_block_size=trained_block_size)}
        for item in items
    ]


def _is_reference(item: Mapping[str, Any], trained_block_size: int | None) -> bool:
    effective = _effective(item)
    trained = trained_block_size is None or effective.get("block_size") == trained_block_size
    return effective.get("algorithm") == "chain" and trained


def _effective(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return item.get("effective") or item.get("config") or {}


def name_of(item: Mapping[str, Any]) -> str:
    """`E17`, or `E17#2` for a later attempt."""
    attempt = int(item.get("attempt") or 1)
    return str(item["id"]) + (f"#{attempt}" if attempt > 1 else "")


def _percent(log: float) -> float:
    return (math.exp(log) - 1) * 100


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
