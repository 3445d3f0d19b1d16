"""Alarms for answers that loop, are empty or garbage, and for a drafter that does nothing."""

import random
import time

import pytest
from fakes.records import record

from ddconsole.core.levels import sums_of
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.quality import (
    Control,
    Level,
    compare_texts,
    fault_of,
    inspect_drafter,
    inspect_records,
    is_garbage,
    loop_chars,
    self_divergence,
)
from ddconsole.core.stats import fisher_more

PROSE = (
    "A draft tree holds several guesses for each position. The target looks at all of them in one pass, keeps the "
    "longest path that it would have written itself, and adds one token of its own. So a larger budget never changes "
    "what is said, only how many steps it takes to say it, and each step costs a little more than the one before. "
)
CODE = "def f(x):\n    if x in (1, 2):\n        return [0, 0, 0, 0, 0, 0]\n    return f(x - 1)\n" * 2


@pytest.mark.parametrize("cycle", ["a", "ab ", "the same thing again and again, ", "x = 1\ny = 2\n" * 3])
def test_loop_is_found(cycle: str) -> None:
    """A cycle at the end, after a sensible beginning, however long the cycle is."""
    text = PROSE + cycle * (800 // len(cycle) + 8)
    assert loop_chars(text) >= 240
    assert fault_of(record(text=text, finish_reason="length")) == "loop"


@pytest.mark.parametrize("text", [PROSE, CODE, "=" * 80, "0, " * 40, "| a | b |\n" * 8, ""])
def test_ordinary_repetition_is_no_loop(text: str) -> None:
    """Rules, tables and short runs of zeros are no endless loop."""
    assert loop_chars(text) == 0


def test_repetition_that_ended_by_itself_is_no_loop() -> None:
    """Endless means that only max_tokens ended it."""
    text = PROSE + "again and again, " * 60
    assert fault_of(record(text=text, finish_reason="stop")) is None


def test_search_is_linear_on_hostile_text() -> None:
    """A long text that nearly repeats is searched in well under a second."""
    began = time.perf_counter()
    loop_chars(("a" * 499 + "b") * 200)
    assert time.perf_counter() - began < 1.0


def test_garbage() -> None:
    """Broken characters, or no variety; but code, prose and other scripts are language."""
    assert is_garbage("ok \ufffd\ufffd\ufffd\x00\x01 text")
    assert is_garbage("foo bar " * 100)
    draw = random.Random(1)
    assert is_garbage(" ".join(draw.choice("abc") for _ in range(300)))
    assert not is_garbage(PROSE * 3)
    assert not is_garbage(CODE)
    assert not is_garbage("Ein Baum aus Entwürfen – 草稿树 🌳")


def test_share_decides_between_wrong_and_warning() -> None:
    """One loop in ten may be the prompt's fault; two in ten are the config's."""
    looping = record("bad", text="again " * 200, finish_reason="length")
    good = [record(f"p{i}") for i in range(9)]
    (one,) = [finding for finding in inspect_records([*good, looping]) if finding.code == "loop"]
    (two,) = [finding for finding in inspect_records([*good[:8], looping, looping]) if finding.code == "loop"]
    assert (one.level, two.level) == (Level.WARN, Level.WRONG)
    assert one.prompts == ("bad",)


def test_empty_answers_are_wrong_and_truncation_is_told_apart() -> None:
    """An answer of nothing is wrong; one that was cut is only noted."""
    findings = {
        finding.code: finding.level
        for finding in inspect_records([record(text=" \n"), record("q", finish_reason="length")])
    }
    assert findings == {"empty": Level.WRONG, "truncated": Level.NOTE}


def test_reasoning_that_was_cut_is_not_empty() -> None:
    """max_tokens ended inside of the reasoning: truncated, not empty."""
    codes = [finding.code for finding in inspect_records([record(text="", reasoning=PROSE, finish_reason="length")])]
    assert codes == ["truncated"]


def test_failed_requests_are_not_looked_at() -> None:
    """Their text is no answer."""
    assert inspect_records([record(text="", error="cut: gone")]) == ()


def test_buffered_stream_is_said() -> None:
    """All tokens at the end: no TTFT worth the name."""
    late = record(chunks=((0.97, 1), (1.0, 99)))
    assert [finding.code for finding in inspect_records([late, late])] == ["buffered"]
    assert inspect_records([record()]) == ()


@pytest.mark.parametrize(
    ("changes", "code", "level"),
    [
        ({"steps": None}, "no-speculation", Level.FAILED),
        ({"steps": 100, "accepted_drafts": 0}, "zero-accepted", Level.FAILED),
        ({"steps": 99, "accepted_drafts": None}, "zero-accepted", Level.FAILED),
        ({"steps": 90}, "low-tau", Level.WARN),
    ],
)
def test_idle_drafter(changes: dict[str, object], code: str, level: Level) -> None:
    """A drafter that never engaged has a name; one that hardly helps is a warning."""
    (finding,) = inspect_drafter(sums_of([record("a", **changes)]))
    assert (finding.code, finding.level) == (code, level)


def test_working_drafter_raises_nothing() -> None:
    """And no requests say nothing about a drafter."""
    assert inspect_drafter(sums_of([record()])) == ()
    assert inspect_drafter(sums_of([])) == ()


def control(texts: dict[str, str], differing: int = 0, repeated: int = 8) -> Control:
    return Control("E1", texts, differing, repeated)


def answers(count: int, differing: int) -> list[RequestRecord]:
    return [record(f"p{n}", text="other" if n < differing else "x") for n in range(count)]


@pytest.mark.parametrize(
    ("differing", "floor", "level"),
    [
        (0, (0, 8), None),
        (1, (0, 8), Level.NOTE),
        (3, (0, 8), Level.NOTE),
        (4, (0, 8), Level.WRONG),
        (8, (0, 8), Level.WRONG),
        (4, (2, 8), Level.NOTE),
        (8, (0, 0), Level.NOTE),
    ],
)
def test_divergence_against_the_controls_floor(differing: int, floor: tuple[int, int], level: Level | None) -> None:
    """Wrong only where it is more than what the control does to itself: 3 of 8 against 0 of 8 has p 0.10, 4 has
    0.04; with 2 of 8 as floor 4 says nothing; without a floor nothing is held against a config."""
    same = {f"p{n}": "x" for n in range(8)} | {"never asked": "y"}
    found = compare_texts(answers(8, differing), control(same, *floor))
    assert [finding.level for finding in found] == ([] if level is None else [level])
    if found:
        assert found[0].prompts == tuple(f"p{n}" for n in range(differing))
        assert f"{differing} of 8 answers differ from those of E1" in found[0].text


def test_self_divergence_is_over_repeated_prompts() -> None:
    """Prompts asked once say nothing; failed requests neither."""
    asked = [record("a", text="x"), record("a", text="x"), record("b", text="x"), record("b", text="y"), record("c")]
    assert self_divergence(asked) == (1, 2)
    assert self_divergence([record("c"), record("c", error="cut: gone")]) == (0, 0)
    made = Control.of("E1", asked)
    assert (made.differing, made.repeated, made.texts["b"]) == (1, 2, "x")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((4, 4, 0, 4), 1 / 70),
        ((3, 4, 0, 4), 1 / 14),
        ((4, 8, 0, 8), 1 / 26),
        ((0, 8, 0, 8), 1.0),
        ((1, 2, 1, 2), 5 / 6),
    ],
)
def test_fishers_exact_test(table: tuple[int, int, int, int], expected: float) -> None:
    """By hand: 4 of 4 against 0 of 4 is 1/C(8,4); 3 of 4 is 4·1/C(8,3)·… = C(5,1)/C(8,4); 4 of 8 is C(12,4)/C(16,8)."""
    assert fisher_more(*table) == pytest.approx(expected)
