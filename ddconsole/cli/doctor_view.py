"""How `doctor` shows a preflight: a table by topic, each finding under what it is about."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.report import cells, clean
from ddconsole.core.finding_codes import TOPICS, topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.ports import Checked, Finding, Preflight

MARKS = {"block": "✘", "warn": "⚠", "note": "·"}
"""What stands before a finding; the word of its level stands in the last line too."""

COLOURS = {"block": "red", "warn": "yellow", "note": "cyan"}
TOPIC, NAME = 10, 14
"""Cells of the first two columns."""

NARROWEST = 40
WIDEST = 160


def lines(title: str, found: Preflight, width: int) -> Iterator[str]:
    """The whole answer in lines of at most `width` cells, words of the host cleaned."""
    width = min(max(width, NARROWEST), WIDEST)
    yield from _wrapped(title, "", "  ", width)
    for topic in TOPICS:
        checked = [one for one in found.checked if one.topic == topic]
        findings = [one for one in found.findings if topic_of(one.code) == topic]
        if checked or findings:
            yield ""
            yield from _topic(topic, checked, findings, width)
    yield ""
    text, style = _sum(found)
    yield from (click.style(line, **style) for line in _wrapped(text, "", "  ", width))


def _topic(topic: str, checked: list[Checked], findings: list[Finding], width: int) -> Iterator[str]:
    head = click.style(f"{topic:<{TOPIC}}", bold=True)
    for one in checked:
        first, *more = _wrapped(one.text, _padded(one.name, NAME), " " * NAME, width - TOPIC)
        yield head + first
        yield from (" " * TOPIC + line for line in more)
        head = " " * TOPIC
    for finding in findings:
        style: dict[str, Any] = {"fg": COLOURS[finding.level], "bold": finding.level == "block"}
        room = width - TOPIC
        told = [click.style(line, **style) for line in _wrapped(finding.text, f"{MARKS[finding.level]} ", "  ", room)]
        told += _wrapped(finding.advice, "  → ", "    ", room) if finding.advice else []
        yield head + told[0]
        yield from (" " * TOPIC + line for line in told[1:])
        head = " " * TOPIC


def _padded(text: str, width: int) -> str:
    text = clean(text)
    return text + " " * max(1, width - cells(text))


def _wrapped(text: str, first: str, rest: str, width: int) -> list[str]:
    """`text` behind `first`, its further lines behind `rest`."""
    room = max(width - max(cells(first), cells(rest)), 16)
    parts = textwrap.wrap(clean(text), room, break_on_hyphens=False) or [""]
    return [(first if index == 0 else rest) + part for index, part in enumerate(parts)]


def _sum(found: Preflight) -> tuple[str, dict[str, Any]]:
    """`✘ 1 block, ⚠ 2 warnings: a launch would be refused`, and its colour."""
    count = {level: sum(finding.level == level for finding in found.findings) for level in MARKS}
    names = {"block": ("block", "blocks"), "warn": ("warning", "warnings"), "note": ("note", "notes")}
    parts = [f"{MARKS[level]} {n} {names[level][n != 1]}" for level, n in count.items() if n]
    if count["block"]:
        return f"{', '.join(parts)}: a launch would be refused", {"fg": "red", "bold": True}
    return f"✔ nothing stands against a launch{'; ' if parts else ''}{', '.join(parts)}", {"fg": "green"}
