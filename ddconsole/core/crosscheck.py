"""Our figures against the engine's own, each with what its figure covers. Ours come from this run's answers alone.

A difference is not by itself a fault: the engine's figures cover more (other users' requests, everything since its
start) or less (whole log windows only). So every comparison says its scope, and only what its scope cannot explain is
held against the run.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.levels import Sums, sums_of
from ddconsole.core.quality import Level, QualityFinding
from ddconsole.core.stats import percentile, ratio, t_95

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import DecodeTick, ServerCounts

COUNTED_NOISE = 0.01
"""Token counters over the very same requests may differ by this share: they are read a moment apart."""

STEP_NOISE = 0.03
"""Step counters may lag behind by a log window."""

SAMPLED_NOISE = 0.10
"""Figures over whole log windows miss up to a window's steps at either end."""

MEDIAN_WIDENS = math.sqrt(math.pi / 2)
"""The standard error of a median over that of a mean, of many normal values."""

MIN_TICKS = 3
"""Fewer windows than this say nothing of a whole run."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure, ours and the engine's.

    Attributes:
        name: what is compared, with its unit or definition.
        scope: what the engine's figure covers.
        noise: share by which they may differ; None where their scopes differ, so that a difference says nothing.
        lower: the least that ours may be in the engine's scope, where that is a range; else `ours` itself.
    """

    name: str
    ours: float
    theirs: float
    source: str
    scope: str
    noise: float | None
    lower: float | None = None

    @property
    def allowed(self) -> tuple[float, float] | None:
        """Between which values the engine's figure agrees with ours; None where nothing can be said."""
        if self.noise is None:
            return None
        low, high = sorted((self.ours, self.ours if self.lower is None else self.lower))
        return low * (1 - self.noise), high * (1 + self.noise)

    @property
    def off(self) -> float | None:
        """theirs / ours − 1."""
        share = ratio(self.theirs, self.ours)
        return None if share is None else share - 1

    @property
    def finding(self) -> QualityFinding | None:
        """A warning where they differ by more than the noise."""
        if self.allowed is None or self.off is None or self.allowed[0] <= self.theirs <= self.allowed[1]:
            return None
        text = (
            f"{self.name}: {self.ours:.6g} by this run's answers, {self.theirs:.6g} by the engine's {self.source} "
            f"({self.off:+.1%}; {self.scope})"
        )
        return QualityFinding(Level.WARN, "cross-check", text)

    def to_json(self) -> dict[str, Any]:
        """An item of a summary's `cross_check`."""
        return {
            "name": self.name,
            "ours": round(self.ours, 4),
            "theirs": round(self.theirs, 4),
            "off_pct": None if self.off is None else round(self.off * 100, 2),
            "source": self.source,
            "scope": self.scope,
            "allowed": None if self.allowed is None else [round(bound, 4) for bound in self.allowed],
            "agrees": None if self.noise is None else self.finding is None,
        }


def compare_counts(records: Sequence[RequestRecord], before: ServerCounts, after: ServerCounts) -> tuple[Compared, ...]:
    """Everything of the engine's that can stand beside these requests.

    Args:
        records: the requests that were sent between the two readings, all of them.
    """
    return tuple(_comparisons(records, before, after))


def _comparisons(records: Sequence[RequestRecord], before: ServerCounts, after: ServerCounts) -> Iterator[Compared]:
    counted = [record for record in records if record.ok]
    sums = sums_of(counted)
    whole = len(counted) == len(records)  # a failed request's tokens are in the engine's counters alone
    scope = "all requests between two readings, other users' too" + ("" if whole else ", failed ones too")
    tokens = _delta(before.tokens, after.tokens)
    steps = _delta(before.steps, after.steps)
    if tokens is not None and sums.tokens:
        yield Compared("completion tokens", sums.tokens, tokens, "/metrics", scope, COUNTED_NOISE if whole else None)
    if sums.tau is not None and tokens and steps:
        yield Compared("τ (ΔC/ΔV)", sums.tau, tokens / steps, "/metrics", scope, STEP_NOISE if whole else None)
    if sums.tau is not None and after.lifetime_tau:
        scope = "since the engine's start or last flush, one rank, whole log windows"
        yield Compared("τ", sums.tau, after.lifetime_tau, "/server_info", scope, None)
    inner = after.ticks[before.seen_ticks :][1:]  # the first line also covers what was before
    if len(inner) >= MIN_TICKS:
        yield from _log_tau(sums.tau, inner)
        yield from _log_rate(sums, inner, alone=whole and all(record.concurrency == 1 for record in records))


def _log_tau(tau: float | None, inner: Sequence[DecodeTick]) -> Iterator[Compared]:
    lengths = [tick.accept_len for tick in inner if tick.accept_len is not None]
    if tau is not None and lengths:
        scope = f"1 + accepted/steps over {len(lengths)} whole log windows"
        yield Compared("τ", tau, sum(lengths) / len(lengths), "decode lines", scope, SAMPLED_NOISE)


def _log_rate(sums: Sums, inner: Sequence[DecodeTick], *, alone: bool) -> Iterator[Compared]:
    """The rate that the engine's lines tell, where one request was decoded at a time.

    A window holds the pauses between requests that fall into it, so that its rate lies between tok/s decode, which has
    none, and tok/s e2e, which has them all. The noise is that of the windows' median, by their own spread and number.

    Args:
        alone: every request was asked at concurrency 1 and counts; at a rate the engine may idle for any time.
    """
    rates = [tick.tokens_per_s for tick in inner if tick.running == 1]
    if sums.decode_rate is None or len(rates) != len(inner):
        return
    scope = f"median of {len(rates)} log windows, pauses between requests in them"
    middle = percentile(rates, 0.5) or 0.0
    noise = max(SAMPLED_NOISE, _median_noise(rates, middle)) if alone and middle else None
    yield Compared("decode tok/s", sums.decode_rate, middle, "decode lines", scope, noise, sums.e2e_rate)


def _median_noise(values: Sequence[float], middle: float) -> float:
    """Half of the 95 % interval of the median of these, as a share of it."""
    error = MEDIAN_WIDENS * statistics.stdev(values) / math.sqrt(len(values))
    return t_95(len(values) - 1) * error / middle


def _delta(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or after < before else after - before
