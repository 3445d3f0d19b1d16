"""The bar of keys: the useful ones that fit, dim where they cannot be used now. A click on one presses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from ddconsole.tui import keys, theme
from ddconsole.tui.facts import Moment
from ddconsole.tui.text import fit_content, styled

if TYPE_CHECKING:
    from textual import events

GAP = "  "

ROOMY = 100
"""Cells of a screen from which the long labels are used."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a key stands on the bar: line, first cell, and one past its last."""

    line: int
    start: int
    end: int
    action_id: str


class KeyBar(Widget):
    """As many lines of keys as the stylesheet gives it. What can be used now comes before what cannot."""

    @dataclass
    class Pressed(Message):
        """A key was clicked."""

        action_id: str

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._now = Moment()
        self._content = Content("")
        self._spots: list[Spot] = []

    def show(self, now: Moment) -> None:
        """Take in what can be done now; repaints only when that differs."""
        if now != self._now:
            self._now = now
            self._lay_out()

    def on_resize(self) -> None:
        """Another room, other keys."""
        self._lay_out()

    def on_click(self, event: events.Click) -> None:
        """Press what was clicked."""
        for spot in self._spots:
            if spot.line == event.y and spot.start <= event.x < spot.end:
                self.post_message(self.Pressed(spot.action_id))

    def render(self) -> Content:
        """The lines as they stand."""
        return self._content

    def _lay_out(self) -> None:
        width, height = self.content_size
        help_part = self._part("help")
        chosen = self._that_fit(width, height, help_part.cell_length)
        lines = [[_id for _id in line if _id in chosen] for line in self._lines(chosen, width, help_part.cell_length)]
        self._spots = []
        rows = [self._row(number, line) for number, line in enumerate(lines)] or [Content(" ")]
        rows += [Content(" ")] * (height - len(rows))
        rows[-1] = fit_content(rows[-1], width - help_part.cell_length - 1) + help_part
        self._spots.append(Spot(len(rows) - 1, width - help_part.cell_length - 1, width, "help"))
        content = Content("\n").join(rows)
        if not content.is_same(self._content):
            self._content = content
            self.refresh()

    def _that_fit(self, width: int, height: int, taken: int) -> frozenset[str]:
        """First what can be used, then what cannot, each in the bar's order, as long as there is room."""
        wanted = self._wanted()
        usable = [name for name in wanted if keys.BY_ID[name].why_not(self._now) is None]
        chosen: list[str] = []
        for name in [*usable, *(name for name in wanted if name not in usable)]:
            if len(self._lines([*chosen, name], width, taken)) <= height:
                chosen.append(name)
        return frozenset(chosen)

    def _lines(self, names: frozenset[str] | list[str], width: int, taken: int) -> list[list[str]]:
        """The keys in the bar's order, broken into lines; the last line leaves room for the help."""
        lines: list[list[str]] = [[]]
        room, at = width - 1, 1
        for name in (name for name in keys.BAR_ORDER[self._now.focus] if name in names):
            cells = self._part(name).cell_length
            if lines[-1] and at + cells > room:
                lines.append([])
                at = 1
            lines[-1].append(name)
            at += cells + len(GAP)
        if at - len(GAP) > width - taken - 2:
            lines.append([])
        return lines

    def _row(self, number: int, names: list[str]) -> Content:
        at, parts = 1, []
        for name in names:
            part = self._part(name)
            self._spots.append(Spot(number, at, at + part.cell_length, name))
            parts.append(part)
            at += part.cell_length + len(GAP)
        return Content(" ") + Content(GAP).join(parts)

    def _wanted(self) -> list[str]:
        """The bar's order; of start and pause only the one that can be done."""
        start, pause = (keys.BY_ID[name].why_not(self._now) is None for name in ("start", "pause"))
        hidden = "pause" if start or not pause else "start"
        return [action_id for action_id in keys.BAR_ORDER[self._now.focus] if action_id != hidden]

    def _part(self, action_id: str) -> Content:
        action = keys.BY_ID[action_id]
        pair = [action, *([keys.BY_ID[action.also]] if action.also else [])]
        key = "/".join(one.shown_key for one in pair)
        label = self._label(action)
        if action.why_not(self._now) is not None:
            return styled(f"{key} {label}", theme.DIM)
        return styled(key, f"bold {theme.ACCENT}") + styled(f" {label}", theme.MUTED)

    def _label(self, action: keys.Action) -> str:
        """The word for what the key would do now."""
        if action.id == "hold" and self._now.selected_state == "held":
            return "release"
        return action.short if action.short and self.app.size.width < ROOMY else action.label
