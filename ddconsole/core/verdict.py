"""What an attempt's summaries come to: its outcome, its line, and its item of `results list --json`.

Everything is computed from the summaries of finished passes, as the store keeps them, so that an attempt that was
interrupted and taken up again is judged by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.control_score import CodingScore, behind
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Outcome
from ddconsole.core.level_words import early_words, rate_words
from ddconsole.core.quality import DIVERGED, Level
from ddconsole.core.require import parse_require
from ddconsole.core.tally import (
    by_boot,
    by_prompt,
    coding_score,
    drafter_findings,
    findings,
    levels,
    median,
    pass_at_1,
    speed_sums,
    text_digest,
    work_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.experiment import Workload
    from ddconsole.core.require import Requirement
    from ddconsole.core.tally import Summaries

TAU_DEFINITION = "ΣC/ΣV"
"""Completion tokens over verify steps, both summed over this run's requests."""


def judge(
    config: Config,
    summaries: Summaries,
    *,
    require: Mapping[str, str] | None = None,
    control: CodingScore | None = None,
    divergence: str = "warn",
) -> tuple[Outcome, Failure | None]:
    """The outcome of an attempt whose passes all came to their end, and why it is not `passed`.

    failed: something was not measured (requests failed, answers could not be graded, the drafter never engaged).
    wrong: it was measured, and its answers or a required figure are not good enough.

    Args:
        control: what the chain made of the coding tasks; without it no score is compared.
        divergence: `wrong` where greedy answers that leave the control's beyond its floor are wrong, not only a
            warning (`limits` of the profile).

    Raises:
        UsageError: `require` cannot be read.
    """
    failure = _unmeasured(summaries) or _idle(config, summaries)
    if failure is not None:
        return Outcome.FAILED, failure
    wrong = _wrong(summaries, control, divergence) or _below_required(summaries, parse_require(require or {}))
    return (Outcome.PASSED, None) if wrong is None else (Outcome.WRONG, wrong)


def result_item(
    *,
    id: str,  # noqa: A002  # the key of the item
    sweep: str | None,
    attempt: int,
    outcome: Outcome,
    config: Config,
    effective: Effective,
    workload: Workload,
    engine_version: str | None,
    boot_s: float | None,
    summaries: Summaries,
    failure: Failure | None,
    measured_on: str | None,
    started_at: str,
    finished_at: str,
    suite: str = "quick",
    boot: str | None = None,
    control: CodingScore | None = None,
) -> dict[str, Any]:
    """The item of `results list --json`. Figures are None where nothing measured them.

    `vs_reference` is left None; `core/compare.py` fills it in where other results are at hand. `by_prompt` holds
    the totals of each prompt at concurrency 1 (`boots.PROMPT_SUMS`), which is what pairs this result with another;
    `by_boot` the same for each boot, where an interruption made it several.

    Args:
        boot: names the start of an engine that this was measured on; results that share it are one boot. Summaries
            that name another one, because they were taken over from an interrupted attempt, are believed.
        control: as for `judge`; a score below it that may be chance is a warning in the verdict.
    """
    boots = by_boot(summaries, boot)
    return {
        "id": id,
        "sweep": sweep,
        "attempt": attempt,
        "outcome": outcome.value,
        "config": config.to_json(),
        "effective": effective.to_json(),
        "workload": workload.to_json(),
        "engine_version": engine_version,
        "boot_s": boot_s,
        **_figures(summaries),
        "vs_reference": None,
        "verdict": verdict_line(config, summaries, outcome, failure, control),
        "failure": None if failure is None else failure.to_json(),
        "text_sha256": text_digest(summaries),
        "measured_on": measured_on,
        "started_at": started_at,
        "finished_at": finished_at,
        "suite": suite,
        "work": work_of(summaries),
        "boot": next(reversed(boots), boot),
        "by_prompt": by_prompt(summaries),
        "by_boot": boots if len(boots) > 1 else None,
    }


def _figures(summaries: Summaries) -> dict[str, Any]:
    """What was measured, in the item's words."""
    sums = speed_sums(summaries)
    return {
        "coding": coding_score(summaries),
        "pass_at_1": pass_at_1(summaries),
        "tok_s_e2e": _rounded(sums.e2e_rate),
        "tok_s_decode": _rounded(sums.decode_rate),
        "tau": _rounded(sums.tau),
        "tau_definition": TAU_DEFINITION if sums.steps else None,
        "tau_n": sums.speculated or None,
        "completion_tokens": sums.tokens if sums.requests else None,
        "verify_steps": sums.steps or None,
        "step_ms": _rounded(sums.per_step_s, 1000),
        "ttft_p50_ms": median(summaries, "ttft_ms"),
        "tpot_p50_ms": median(summaries, "tpot_ms"),
    }


def verdict_line(
    config: Config,
    summaries: Summaries,
    outcome: Outcome,
    failure: Failure | None,
    control: CodingScore | None = None,
) -> str:
    """`coding 5/5 · 149.8 tok/s e2e, 160.0 decode at c=1 · τ 4.81 (ΣC/ΣV, 5 requests)`.

    What went wrong stands in front, warnings behind; failed requests are always said.
    """
    parts = []
    if failure is not None:
        parts.append(f"{outcome.value}: {failure.what}")
    elif outcome is not Outcome.PASSED:
        parts.append(outcome.value)
    parts += [*_coding_words(summaries), *_speed_words(summaries), *_level_words(summaries)]
    if failure is None or failure.cause != "requests-failed":
        parts += _failed_words(summaries)
    parts += list(early_words(summaries))
    warnings = [*_warnings(config, summaries), *_behind_words(summaries, control)]
    parts += [f"⚠ {text}" for text in warnings if failure is None or text != failure.what]
    return " · ".join(parts)


# --- outcomes


def _unmeasured(summaries: Summaries) -> Failure | None:
    """Requests that failed, and answers that could not be graded."""
    rounds = [one for repeats in summaries.values() for one in repeats]
    failed, asked = sum(one.get("failed", 0) for one in rounds), sum(one.get("requests", 0) for one in rounds)
    if failed:
        texts = [f"{error['count']} × {error['text']}" for one in rounds for error in one.get("errors", ())]
        advice = "Read the engine's log around these requests; a pass with failed requests is not ranked."
        return Failure("requests-failed", f"{failed} of {asked} requests failed", tuple(texts[:5]), advice)
    for one in summaries.get("coding") or ():
        if not one.get("graded", True):
            advice = "Install bubblewrap here, or set `allow_no_isolation: true` in the profile's coding pass."
            return Failure("not-graded", f"not graded: {one.get('why')}", (), advice)
        if not one.get("total"):
            details = tuple(f"{task['id']}: {task['detail']}" for task in one.get("tasks", ()))
            return Failure("not-graded", "not graded: no task could be scored", details[:5], "Mend the suite's tests.")
    return None


def _idle(config: Config, summaries: Summaries) -> Failure | None:
    """A drafter that is configured and never engaged."""
    for finding in drafter_findings(config, summaries):
        if finding.level is Level.FAILED:
            advice = "Look for the drafter in the engine's log: its path, its block size, its quantization."
            return Failure(finding.code, finding.text, (), advice)
    return None


def _wrong(summaries: Summaries, control: CodingScore | None, divergence: str) -> Failure | None:
    """Answers that are no answers, that leave the control's, or that solve fewer tasks than its."""
    for finding in findings(summaries):
        if finding["level"] == Level.WRONG and not (divergence == "warn" and finding["code"] == DIVERGED):
            evidence = (f"prompts: {', '.join(finding['prompts'])}",) if finding["prompts"] else ()
            return Failure(
                f"answers-{finding['code']}", finding["text"], evidence, "Compare its answers with the chain's."
            )
    score = coding_score(summaries)
    if score is not None and score["passed"] == 0 and (score["total"] or 0) > 1:
        return Failure("coding-none", "no coding task passed", _task_words(summaries), "Read its answers.")
    found = behind(CodingScore.of("", summaries.get("coding") or ()), control)
    if found is not None and found.is_wrong:
        return Failure(
            "coding-below-control", found.text, _task_words(summaries), "Compare its answers with the chain's."
        )
    return None


def _below_required(summaries: Summaries, requirements: Sequence[Requirement]) -> Failure | None:
    """Required figures that were not reached."""
    score = coding_score(summaries)
    for wanted in requirements:
        failure = _missed(wanted, summaries, score)
        if failure is not None:
            return failure
    return None


def _missed(wanted: Requirement, summaries: Summaries, score: Mapping[str, int | None] | None) -> Failure | None:
    """A requirement that was not reached, or that nothing measured."""
    sums = speed_sums(summaries)
    values = {"tau": sums.tau, "tok_s_e2e": sums.e2e_rate, "tok_s_decode": sums.decode_rate}
    if wanted.name == "coding":
        passed, total = (score or {}).get("passed"), (score or {}).get("total")
        value = None if passed is None or not total else passed / total
        shown = f"{passed}/{total}"
    else:
        value = values[wanted.name]
        shown = "none" if value is None else f"{value:.2f}"
    if value is not None and value >= wanted.least - 1e-9:
        return None
    what = f"{wanted.name} {shown}, where the profile requires {wanted.text}"
    evidence = _task_words(summaries) if wanted.name == "coding" else ()
    return Failure(f"below-required-{wanted.name}", what, evidence, "See `limits.require` in the profile.")


# --- words


def _coding_words(summaries: Summaries) -> Iterator[str]:
    rounds = summaries.get("coding") or ()
    score = coding_score(summaries)
    if score is None or score["total"] is None:
        if score is not None:
            yield f"not graded: {rounds[0].get('why')}"
        return
    apart = {name: max(one.get(name) or 0 for one in rounds) for name in ("truncated", "not_scored", "not_asked")}
    notes = [f"{count} {name.replace('_', ' ')}" for name, count in apart.items() if count]
    samples = max(one.get("samples") or 1 for one in rounds)
    share = pass_at_1(summaries)
    if samples > 1 and share is not None:
        notes.insert(0, f"pass@1 {share:.0%}, {samples} samples a task")
    yield f"coding {score['passed']}/{score['total']}" + (f" ({', '.join(notes)})" if notes else "")


def _speed_words(summaries: Summaries) -> Iterator[str]:
    sums = speed_sums(summaries)
    if sums.e2e_rate is not None:
        decode = "" if sums.decode_rate is None else f", {sums.decode_rate:.1f} decode"
        yield f"{sums.e2e_rate:.1f} tok/s e2e{decode} at c=1"
    if sums.tau is not None:
        plural = "" if sums.speculated == 1 else "s"
        yield f"τ {sums.tau:.2f} ({TAU_DEFINITION}, {sums.speculated} request{plural})"


def _level_words(summaries: Summaries) -> Iterator[str]:
    """What the throughput pass found beside the figures in front: its own level 1, and the levels above."""
    if summaries.get("coding"):
        yield from _level_one_words(summaries)
    rates: dict[int, list[float]] = {}
    for one in summaries.get("throughput") or ():
        for level in one.get("levels", ()):
            if level["concurrency"] > 1 and level["output_tok_s"] is not None:
                rates.setdefault(level["concurrency"], []).append(level["output_tok_s"])
    for concurrency, values in sorted(rates.items()):
        yield f"{sum(values) / len(values):.1f} tok/s at c={concurrency}"
    yield from rate_words([level for one in summaries.get("throughput") or () for level in one.get("levels", ())])


def _level_one_words(summaries: Summaries) -> Iterator[str]:
    """The throughput pass at concurrency 1, where the figures in front are the coding pass's."""
    ones = [
        level
        for one in summaries.get("throughput") or ()
        for level in one.get("levels", ())
        if level["concurrency"] == 1 and level.get("tok_s_e2e") is not None
    ]
    if ones:
        rate = sum(level["tok_s_e2e"] for level in ones) / len(ones)
        steps = sum(level.get("verify_steps") or 0 for level in ones)
        tau = f", τ {sum(level['completion_tokens'] for level in ones) / steps:.2f}" if steps else ""
        yield f"throughput pass {rate:.1f} tok/s e2e{tau} ({sum(level['requests'] for level in ones)} requests)"


def _failed_words(summaries: Summaries) -> Iterator[str]:
    for name, repeats in summaries.items():
        failed = sum(one.get("failed", 0) for one in repeats)
        if failed:
            yield f"{failed} of {sum(one['requests'] for one in repeats)} {name} requests failed"


def _behind_words(summaries: Summaries, control: CodingScore | None) -> list[str]:
    found = behind(CodingScore.of("", summaries.get("coding") or ()), control)
    return [] if found is None else [found.text]


def _warnings(config: Config, summaries: Summaries) -> list[str]:
    """Texts of all warnings, each once; divergence is one where it is not what made the attempt wrong."""
    said = (Level.WARN, Level.WRONG)
    texts = [
        finding["text"]
        for finding in findings(summaries)
        if finding["level"] in (said if finding["code"] == DIVERGED else said[:1])
    ]
    texts += [finding.text for finding in drafter_findings(config, summaries) if finding.level is Level.WARN]
    if any(level.get("client_saturated") for level in levels(summaries)):
        texts.append("the client was near its limit, so the engine may be faster")
    return list(dict.fromkeys(texts))


def _task_words(summaries: Summaries) -> tuple[str, ...]:
    """The tasks that did not pass, and how."""
    return tuple(
        f"{task['id']}: {task['verdict']}: {task['detail']}"
        for one in summaries.get("coding") or ()
        for task in one.get("tasks", ())
        if task["verdict"] != "passed"
    )[:5]


def _rounded(value: float | None, scale: float = 1.0) -> float | None:
    return None if value is None else round(value * scale, 4)
