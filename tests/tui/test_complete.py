"""What Tab makes of a line: a table."""

from __future__ import annotations

import pytest
from tui.story import queue_document

from ddconsole.tui.complete import complete, own_word

ITEMS = queue_document("E14")["items"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mov", ["move"]),
        ("re", ["release", "remove", "redo", "retry"]),
        ("hold ", ["E15", "E16", "S2"]),
        ("hold E15 ", ["E16", "S2"]),
        ("release ", ["E17", "S2"]),
        ("cancel ", ["E14"]),
        ("retry ", []),
        ("edit e1", ["E14", "E15", "E16", "E17", "E18"]),
        ("clone E15 b", ["b=", "block_size=", "budget=", "base="]),
        ("clone E15 b=16 b", ["block_size=", "budget=", "base="]),
        ("add algorithm=", ["tree", "chain", "off"]),
        ("add passes=coding,t", ["throughput"]),
        ("after b=16 B=m", ["match"]),
        ("move E15 ", ["E16", "E17", "E18", "S2", "top", "up", "down", "bottom"]),
        ("move E15 t", ["top"]),
        ("order ", ["restarts", "information", "drift"]),
        ("undo ", []),
        ("xyz ", []),
    ],
)
def test_what_could_stand_there(text: str, found: list[str]) -> None:
    """Verbs, then what the verb takes: ids that it may name, knobs, values."""
    assert list(complete(text, ITEMS).found) == found


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ("mov", "move "),
        ("re", "re"),
        ("edit e1", "edit E1"),
        ("clone E15 bl", "clone E15 block_size="),
        ("add w=", "add w="),
    ],
)  # fmt: skip
def test_as_far_as_they_agree(text: str, common: str) -> None:
    """A single one is finished, a key waits for its value."""
    assert complete(text, ITEMS).common(text) == common


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("q", "quit"), (" Quit ", "quit"), ("q!", "quit"), ("quit now", None), ("help", "help"), ("help add", "help"),
        ("order", "order"), ("order information", "order information"), ("order E3", None), ("add b=16", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_consoles_own_words(text: str, word: str | None) -> None:
    """Only what cannot be meant for the queue."""
    assert own_word(text) == word
