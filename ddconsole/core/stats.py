"""Small statistics in plain Python: percentiles, spreads, and resampling. None stands for "cannot be known"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RESAMPLES = 1000
"""Bootstrap resamples. A 95 % bound from a thousand wobbles by about a twentieth of the interval's width."""

CONFIDENCE = 0.95
"""Share of the resampled values that an interval holds."""

Z_95 = 1.959964
"""The 97.5 % point of the normal distribution."""

_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""The 97.5 % points of Student's t for 1 to 30 degrees of freedom, as every table has them."""


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


def t_95(freedom: int) -> float:
    """The 97.5 % point of Student's t: half of a 95 % interval in standard errors.

    From the table up to 30 degrees of freedom, above it by z + (z³ + z)/(4 df), which is good to three digits there.

    Raises:
        ValueError: fewer than one degree of freedom.
    """
    if freedom < 1:
        raise ValueError("Student's t needs a degree of freedom")
    if freedom <= len(_T_95):
        return _T_95[freedom - 1]
    return Z_95 + (Z_95**3 + Z_95) / (4 * freedom)


def small_sample_stretch(count: int, freedom: int | None = None) -> float:
    """What a resampled deviation is multiplied by, so that few units do not look precise.

    Resampling `count` deviations from their own mean gives a variance that is too small by df/count, and reads its
    bounds off a normal instead of a t curve. The stretch mends both: √(count/df) · t(df)/z, which is 2.7 for three
    units, 1.3 for eight and 1.0 for many (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).

    Args:
        freedom: degrees of freedom of the deviations; count − 1 for one group around its own mean.
    """
    freedom = count - 1 if freedom is None else freedom
    return math.sqrt(count / freedom) * t_95(freedom) / Z_95


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


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """The middle 95 % of resampled values; None without any."""
    ordered = sorted(values)
    low, high = percentile(ordered, (1 - CONFIDENCE) / 2), percentile(ordered, (1 + CONFIDENCE) / 2)
    return None if low is None or high is None else (low, high)


def pass_at_k(samples: int, passed: int, k: int = 1) -> float:
    """The unbiased estimate of "one of k samples passes": 1 − C(n − c, k)/C(n, k) (Chen et al. 2021, equation 1).

    For k = 1 it is c/n.

    Raises:
        ValueError: more passed than were drawn, or fewer drawn than k.
    """
    if not 0 <= passed <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} needs 0 ≤ passed ≤ samples ≥ {k}; got {passed} of {samples}")
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def fisher_more(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """P that chance alone puts at least `hits` of all hits among `of`: Fisher's exact test, one-sided.

    Args:
        hits, of: counts of the group that is suspected to have more.
        other_hits, other_of: counts of the group it is measured against.
    """
    total, drawn = hits + other_hits, of + other_of
    ways = math.comb(drawn, of)
    most = min(total, of)
    return sum(math.comb(total, x) * math.comb(drawn - total, of - x) for x in range(hits, most + 1)) / ways
