"""Alarms for answers that loop, are empty or garbage, and for a drafter that does nothing."""

import random
import time

import pytest
from fakes.records import record

from ddconsole.core.levels import sums_of
from ddconsole.core.quality import (
    Level,
    compare_texts,
    divergence,
    fault_of,
    inspect_drafter,
    inspect_records,
    is_garbage,
    loop_chars,
    self_divergence,
)

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


def test_divergence_against_its_floor() -> None:
    """Answers that leave the reference's more often than it leaves itself are a warning."""
    records = [record("a", text="x"), record("b", text="y"), record("c", text="z")]
    references = {"a": "x", "b": "other", "z": "never asked"}
    assert divergence({"a": "x", "b": "y"}, references) == 0.5
    (finding,) = compare_texts(records, references, 0.1)
    assert (finding.level, finding.prompts) == (Level.WARN, ("b",))
    assert compare_texts(records, references, 0.5) == ()
    assert compare_texts(records, {}, None) == ()
    assert [found.level for found in compare_texts(records, references, None)] == [Level.NOTE]


def test_self_divergence_is_over_repeated_prompts() -> None:
    """Prompts asked once say nothing."""
    asked = [record("a", text="x"), record("a", text="x"), record("b", text="x"), record("b", text="y"), record("c")]
    assert self_divergence(asked) == 0.5
    assert self_divergence([record("c")]) is None
