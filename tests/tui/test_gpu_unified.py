"""A card that shares the host's memory: its numbers, and whose they are."""

from __future__ import annotations

import pytest

from ddconsole.tui.draw.gpus import gpus

CARD = {"index": 0, "name": "NVIDIA GB10", "utilization_pct": 40.0, "memory_used_mib": 31_153,
        "memory_total_mib": 124_610, "temperature_c": 35.0, "power_w": 11.17, "power_limit_w": None,
        "memory_source": "/proc/meminfo"}  # fmt: skip


def text(width: int, height: int, **other: object) -> list[str]:
    """The panel's lines."""
    return [line.plain.rstrip() for line in gpus([CARD | other], {}, width, height)]


def test_the_source_stands_under_the_card() -> None:
    """A quarter of the host's memory, in the same bar as any card's."""
    _, row, note = text(60, 6)
    assert "25%" in row.replace(" %", "%")
    assert "30/122" in row
    assert note == "unified memory: the host's (/proc/meminfo)"


def test_other_cards_say_nothing_of_a_source() -> None:
    """Theirs is their own."""
    assert len(text(60, 6, memory_source=None)) == 2


def test_memory_that_is_not_told_divides_nothing() -> None:
    """Dashes."""
    lines = text(60, 6, memory_used_mib=None, memory_total_mib=None, memory_source=None)
    assert "0/" not in lines[1]
    assert "–" in lines[1]


@pytest.mark.parametrize("height", [1, 2, 3])
@pytest.mark.parametrize("width", [8, 20, 40])
def test_the_note_takes_only_room_that_is_left(width: int, height: int) -> None:
    """And never more cells than there are."""
    lines = gpus([CARD], {}, width, height)
    assert len(lines) <= height
    assert all(line.cell_length <= width for line in lines)
