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

Work = dict[str, Any]

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
    return summaries[name] if (name := _speaker(summaries)) is not None else ()


def _speaker(summaries: Summaries) -> str | None:
    for name in VERDICT_PASSES:
        if any(level["sums"]["requests"] for one in summaries.get(name) or () for level in _at_one(one)):
            return name
    return None


def work_key(name: str, tasks: str | None = None, max_tokens: int | None = None, *, exact: bool = False) -> Work:
    """A result's `work`: which requests at concurrency 1 its figures come from. Equal works make prompts pairs.

    Args:
        tasks: the coding suite; None where the workload's prompts are asked.
        exact: every answer has `max_tokens` tokens.
    """
    return {"pass": name, "tasks": tasks, "max_tokens": max_tokens, "exact_tokens": exact}


def work_of(summaries: Summaries) -> Work | None:
    """The work of the pass that speaks for the config; None where nothing was measured at concurrency 1."""
    name = _speaker(summaries)
    if name is None:
        return None
    one = summaries[name][-1]
    return work_key(name, one.get("suite"), one.get("max_tokens"), exact=bool(one.get("exact_tokens")))


def _levels_at_one(summaries: Summaries) -> list[Mapping[str, Any]]:
    return [level for one in _speaking(summaries) for level in _at_one(one)]


def by_prompt(summaries: Summaries) -> dict[str, list[float]]:
    """The totals of each prompt (`boots.PROMPT_SUMS`), over the requests that `speed_sums` adds up."""
    return _totals(_speaking(summaries))


def _totals(repeats: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    total: dict[str, list[float]] = {}
    for one in repeats:
        for prompt, sums in one.get("by_prompt", {}).items():
            total[prompt] = list(added([total[prompt], sums])) if prompt in total else list(sums)
    return total


def by_boot(summaries: Summaries, boot: str | None) -> dict[str, dict[str, list[float]]]:
    """The totals of `by_prompt` apart for each start of an engine that its repeats were measured on, oldest first.

    A pass that was taken over from an interrupted attempt was measured on that attempt's engine, and says so.

    Args:
        boot: of repeats that do not say theirs; with None those are left out.
    """
    boots: dict[str, list[Mapping[str, Any]]] = {}
    for one in _speaking(summaries):
        name = one.get("boot") or boot
        if name is not None:
            boots.setdefault(str(name), []).append(one)
    return {name: _totals(repeats) for name, repeats in boots.items()}


def median(summaries: Summaries, name: str) -> float | None:
    """The median of the repeats' medians; with one repeat, its median over the requests."""
    medians = [level[name]["p50"] for level in _levels_at_one(summaries) if level.get(name)]
    return percentile(medians, 0.5)


def round_trip_ms(summaries: Summaries) -> float | None:
    """The tunnel's round trip that is in the TTFT of `speed_sums`' requests: the median of the repeats'."""
    trips = [one["round_trip_ms"] for one in _speaking(summaries) if one.get("round_trip_ms") is not None]
    return percentile(trips, 0.5)


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
