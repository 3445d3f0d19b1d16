"""A config that solves fewer tasks than its control: wrong beyond chance, a warning within it, nothing without one."""

from math import comb
from typing import Any

import pytest

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.control_score import Behind, CodingScore, behind, sign_more
from ddconsole.core.experiment import Outcome
from ddconsole.core.verdict import judge, verdict_line

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)


def coding(passed: int, total: int = 5, **changes: Any) -> dict[str, Any]:
    """A summary of a coding pass whose first `passed` tasks pass; no speed in it."""
    tasks = [
        {"id": f"t{place}", "verdict": "passed" if place < passed else "failed", "detail": "assert 1 == 2"}
        for place in range(total)
    ]
    fields = {"passed": passed, "total": total, "graded": True, "tasks": tasks, "suite": "small", "max_tokens": 1024}
    return fields | {"requests": total, "failed": 0} | changes


def score(*rounds: dict[str, Any], id_: str = "E1") -> CodingScore:
    found = CodingScore.of(id_, rounds)
    assert found is not None
    return found


def judged(mine: dict[str, Any], control: CodingScore | None, **options: Any) -> tuple[Outcome, str, str]:
    """Outcome, cause, and the whole verdict."""
    summaries = {"coding": [mine]}
    outcome, failure = judge(TREE, summaries, control=control, **options)
    return outcome, "" if failure is None else failure.cause, verdict_line(TREE, summaries, outcome, failure, control)


def test_one_of_five_beside_five_of_five_is_wrong_and_names_both() -> None:
    """It stood alone as the fastest before."""
    outcome, cause, line = judged(coding(1), score(coding(5)))
    assert (outcome, cause) == (Outcome.WRONG, "coding-below-control")
    assert line.startswith("wrong: coding 1/5 where its control E1 has 5/5: more than chance (p 0.048) · coding 1/5")
    assert line.count("its control") == 1


@pytest.mark.parametrize("passed", [2, 3, 4])
def test_what_may_be_chance_is_a_warning_that_says_so(passed: int) -> None:
    outcome, _, line = judged(coding(passed), score(coding(5)))
    assert outcome is Outcome.PASSED
    assert f"⚠ coding {passed}/5 where its control E1 has 5/5: which may be chance (p " in line


@pytest.mark.parametrize("control", [None, score(coding(1)), score(coding(5, max_tokens=64)), score(coding(0))])
def test_without_a_control_or_beside_another_or_a_worse_one_nothing_changes(control: CodingScore | None) -> None:
    outcome, cause, line = judged(coding(1), control)
    assert (outcome, cause, "control" in line) == (Outcome.PASSED, "", False)


def test_many_tasks_tell_by_their_pairs_what_totals_cannot() -> None:
    """Of 164 tasks 12 lost and 2 won: the sign test's 106/2^14, counted twice; Fisher's alone says nothing."""
    mine, theirs = coding(0, 164), coding(0, 164)
    for place, task in enumerate(mine["tasks"]):
        task["verdict"] = "passed" if place < 138 or place in (162, 163) else "failed"
    for place, task in enumerate(theirs["tasks"]):
        task["verdict"] = "passed" if place < 150 else "failed"
    found = behind(score(mine, id_=""), score(theirs))
    assert found is not None
    assert len(found.lost) == 12
    assert found.chance == pytest.approx(2 * sum(comb(14, heads) for heads in (12, 13, 14)) / 2**14)
    assert found.is_wrong


def test_totals_alone_are_fishers_test() -> None:
    """By hand: 4 of 4 failures among one side's five of ten: C(4,4)·C(6,1)/C(10,5) = 6/252."""
    found = behind(score(coding(1, tasks=[]), id_=""), score(coding(5, tasks=[])))
    assert found == Behind(
        "coding 1/5 where its control E1 has 5/5: more than chance (p 0.024)", pytest.approx(6 / 252), ()
    )


def test_repeats_are_no_evidence_of_their_own() -> None:
    """Three greedy rounds of 3/5 are as telling as one."""
    found, once = (behind(score(*[coding(3)] * times, id_=""), score(coding(5))) for times in (3, 1))
    assert found == once
    assert found is not None
    assert not found.is_wrong


def test_what_could_not_be_scored_pairs_with_nothing() -> None:
    mine = coding(4)
    mine["tasks"][4]["verdict"] = "not-scored"
    assert behind(score(mine, id_=""), score(coding(5))) is None
    assert CodingScore.of("E1", [coding(0, 0)]) is None


def test_the_sign_test_by_hand() -> None:
    assert (sign_more(5, 0), sign_more(4, 0), sign_more(0, 0)) == (1 / 32, 1 / 16, 1.0)


def test_answers_that_leave_the_chain_beyond_its_floor_are_a_warning_unless_the_profile_says_wrong() -> None:
    """The finding is the quality pass's; the outcome is the profile's choice."""
    text = "8 of 8 answers differ from those of E1, it differs from itself in 0 of 8: more than chance (p 7.8e-05)"
    finding = {"level": "wrong", "code": "diverged", "text": text, "prompts": ["p1"]}
    mine = coding(5, findings=[finding])
    assert judged(mine, None, divergence="wrong")[:2] == (Outcome.WRONG, "answers-diverged")
    outcome, _, line = judged(mine, None)
    assert (outcome, f"⚠ {text}" in line) == (Outcome.PASSED, True)
