"""The toy language: a lossless tokenizer, exact recall, and shipped prompts that are all covered."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.demo.decode import autoregressive
from ddconsole.demo.language import END, FALLBACK, LoopingRecall, Recall, Tokenizer, load_language

LANGUAGE = load_language()
DOCUMENTS = {doc.id: doc for doc in LANGUAGE.documents}


@functools.cache
def suite(name: str) -> list[dict[str, Any]]:
    text = resources.files("ddconsole.passes").joinpath(f"suites/{name}.json").read_text("utf-8")
    data: list[dict[str, Any]] = json.loads(text)
    return data


def say(text: str, limit: int = 1000) -> str:
    """The target's greedy answer to a prompt."""
    return LANGUAGE.tokenizer.decode(autoregressive(LANGUAGE.recall(text), max_new_tokens=limit))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_tokenizing_is_lossless(text: str) -> None:
    """Any text comes back, with pieces that the vocabulary has never seen."""
    assert LANGUAGE.tokenizer.decode(LANGUAGE.tokenizer.encode(text)) == text


def test_corpus_text_needs_no_bytes() -> None:
    """The vocabulary covers its corpus, and unknown words are spelt in bytes."""
    tokenizer = Tokenizer(["def add(a, b):\n    return a"])
    assert len(tokenizer.encode("\n    return a")) == 3
    assert len(tokenizer.encode("zebra")) == len(b"zebra")


def test_corpus_is_small() -> None:
    """At most about 15,000 tokens, with one document of about 3,000 for the window."""
    assert 8_000 < sum(map(len, LANGUAGE.streams.values())) <= 15_000
    assert 2_800 < len(LANGUAGE.prompt_tokens(DOCUMENTS["long-handbook"].prompt)) < 3_300


def test_no_document_is_lost_between_marks() -> None:
    """Every mark in the file belongs to a document that was read."""
    text = resources.files("ddconsole.demo").joinpath("data/corpus.txt").read_text("utf-8")
    assert text.count("<|doc ") == text.count("<|end|>") == len(DOCUMENTS) == len(LANGUAGE.documents)


@pytest.mark.parametrize(
    ("name", "key", "least"), [("small", "prompt", 5), ("code", "text", 8), ("mixed", "text", 12), ("long", "text", 3)]
)
def test_every_shipped_prompt_is_covered(name: str, key: str, least: int) -> None:
    """The engine's answer to each prompt that ships is the corpus's own, whole and ended by the end mark."""
    entries = suite(name)
    assert len(entries) >= least
    answers = {doc.prompt: doc.answer for doc in LANGUAGE.documents}
    for entry in entries:
        assert say(entry[key]) == answers[entry[key]], entry["id"]
        assert autoregressive(LANGUAGE.recall(entry[key]), max_new_tokens=512)[-1] == END, entry["id"]


@pytest.mark.parametrize("task", suite("small"), ids=lambda task: task["id"])
def test_coding_answers_pass_the_hidden_tests(task: dict[str, Any]) -> None:
    """One fenced block, which is the reference, defines the entry point and passes; the tests can also fail."""
    (block,) = re.findall(r"```python\n(.*?)```", say(task["prompt"]), re.DOTALL)
    assert block == task["reference"]
    assert f"def {task['entry_point']}(" in block
    assert python(block + "\n" + task["tests"]) == 0
    assert python(f"def {task['entry_point']}(*args): return None\n" + task["tests"]) != 0


def python(source: str) -> int:
    """The exit status of `source` in an interpreter of its own."""
    run = subprocess.run([sys.executable, "-I", "-c", source], capture_output=True, timeout=20, check=False)
    return run.returncode


@pytest.mark.parametrize("wrap", ["{}", "{}\n\n", "Be brief.\n\n{}\n\nAnswer with code only.", "Q: {}\nA:"])
def test_a_prompt_is_found_inside_other_words(wrap: str) -> None:
    """Instructions around a known prompt do not matter."""
    doc = DOCUMENTS["code-sieve"]
    assert say(wrap.format(doc.prompt)) == doc.answer


def test_a_begun_answer_is_continued() -> None:
    """A prompt with the beginning of its answer gets the rest of it."""
    doc = DOCUMENTS["code-sieve"]
    begun = doc.answer[: doc.answer.index("\n\n```")]
    assert begun + say(doc.prompt + "\n\n" + begun) == doc.answer


def test_corpus_text_is_continued_from_its_longest_suffix() -> None:
    """Text from the middle of the corpus goes on as the corpus does."""
    assert say("nobody saw it coming: You need flour, water, salt,").startswith(" a starter and a good deal")


def test_an_unknown_prompt_gets_the_fallback() -> None:
    """What resembles nothing in the corpus is answered by saying so."""
    assert say("Qwxyz?") == DOCUMENTS[FALLBACK].answer


def test_ignoring_the_end_mark_starts_the_answer_again() -> None:
    """The row of tokens has no end of its own."""
    recall = Recall([5, 6, END])
    assert autoregressive(recall, max_new_tokens=7, ignore_eos=True) == [5, 6, END, 5, 6, END, 5]
    assert autoregressive(recall, max_new_tokens=7) == [5, 6, END]


def test_broken_output_repeats_and_never_ends() -> None:
    """The failure's text begins right and then loops for ever."""
    looping = LoopingRecall(LANGUAGE.recall(DOCUMENTS["code-sieve"].prompt), right=6, loop=2)
    tokens = autoregressive(looping, max_new_tokens=400)
    assert len(tokens) == 400
    assert tokens[:6] == autoregressive(LANGUAGE.recall(DOCUMENTS["code-sieve"].prompt), max_new_tokens=6)
    assert tokens[4:] == tokens[4:6] * 198
