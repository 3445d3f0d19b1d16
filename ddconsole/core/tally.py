"""What the summaries of an attempt's passes hold, all passes and repeats together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import added
from ddconsole.core.config import Algorithm
from ddconsole.core.levels import Sums
from ddconsole.core.quality import MIN_TAU, inspect_drafter
from ddconsole.core.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ddconsole.core.config import Config
    from ddconsole.core.quality import QualityFinding

    Summaries = Mapping[str, Sequence[Mapping[str, Any]]]
    """Summaries by pass name, one for each repeat."""

VERDICT_PASSES = ("coding", "throughput", "quality")
"""The first of these that has requests at concurrency 1 gives the verdict its τ and its tok/s."""


def speed_sums(summaries: Summaries) -> Sums:
    """Totals over the concurrency-1 requests of the pass that speaks for the config, all repeats together."""
    total = Sums()
    for level in _levels_at_one(summaries):
        total += Sums.from_json(level["sums"])
    return total


def coding_score(summaries: Summaries) -> dict[str, int | None] | None:
    """passed and total of the worst repeat: the score is an alarm. None without the pass, None inside ungraded."""
    rounds = summaries.get("coding") or ()
    if not rounds:
        return None
    worst = min(rounds, key=lambda one: -1 if one.get("passed") is None else one["passed"])
    return {"passed": worst.get("passed"), "total": worst.get("total")}


def pass_at_1(summaries: Summaries) -> float | None:
    """Mean of the repeats' pass@1, each the mean over its tasks of c/n; None where nothing was scored."""
    shares = [one["pass_at_1"] for one in summaries.get("coding") or () if one.get("pass_at_1") is not None]
    return sum(shares) / len(shares) if shares else None


def levels(summaries: Summaries) -> Iterator[Mapping[str, Any]]:
    """Every concurrency level of every pass and repeat."""
    for repeats in summaries.values():
        for one in repeats:
            yield from one.get("levels", ())


def _at_one(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [level for level in one.get("levels", ()) if level["concurrency"] == 1]


def _speaking(summaries: Summaries) -> Sequence[Mapping[str, Any]]:
    """The repeats of the first pass that counted a request at concurrency 1."""
    for name in VERDICT_PASSES:
        repeats = summaries.get(name) or ()
        if any(level["sums"]["requests"] for one in repeats for level in _at_one(one)):
            return repeats
    return ()


def _levels_at_one(summaries: Summaries) -> list[Mapping[str, Any]]:
    return [level for one in _speaking(summaries) for level in _at_one(one)]


def by_prompt(summaries: Summaries) -> dict[str, list[float]]:
    """The totals of each prompt (`boots.PROMPT_SUMS`), over the requests that `speed_sums` adds up."""
    total: dict[str, list[float]] = {}
    for one in _speaking(summaries):
        for prompt, sums in one.get("by_prompt", {}).items():
            total[prompt] = list(added([total[prompt], sums])) if prompt in total else list(sums)
    return total


def median(summaries: Summaries, name: str) -> float | None:
    """The median of the repeats' medians; with one repeat, its median over the requests."""
    medians = [level[name]["p50"] for level in _levels_at_one(summaries) if level.get(name)]
    return percentile(medians, 0.5)


def findings(summaries: Summaries) -> list[Mapping[str, Any]]:
    """What the passes noticed in their answers."""
    return [finding for repeats in summaries.values() for one in repeats for finding in one.get("findings", ())]


def drafter_findings(config: Config, summaries: Summaries) -> tuple[QualityFinding, ...]:
    """What all requests together say of the drafter; nothing where the config has none."""
    if config.algorithm is Algorithm.OFF:
        return ()
    total = Sums()
    for level in levels(summaries):
        total += Sums.from_json(level["sums"])
    asked = [one["min_tau"] for one in summaries.get("quality") or () if one.get("min_tau") is not None]
    return inspect_drafter(total, asked[0] if asked else MIN_TAU)


def text_digest(summaries: Summaries) -> str | None:
    """Of the first repeat's coding answers."""
    rounds = summaries.get("coding") or ()
    return rounds[0].get("text_sha256") if rounds else None
