"""Plots in plain characters, for a terminal or a mail."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import TYPE_CHECKING

from ddconsole.report.scale import scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.report.scale import Scale

MARKS = ascii_lowercase
"""Marks of points, in their order; more than these are drawn as `*`."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a plot. `label` is what the legend says."""

    x: float
    y: float
    label: str


def scatter(
    points: Sequence[Point], x_title: str, y_title: str, *, width: int = 72, height: int = 16, joined: bool = False
) -> list[str]:
    """Lines of a plot with its axes and, below, a legend of its marks.

    Args:
        width, height: of the plot's inside, in characters; at least 20 × 5.
        joined: dots on straight lines between neighbours in x.
    """
    if not points:
        return [f"{y_title} over {x_title}: nothing to draw"]
    width, height = max(width, 20), max(height, 5)
    across = scale_of([point.x for point in points], 0, width - 1)
    up = scale_of([point.y for point in points], height - 1, 0, wanted=5)
    cells = [[" "] * width for _ in range(height)]
    if joined:
        for a, b in pairwise(sorted(points, key=lambda point: point.x)):
            _line(cells, across, up, a, b)
    for index, point in enumerate(points):
        row, column = round(up.at(point.y)), round(across.at(point.x))
        taken = cells[row][column] not in (" ", "·")
        cells[row][column] = "+" if taken else mark_of(index)
    return [
        f"{y_title}",
        *_rows(cells, up),
        *_below(across, width, _gutter(up), x_title),
        *(f"  {mark_of(index)}  {point.label}" for index, point in enumerate(points)),
        *(["  +  several at one place"] if any("+" in row for row in cells) else []),
    ]


def mark_of(index: int) -> str:
    """The mark of a point by its place."""
    return MARKS[index] if index < len(MARKS) else "*"


def _line(cells: list[list[str]], across: Scale, up: Scale, a: Point, b: Point) -> None:
    first, last = round(across.at(a.x)), round(across.at(b.x))
    for column in range(first + 1, last):
        share = (column - first) / (last - first)
        row = round(up.at(a.y + (b.y - a.y) * share))
        if cells[row][column] == " ":
            cells[row][column] = "·"


def _gutter(up: Scale) -> int:
    return max(len(up.label(tick)) for tick in up.ticks())


def _rows(cells: list[list[str]], up: Scale) -> list[str]:
    labels = {round(up.at(tick)): up.label(tick) for tick in up.ticks()}
    gutter = _gutter(up)
    return [
        f"{labels.get(row, ''):>{gutter}} {'┤' if row in labels else '│'}{''.join(line)}".rstrip()
        for row, line in enumerate(cells)
    ]


def _below(across: Scale, width: int, gutter: int, title: str) -> list[str]:
    axis, words = ["─"] * width, [" "] * (width + 12)
    free = 0
    for tick in across.ticks():
        column, label = round(across.at(tick)), across.label(tick)
        axis[column] = "┴"
        start = max(column - len(label) // 2, 0)
        if start >= free:
            words[start : start + len(label)] = label
            free = start + len(label) + 1
    head = " " * gutter
    return [f"{head} └{''.join(axis)}", f"{head}  {''.join(words)}".rstrip(), f"{head}  {title}"]
