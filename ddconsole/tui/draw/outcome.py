"""How an attempt ended: its verdict, or its failure in three lines (what, evidence, advice); and what was noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.content import Content

from ddconsole.core import events
from ddconsole.tui import theme
from ddconsole.tui.draw.stage import OUTCOME_MARKS
from ddconsole.tui.text import fit_content, join, styled, wrap, wrap_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.runner.feed import View

ECHOES = {"block-size-mismatch": "trained-block-size"}
"""What the log says of a matter, and the finding of preflight that is the same matter."""
LEVEL_MARKS = {"block": ("✘", theme.BAD), "warn": ("⚠", theme.WARN), "note": ("·", theme.MUTED)}
"""Glyph and style of a finding's level."""


def verdict_lines(finished: events.ExperimentFinished, width: int) -> list[Content]:
    """The verdict, marked by its outcome."""
    glyph, style = OUTCOME_MARKS.get(finished.outcome, ("✔", theme.MUTED))
    word = styled(f"{glyph} {finished.outcome}", f"bold {style}")
    figures = wrap([styled(figure) for figure in finished.verdict.split(" · ") if figure], width - 2, " · ")
    return [word, *(fit_content(Content("  ") + line, width) for line in figures[:3])]


def failure_lines(failure: Mapping[str, Any], width: int, most: int) -> list[Content]:
    """What happened, the log lines that show it, and what to do: the first and the last are never left out."""
    what = wrap_words(failure.get("what") or failure.get("cause") or "it failed", width - 2, 2)
    advice = wrap_words(failure.get("advice") or "", width - 2, 2)
    room = max(0, most - min(len(what), 1) - min(len(advice), 1))
    evidence = list(failure.get("evidence") or ())[: max(1, room - (len(what) + len(advice) > 3))]
    lines = [styled(f"{'✘' if index == 0 else ' '} {line}", f"bold {theme.BAD}") for index, line in enumerate(what)]
    lines += [fit_content(styled(f"│ {str(line).strip()}", theme.MUTED), width) for line in evidence]
    lines += [
        styled("→ " if index == 0 else "  ", theme.ACCENT) + styled(line) for index, line in enumerate(advice) if line
    ]
    return lines


def notice_lines(view: View, width: int) -> list[Content]:
    """What is wrong with the line, what preflight or the log found; gravest and newest first, at most three."""
    if view.finished is not None and view.finished.failure is not None:
        return []
    order = {"block": 0, "warn": 1, "note": 2}
    said = {body.code for _, body in view.notices if isinstance(body, events.FindingSeen)}
    found = [_notice(body) for _, body in reversed(view.notices) if not _is_echo(body, said)]
    unique = list(dict.fromkeys(found))
    unique.sort(key=lambda notice: order.get(notice[0], 1))
    line = view.connection
    if line is not None and line.state in ("lost", "unreachable", "waiting") and line.detail:
        unique[:0] = [("block", line.detail), *([("note", f"→ {line.advice}")] if line.advice else [])]
    return [_notice_line(level, text, width) for level, text in unique[:3]]


def _is_echo(body: events.FindingSeen | events.Warned, said: set[str]) -> bool:
    """Whether the log repeats what preflight has said already, and said with its price."""
    return isinstance(body, events.FindingSeen) and ECHOES.get(body.code) in said


def _notice(body: events.FindingSeen | events.Warned) -> tuple[str, str]:
    return ("warn", body.text) if isinstance(body, events.Warned) else (body.level, body.text)


def _notice_line(level: str, text: str, width: int) -> Content:
    glyph, style = LEVEL_MARKS.get(level, LEVEL_MARKS["note"])
    return fit_content(join([styled(glyph, style), styled(text, style)], " "), width)
