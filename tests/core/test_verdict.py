"""What summaries come to: outcome, verdict line, and the item of `results list --json`."""

import json
from typing import Any

import pytest
from fakes.records import fixture_record, record

from ddconsole.core.config import Algorithm, Config, effective_config
from ddconsole.core.errors import Failure, UsageError
from ddconsole.core.experiment import Outcome, Workload
from ddconsole.core.levels import summarise_level
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.require import parse_require
from ddconsole.core.verdict import judge, result_item, verdict_line
from ddconsole.passes.base import pass_summary

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
OFF = Config(Algorithm.OFF)
INTERFACE_KEYS = (
    "id", "sweep", "attempt", "outcome", "config", "effective", "workload", "engine_version",
    "boot_s", "coding", "tok_s_e2e", "tok_s_decode", "tau", "tau_definition", "tau_n",
    "completion_tokens", "verify_steps", "step_ms", "ttft_p50_ms", "tpot_p50_ms", "vs_reference",
    "verdict", "failure", "text_sha256", "measured_on", "started_at", "finished_at",
)  # fmt: skip


def summary(records: list[RequestRecord], **changes: Any) -> dict[str, Any]:
    levels = [
        summarise_level([one for one in records if one.concurrency == level], 3.21, level)
        for level in sorted({one.concurrency for one in records})
    ]
    return pass_summary(records, levels) | changes


def coding(records: list[RequestRecord], passed: int | None, total: int | None, **changes: Any) -> dict[str, Any]:
    scored: dict[str, Any] = {"passed": passed, "total": total, "graded": total is not None, "tasks": []}
    return summary(records, **scored | {"truncated": 0, "not_scored": 0, "text_sha256": "ab"} | changes)


FIVE = [fixture_record(prompt_id=f"p{index}") for index in range(5)]
GOOD = {"coding": [coding(FIVE, 5, 5)]}


def item(
    summaries: dict[str, Any], outcome: Outcome = Outcome.PASSED, failure: Failure | None = None, **changes: Any
) -> dict[str, Any]:
    return result_item(
        id="E17",
        sweep=None,
        attempt=1,
        outcome=outcome,
        config=TREE,
        effective=effective_config(TREE),
        workload=Workload(),
        engine_version="0.5.23",
        boot_s=12.5,
        summaries=summaries,
        failure=failure,
        measured_on="demo",
        started_at="2026-12-02T14:00:00.000Z",
        finished_at="2026-12-02T14:09:00.000Z",
        **changes,
    )


def test_the_line_that_engineers_read() -> None:
    """Each figure says which requests it came from."""
    line = verdict_line(TREE, GOOD, Outcome.PASSED, None)
    assert line == "coding 5/5 · 150.1 tok/s e2e, 160.0 decode at c=1 · τ 4.81 (ΣC/ΣV, 5 requests)"


def test_item_has_the_decided_keys() -> None:
    """All of INTERFACES's keys, the figures of the fixture, and JSON without NaN."""
    found = item(GOOD)
    assert [key for key in INTERFACE_KEYS if key not in found] == []
    assert found["coding"] == {"passed": 5, "total": 5}
    assert (found["tau"], found["tau_n"], found["tau_definition"]) == (4.81, 5, "ΣC/ΣV")
    assert (found["completion_tokens"], found["verify_steps"]) == (5 * 481, 500)
    assert found["tok_s_e2e"] == pytest.approx(481 / 3.205, rel=1e-3)
    assert (found["step_ms"], found["ttft_p50_ms"], found["tpot_p50_ms"]) == (30.0, 200.0, 6.25)
    assert found["text_sha256"] == "ab"
    json.dumps(found, allow_nan=False)


def test_nothing_measured_is_none() -> None:
    """An attempt that died while loading has no figure and says why."""
    failure = Failure(
        "gpu-oom", "CUDA out of memory while loading", ("line",), "Lower mem-fraction-static.", "load_target"
    )
    found = item({}, Outcome.FAILED, failure)
    figures = ("coding", "tok_s_e2e", "tau", "tau_definition", "tau_n", "completion_tokens", "step_ms", "ttft_p50_ms")
    assert {key: found[key] for key in figures} == dict.fromkeys(figures)
    assert found["verdict"] == "failed: CUDA out of memory while loading"
    assert found["failure"]["cause"] == "gpu-oom"
    assert item({}, Outcome.CANCELLED)["verdict"] == "cancelled"


def test_good_summaries_pass() -> None:
    """Four of five tasks pass too, unless the profile requires more."""
    assert judge(TREE, GOOD) == (Outcome.PASSED, None)
    assert judge(TREE, {"coding": [coding(FIVE, 4, 5)]})[0] is Outcome.PASSED
    assert judge(OFF, {"coding": [coding([record(steps=None)], 1, 1)]})[0] is Outcome.PASSED


def outcome_and_cause(summaries: dict[str, Any], **options: Any) -> tuple[Outcome, str | None]:
    outcome, failure = judge(TREE, summaries, **options)
    return outcome, None if failure is None else failure.cause


def test_failed_requests_fail_the_attempt() -> None:
    """With the server's own words as evidence, and the count in the verdict."""
    bad = record("bad", error="stream-error: boom")
    summaries = {"coding": [coding([*FIVE[:4], bad], 4, 4)]}
    outcome, failure = judge(TREE, summaries)
    assert outcome is Outcome.FAILED
    assert failure is not None
    assert (failure.cause, failure.evidence) == ("requests-failed", ("1 × stream-error: boom",))
    line = verdict_line(TREE, summaries, outcome, failure)
    assert line.startswith("failed: 1 of 5 requests failed · coding 4/4 · ")
    other = verdict_line(TREE, summaries, Outcome.FAILED, Failure("engine-died", "the engine died"))
    assert "1 of 5 coding requests failed" in other


def test_ungraded_answers_fail_the_attempt() -> None:
    """Its speed is still told, and the verdict says why there is no score."""
    summaries = {"coding": [coding(FIVE, None, None, why="no isolation")]}
    outcome, failure = judge(TREE, summaries)
    assert failure is not None
    assert (outcome, failure.what) == (Outcome.FAILED, "not graded: no isolation")
    line = verdict_line(TREE, summaries, Outcome.PASSED, None)
    assert line.startswith("not graded: no isolation · 150.1 tok/s e2e")
    assert outcome_and_cause({"coding": [coding(FIVE, 0, 0)]}) == (Outcome.FAILED, "not-graded")


def test_idle_drafter_fails_the_attempt() -> None:
    """Whether the engine says nothing of verify steps, or nothing was accepted; not where none is configured."""
    silent = {"throughput": [summary([record("a", steps=None)])]}
    refused = {"throughput": [summary([record("a", 100, 100)])]}
    assert outcome_and_cause(silent) == (Outcome.FAILED, "no-speculation")
    assert outcome_and_cause(refused) == (Outcome.FAILED, "zero-accepted")
    assert judge(OFF, silent) == (Outcome.PASSED, None)


def test_fast_and_wrong_is_wrong() -> None:
    """Loops in any pass, and a suite of which nothing passes."""
    looping = [record(f"p{i}", text="again " * 200, finish_reason="length") for i in range(3)]
    assert outcome_and_cause({"throughput": [summary(looping)]}) == (Outcome.WRONG, "answers-loop")
    assert outcome_and_cause({"coding": [coding(FIVE, 0, 5)]}) == (Outcome.WRONG, "coding-none")


@pytest.mark.parametrize(
    ("require", "expected"),
    [
        ({"coding": "5/5"}, "below-required-coding"),
        ({"coding": "80%"}, None),
        ({"coding": "4/5"}, None),
        ({"tau": "4.8"}, None),
        ({"tau": ">= 5"}, "below-required-tau"),
        ({"tok_s_e2e": "200"}, "below-required-tok_s_e2e"),
    ],
)
def test_requirements(require: dict[str, str], expected: str | None) -> None:
    """What the profile requires turns a result wrong when it is not reached."""
    summaries = {"coding": [coding(FIVE, 4, 5)]}
    outcome, cause = outcome_and_cause(summaries, require=require)
    assert cause == expected
    assert outcome is (Outcome.WRONG if expected else Outcome.PASSED)


def test_requirement_of_what_was_not_measured_is_missed() -> None:
    """coding: 5/5 without a coding pass is not reached."""
    summaries = {"throughput": [summary([record("a")])]}
    assert outcome_and_cause(summaries, require={"coding": "5/5"})[1] == "below-required-coding"


@pytest.mark.parametrize("require", [{"codng": "5/5"}, {"coding": "all"}, {"coding": "5/0"}, {"tau": "high"}])
def test_unreadable_requirement_is_refused(require: dict[str, str]) -> None:
    """With the name of what cannot be read."""
    with pytest.raises(UsageError):
        parse_require(require)


def test_warnings_and_levels_stand_behind() -> None:
    """A low τ is a warning, levels above 1 give their throughput, truncated tasks are told apart."""
    slow = [record(f"p{i}", 100, 90) for i in range(5)]
    wide = [record(f"p{i}", concurrency=4) for i in range(4)]
    summaries = {"coding": [coding(slow, 4, 5, truncated=1)], "throughput": [summary([*slow, *wide])]}
    assert judge(TREE, summaries)[0] is Outcome.PASSED
    line = verdict_line(TREE, {"coding": summaries["coding"]}, Outcome.PASSED, None)
    assert line.startswith("coding 4/5 (1 truncated) · ")
    assert line.endswith(" · ⚠ τ 1.11 is below 1.2: the drafter is not helping")
    assert " · 124.6 tok/s at c=4" in verdict_line(TREE, summaries, Outcome.PASSED, None)


def test_repeats_are_pooled_and_the_worst_score_counts() -> None:
    """Two repeats: all their requests in τ and tok/s, the lower score in the verdict."""
    other = [fixture_record(prompt_id=f"p{i}", completion_tokens=100, verify_steps=50) for i in range(5)]
    summaries = {"coding": [coding(FIVE, 5, 5), coding(other, 3, 5)]}
    found = item(summaries)
    assert found["coding"] == {"passed": 3, "total": 5}
    assert (found["tau_n"], found["tau"]) == (10, pytest.approx(581 / 150, abs=1e-4))
    one_decode, other_decode = 480 + 99, 3.0 + 3.0
    assert found["by_prompt"]["p0"] == pytest.approx([581, 6.41, one_decode, other_decode, 581, 150, 6.0])


def test_samples_and_early_ends_are_said() -> None:
    """pass@1 with its samples, tasks that were not asked, and the rule that ended a pass."""
    ended = {"code": "hopeless", "text": "τ 1.50 after 3 prompts is hopeless against E14's 4.80"}
    sampled = coding(FIVE, 13, 15, samples=3, pass_at_1=13 / 15)
    line = verdict_line(TREE, {"coding": [sampled]}, Outcome.PASSED, None)
    assert line.startswith("coding 13/15 (pass@1 87 %, 3 samples a task) · ".replace("87 %", "87%"))
    assert item({"coding": [sampled]})["pass_at_1"] == pytest.approx(13 / 15)
    cut = {"coding": [coding(FIVE[:3], 3, 3, not_asked=2, ended_early=ended)]}
    line = verdict_line(TREE, cut, Outcome.PASSED, None)
    assert line.startswith("coding 3/3 (2 not asked) · ")
    assert line.endswith(f" · coding ended early: {ended['text']}")


def test_item_names_its_suite_and_boot() -> None:
    """What pairs and groups results."""
    found = item(GOOD)
    assert (found["suite"], found["boot"]) == ("quick", None)


def test_what_the_box_left_out_is_said() -> None:
    """Levels that were cut, and levels that were never begun; a reason that stands already is not given twice."""
    boxed = {"throughput": [summary(FIVE, cut=["1/s poisson"], left_out=["2/s poisson", "4/s poisson"])]}
    line = verdict_line(TREE, boxed, Outcome.PASSED, None)
    assert " · throughput cut short by the time box: 1/s poisson" in line
    assert line.endswith(" · throughput left out: 2/s poisson, 4/s poisson (the time box was used up)")
    ended = {"code": "hopeless", "text": "τ 1.50 after 3 prompts is hopeless against E14's 4.80"}
    hopeless = {"throughput": [summary(FIVE, cut=["c=1"], left_out=["c=4"], ended_early=ended)]}
    line = verdict_line(TREE, hopeless, Outcome.PASSED, None)
    assert line.endswith(f" · throughput ended early: {ended['text']} · throughput left out: c=4")


def test_the_boot_is_that_of_the_pass_that_speaks() -> None:
    """Coding was taken over from an attempt on another engine: its figures are that engine's, whatever ran since."""
    taken = {"coding": [coding(FIVE, 5, 5, boot="first")], "throughput": [summary(FIVE, boot="second")]}
    found = item(taken, boot="second")
    assert (found["boot"], found["by_boot"]) == ("first", None)
    assert item(GOOD, boot="second")["boot"] == "second"


def test_repeats_on_two_boots_are_kept_apart() -> None:
    """Both together in `by_prompt`, each alone in `by_boot`."""
    other = [fixture_record(prompt_id=f"p{i}", completion_tokens=100, verify_steps=50) for i in range(5)]
    repeats = {"coding": [coding(FIVE, 5, 5, boot="first"), coding(other, 5, 5, boot="second")]}
    found = item(repeats, boot="second")
    assert found["boot"] == "second"
    assert [found["by_boot"][boot]["p0"][0] for boot in ("first", "second")] == [481, 100]
    assert found["by_prompt"]["p0"][0] == 581


def test_throughput_speaks_where_there_is_no_coding_pass() -> None:
    """Only its concurrency-1 level gives tok/s and τ."""
    records = [record("a", 100, 25), record("b", 100, 50, concurrency=4)]
    found = item({"throughput": [summary(records)]})
    assert (found["tau"], found["tau_n"], found["coding"]) == (4.0, 1, None)
    assert item({"throughput": [summary(records[1:])]})["tau"] is None
