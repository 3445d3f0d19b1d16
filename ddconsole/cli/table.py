"""Tables for people: drawn by rich on a terminal, plain aligned text anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ddconsole.cli.report import cells, clean

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLES = {
    "running": "bold cyan",
    "passed": "green",
    "wrong": "yellow",
    "failed": "red",
    "cancelled": "yellow",
    "interrupted": "yellow",
    "held": "dim",
    "idea": "dim italic",
    "removed": "dim strike",
    "done": "green",
}
"""Colours of words that say a state; the word itself says it too."""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[str] = frozenset()) -> None:
    """A table on stdout. Cells are text from anywhere, shown as it is; `right` names the columns of numbers."""
    cleaned = [[clean(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(columns, cleaned, right)
    else:
        _plain_table(columns, cleaned, right)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str]) -> None:
    """Two spaces between columns, none behind the last."""
    lines = [list(columns), *(list(row) for row in rows)]
    widths = [max(cells(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        padded = [
            " " * (width - cells(text)) + text if name in right else text + " " * (width - cells(text))
            for name, text, width in zip(columns, line, widths, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)


def duration(seconds: float | None) -> str:
    """`45 s`, `9 min`, `2 h 05`; a dash for what is not known."""
    if seconds is None:
        return "—"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d}"


def number(value: float | None, digits: int = 1) -> str:
    """A number with fixed digits; a dash for what is not known."""
    return "—" if value is None else f"{value:.{digits}f}"
