"""Prompt sets and suites: the shipped ones, and a user's own with errors that name the line."""

from pathlib import Path

import pytest

from ddconsole.core.errors import UsageError
from ddconsole.passes.prompts import CODING_SUITES, PROMPT_SETS, load_prompts, load_suite


@pytest.mark.parametrize("name", PROMPT_SETS)
def test_shipped_prompt_sets(name: str) -> None:
    """They load, are not empty, and every prompt gets the pass's length."""
    prompts = load_prompts(name, 96)
    assert prompts
    assert {prompt.max_tokens for prompt in prompts} == {96}


@pytest.mark.parametrize("name", CODING_SUITES)
def test_shipped_suites(name: str) -> None:
    """Every task has tests, and a reference that defines its entry point."""
    for task in load_suite(name):
        assert "assert" in task.tests
        assert task.entry_point in task.reference


def test_users_own_prompts(tmp_path: Path) -> None:
    """`text` or `prompt`, an id or its line, its own shorter length, a byte order mark, empty lines."""
    file = tmp_path / "mine.jsonl"
    file.write_text('\ufeff{"id": "a", "text": "one"}\n\n{"prompt": "two", "max_tokens": 7}\n', "utf-8")
    first, second = load_prompts(str(file), 50)
    assert (first.id, first.text, first.max_tokens) == ("a", "one", 50)
    assert (second.id, second.text, second.max_tokens) == ("line-2", "two", 7)


def test_users_own_suite(tmp_path: Path) -> None:
    """Tests as text or as a list of statements."""
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "t", "prompt": "p", "entry_point": "f", "tests": ["assert f() == 1", "assert f()"]}\n')
    (task,) = load_suite(str(file))
    assert task.tests == "assert f() == 1\nassert f()"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{oops", "line 2: not JSON"),
        ('["a"]', "line 2: expected an object"),
        ('{"id": "b"}', "line 2: expected text under text or prompt"),
        ('{"text": "b", "max_tokens": 0}', "line 2: max_tokens"),
        ('{"id": "a", "text": "b"}', "stands more than once"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    """File, line, and what was expected."""
    file = tmp_path / "mine.jsonl"
    file.write_text(f'{{"id": "a", "text": "x"}}\n{line}\n')
    with pytest.raises(UsageError) as caught:
        load_prompts(str(file), 10)
    assert words in caught.value.what
    assert "mine.jsonl" in caught.value.what


def test_missing_set_names_the_shipped_ones() -> None:
    """So that the next try is right."""
    with pytest.raises(UsageError) as caught:
        load_prompts("cod", 10)
    assert caught.value.evidence == ("shipped: code, mixed, long, agentic",)


def test_empty_and_broken_files(tmp_path: Path) -> None:
    """No entries, and no UTF-8."""
    empty, broken = tmp_path / "empty.jsonl", tmp_path / "broken.jsonl"
    empty.write_text("\n\n")
    broken.write_bytes(b"\xff\xfe\x00")
    for file, words in ((empty, "holds no entries"), (broken, "cannot be read")):
        with pytest.raises(UsageError, match=words):
            load_suite(str(file))


def test_the_agentic_set_is_longer_than_a_drafters_window() -> None:
    """At least four transcripts, two of them of 10 kB or more: over 2,048 tokens at five characters a token."""
    sizes = sorted(len(prompt.text.encode()) for prompt in load_prompts("agentic", 96))
    assert len(sizes) >= 4
    assert sizes[-2] > 5 * 2048
