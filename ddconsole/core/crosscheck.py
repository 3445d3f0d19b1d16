"""Our figures against the engine's own, each with what its figure covers. Ours come from this run's answers alone.

A difference is not by itself a fault: the engine's figures cover more (other users' requests, everything since its
start) or less (whole log windows only). So every comparison says its scope, and only what its scope cannot explain is
held against the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.levels import sums_of
from ddconsole.core.quality import Level, QualityFinding
from ddconsole.core.stats import percentile, ratio

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

MIN_TICKS = 3
"""Fewer windows than this say nothing of a whole run."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure, ours and the engine's.

    Attributes:
        name: what is compared, with its unit or definition.
        scope: what the engine's figure covers.
        noise: share by which they may differ; None where their scopes differ, so that a difference says nothing.
    """

    name: str
    ours: float
    theirs: float
    source: str
    scope: str
    noise: float | None

    @property
    def off(self) -> float | None:
        """theirs / ours − 1."""
        share = ratio(self.theirs, self.ours)
        return None if share is None else share - 1

    @property
    def finding(self) -> QualityFinding | None:
        """A warning where they differ by more than the noise."""
        if self.noise is None or self.off is None or abs(self.off) <= self.noise:
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
    yield from _log_comparisons(sums.tau, sums.decode_rate, after.ticks[before.seen_ticks :])


def _log_comparisons(tau: float | None, rate: float | None, ticks: Sequence[DecodeTick]) -> Iterator[Compared]:
    """The decode lines that came between the readings; the first one also covers what was before."""
    inner = ticks[1:]
    if len(inner) < MIN_TICKS:
        return
    lengths = [tick.accept_len for tick in inner if tick.accept_len is not None]
    if tau is not None and lengths:
        scope = f"1 + accepted/steps over {len(lengths)} whole log windows"
        yield Compared("τ", tau, sum(lengths) / len(lengths), "decode lines", scope, SAMPLED_NOISE)
    alone = [tick.tokens_per_s for tick in inner if tick.running == 1]
    if rate is not None and len(alone) == len(inner):
        scope = f"median of {len(alone)} log windows, pauses between requests in them"
        yield Compared("decode tok/s", rate, percentile(alone, 0.5) or 0.0, "decode lines", scope, None)


def _delta(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or after < before else after - before
