"""Small statistics in plain Python: percentiles, spreads, and resampling. None stands for "cannot be known"."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESAMPLES = 400
"""Bootstrap resamples. A 95 % bound from 400 wobbles by about a tenth of its own width, which is enough here."""

CONFIDENCE = 0.95
"""Share of the resampled values that an interval holds."""


def ratio(numerator: float, denominator: float) -> float | None:
    """numerator / denominator, or None where that is not a finite number."""
    if not denominator:
        return None
    value = numerator / denominator
    return value if math.isfinite(value) else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The `share` (0 to 1) quantile with linear interpolation between the two nearest ranks.

    Rank = share · (n − 1), as numpy's default ("linear", Hyndman and Fan's type 7), which vLLM's and SGLang's
    benchmarks use. None without values.
    """
    if not values:
        return None
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles (linear interpolation) of one quantity, in the unit that its user names."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    def to_json(self, scale: float = 1.0, digits: int = 3) -> dict[str, float | int]:
        """Every figure times `scale` (1000 turns seconds into milliseconds)."""
        figures = {name: round(getattr(self, name) * scale, digits) for name in ("mean", "p50", "p90", "p95", "p99")}
        return {"n": self.n} | figures


def spread(values: Sequence[float]) -> Spread | None:
    """The spread of `values`, None without any."""
    if not values:
        return None
    ordered = sorted(values)
    p50, p90, p95, p99 = (percentile(ordered, share) or 0.0 for share in (0.5, 0.9, 0.95, 0.99))
    return Spread(len(ordered), math.fsum(ordered) / len(ordered), p50, p90, p95, p99)


def bootstrap_interval(
    count: int, statistic: Callable[[Sequence[int]], float | None], *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """The 95 % percentile-bootstrap interval of a statistic of `count` units.

    Args:
        count: how many units there are; each resample draws that many of them with replacement.
        statistic: takes the drawn indices; None where it is not defined, which drops that resample.
        seed: of the random draws, so that a report says the same twice.

    Returns:
        (low, high), or None for fewer than three units: two prompts say nothing about a third.
    """
    if count < 3:
        return None
    draw = random.Random(seed)
    drawn = (statistic(draw.choices(range(count), k=count)) for _ in range(resamples))
    values = [value for value in drawn if value is not None]
    low, high = percentile(values, (1 - CONFIDENCE) / 2), percentile(values, (1 + CONFIDENCE) / 2)
    return None if low is None or high is None else (low, high)
