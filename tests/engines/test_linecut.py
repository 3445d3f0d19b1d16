"""Bytes cut anywhere become clean pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.engines.sglang.linecut import PIECE_LIMIT, LineCutter, Piece, Redrawn, clean


def pieces_of(cutter: LineCutter, data: bytes) -> list[Piece]:
    """What the cutter gives, blocks and runs of states taken apart."""
    found: list[Piece] = []
    for item in cutter.cut(data):
        if isinstance(item, Piece):
            found.append(item)
        elif isinstance(item, Redrawn):
            found += [Piece(state, False) for state in item.text[:-1].split("\r")]
        else:
            found += [Piece(line, True) for line in item[:-1].split("\n")]
    return found


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("up\x1b[A\x1b[2Kdown", "updown"),
        ("bell\x07 back\x08 del\x7f c1\x9b31m", "bell back del c131m"),
        ("a\tb", "a    b"),
        ("\u202eevil\u202c", "evil"),
        ("\x1b", ""),
        ("█ τ", "█ τ"),
    ],
)
def test_no_escape_sequence_and_no_control_character_is_passed_on(raw: str, shown: str) -> None:
    """Text from the host is data."""
    assert clean(raw) == shown


def test_line_ends() -> None:
    """`\\r\\n` is one line end; a `\\r` ends what a terminal would overwrite."""
    assert pieces_of(LineCutter(), b"a\r\nb\rc\n\nd") == [
        Piece("a", True), Piece("b", False), Piece("c", True), Piece("", True),
    ]  # fmt: skip


def test_a_return_at_the_end_waits_for_its_newline() -> None:
    """Cut between `\\r` and `\\n`."""
    cutter = LineCutter()
    assert pieces_of(cutter, b"a\r") == []
    assert cutter.peek() == "a"
    assert pieces_of(cutter, b"\nb\r") == [Piece("a", True)]
    assert pieces_of(cutter, b"c") == [Piece("b", False)]


def test_bad_bytes_and_cut_characters() -> None:
    """One bad byte costs one sign; a character over two packets is whole."""
    cutter = LineCutter()
    assert pieces_of(cutter, b"caf\xe9 bad\n\xe2\x96") == [Piece("caf\ufffd bad", True)]
    assert pieces_of(cutter, b"\x88\n") == [Piece("█", True)]


def test_an_endless_line_is_told_once_and_its_rest_dropped() -> None:
    """Memory is bounded, and the rest is not read as a fresh line."""
    cutter = LineCutter()
    pieces = [piece for _ in range(40) for piece in pieces_of(cutter, b"x" * 10_000)]
    assert [len(piece.text) for piece in pieces] == [PIECE_LIMIT]
    assert pieces_of(cutter, b"[not a line]\nnext\n") == [Piece("next", True)]


@settings(deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_the_cut_changes_nothing(data: bytes, cuts: list[int]) -> None:
    """Any bytes, cut anywhere, give the same pieces and the same rest."""
    whole, parts = LineCutter(), LineCutter()
    expected = pieces_of(whole, data)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert [piece for a, b in pairwise(edges) for piece in pieces_of(parts, data[a:b])] == expected
    assert parts.peek() == whole.peek()
