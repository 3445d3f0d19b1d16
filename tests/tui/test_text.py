"""Text from the host is data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ddconsole.tui import text


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]52;c;aGVsbG8=\x1b\\clip", "clip"),
        ("\x1bP1$r\x1b\\dcs", "dcs"),
        ("\x9b2Jeight-bit", "eight-bit"),
        ("a\x1b[2", "a"),
        ("bell\x07back\x08\r", "bellback"),
        ("two\nlines", "two lines"),
        ("a\tb", "a   b"),
        ("\u202eright to left", "right to left"),
        ("lone \ud800 surrogate", "lone � surrogate"),
        ("[TP0] [/] list[int] {'a[0]'}", "[TP0] [/] list[int] {'a[0]'}"),
        ("漢字 🧪 ok", "漢字 🧪 ok"),
    ],
)
def test_clean(dirty: str, clean: str) -> None:
    """No escape sequence and no control character survives; brackets are only brackets."""
    assert text.clean(dirty) == clean


@given(st.text(max_size=300))
def test_clean_never_lets_a_control_character_through(dirty: str) -> None:
    """Nothing that a terminal acts on, for any input."""
    cleaned = text.clean(dirty)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in cleaned)


def test_clean_cuts_endless_lines() -> None:
    """A line of five megabytes costs no more than a long one."""
    assert len(text.clean("x" * 5_000_000)) == text.LINE_LIMIT


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60), st.integers(0, 40))
def test_fit_is_exact_in_cells(words: str, width: int) -> None:
    """Width is counted in cells, not characters."""
    assert cell_len(text.fit(words, width)) == width
    assert text.fit_content(text.styled(words), width).cell_length == width


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("[2026-12-02 14:00:00 TP3] torch.OutOfMemoryError: CUDA out of memory", "error"),
        ("Traceback (most recent call last):", "error"),
        ("[TP0] WARNING: block size 16 differs from 8", "warning"),
        ("Decode batch, #running-req: 1, accept len: 4.81", "plain"),
        ("errors=0 in terrorize", "plain"),
    ],
)
def test_severity(line: str, level: str) -> None:
    """Bad lines are marked by the words that engines use."""
    assert text.severity(line) == level


def test_wrap_never_splits_a_part() -> None:
    """Phases stay whole."""
    parts = [text.styled(word) for word in ("preflight 2s", "launch 9s", "target 6:12")]
    assert [line.plain for line in text.wrap(parts, 24)] == ["preflight 2s  launch 9s", "target 6:12"]


def test_wrap_words_keeps_everything_or_says_so() -> None:
    """What does not fit ends in an ellipsis."""
    assert text.wrap_words("one two three", 7, 2) == ["one two", "three"]
    assert text.wrap_words("one two three four", 7, 2) == ["one two", "three …"]
