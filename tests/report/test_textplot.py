"""Plots in plain characters, and the axes that all plots share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.report.scale import scale_of
from ddconsole.report.textplot import MARKS, Point, scatter

FOUR = [Point(8, 120, "E1"), Point(12, 140, "E2"), Point(16, 141, "E3"), Point(24, 130, "E4")]


def test_scatter_with_its_axes_and_legend() -> None:
    """Marks stand at their values, ticks are round, every mark has its line in the legend.

    33 columns for 5 to 25: budget 8 is column 3/20 · 32 = 4.8, budget 24 column 30.4.
    """
    assert scatter(FOUR, "budget", "tok/s", width=33, height=7) == [
        "tok/s",
        "150 ┤",
        "    │",
        "140 ┤           b      c",
        "    │",
        "130 ┤                              d",
        "    │",
        "120 ┤     a",
        "    └┴───────┴───────┴───────┴───────┴",
        "     5      10      15      20      25",
        "     budget",
        "  a  E1",
        "  b  E2",
        "  c  E3",
        "  d  E4",
    ]


def test_joined_points_have_dots_between() -> None:
    """On straight lines."""
    lines = scatter([Point(0, 0, "a"), Point(10, 10, "b")], "x", "y", width=21, height=11, joined=True)
    inside = [line.partition("┤" if "┤" in line else "│")[2] for line in lines[1:12]]
    dots = [(column, 10 - row) for row, line in enumerate(inside) for column, sign in enumerate(line) if sign == "·"]
    assert dots
    assert all(abs(column / 2 - height) <= 0.5 for column, height in dots)


def test_points_at_one_place_are_said_to_be_several() -> None:
    """Neither hides the other silently; one point alone is drawn too, and none is said."""
    lines = scatter([Point(1, 1, "a"), Point(1, 1, "b"), Point(2, 2, "c")], "x", "y")
    assert any("+" in line for line in lines[:17])
    assert lines[-1] == "  +  several at one place"
    assert any("a" in line for line in scatter([Point(1, 1, "E1")], "x", "y")[:17])
    assert scatter([], "x", "y") == ["y over x: nothing to draw"]


def test_more_points_than_letters() -> None:
    """They are stars."""
    lines = scatter([Point(n, n, f"E{n}") for n in range(len(MARKS) + 3)], "x", "y", width=60, height=40)
    assert lines[-1] == "  *  E28"


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([3.5, 4.7], ["3.50", "3.75", "4.00", "4.25", "4.50", "4.75"]),
        ([0.0, 100.0], ["0", "20", "40", "60", "80", "100"]),
        ([-9.5, 12.6], ["-10", "-5", "0", "5", "10", "15"]),
        ([100.0, 100.0], ["90", "95", "100", "105", "110"]),
        ([0.0], ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_and_told_in_full(values: list[float], labels: list[str]) -> None:
    """1, 2, 2.5 or 5 times a power of ten, with the digits that they need."""
    scale = scale_of(values, 0, 100)
    assert [scale.label(tick) for tick in scale.ticks()] == labels


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_scales_hold_their_values(values: list[float]) -> None:
    """Inside of the frame, with a readable number of ticks."""
    scale = scale_of(values, 0, 100)
    assert all(-1e-6 <= scale.at(value) <= 100 + 1e-6 for value in values)
    assert 2 <= len(scale.ticks()) <= 12
