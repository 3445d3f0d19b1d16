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
    from collections.abc import Mapping

    from textual import events

GAP = "  "


class KeyBar(Widget):
    """One line of keys. `shown_keys` replaces a key's name where a key map has changed it."""

    @dataclass
    class Pressed(Message):
        """A key was clicked."""

        action_id: str

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._now = Moment()
        self._keys: Mapping[str, str] = {}
        self._content = Content("")
        self._spots: list[tuple[int, int, str]] = []

    def show(self, now: Moment, shown_keys: Mapping[str, str] | None = None) -> None:
        """Take in what can be done now; repaints only when that differs."""
        if shown_keys is not None:
            self._keys = shown_keys
        self._now = now
        self._lay_out()

    def on_resize(self) -> None:
        """Another room, other keys."""
        self._lay_out()

    def on_click(self, event: events.Click) -> None:
        """Press what was clicked."""
        for start, end, action_id in self._spots:
            if start <= event.x < end:
                self.post_message(self.Pressed(action_id))

    def render(self) -> Content:
        """The line as it stands."""
        return self._content

    def _lay_out(self) -> None:
        width = self.content_size.width
        help_part = self._part("help")
        room = width - help_part.cell_length - 2 * len(GAP)
        parts, spots, at = [], [], 1
        for action_id in self._wanted():
            part = self._part(action_id)
            if at + part.cell_length > room:
                continue
            parts.append(part)
            spots.append((at, at + part.cell_length, action_id))
            at += part.cell_length + len(GAP)
        line = fit_content(Content(" ") + Content(GAP).join(parts), width - help_part.cell_length - 1)
        content = line + help_part
        self._spots = [*spots, (line.cell_length, content.cell_length, "help")]
        if not content.is_same(self._content):
            self._content = content
            self.refresh()

    def _wanted(self) -> list[str]:
        """The bar's order; of start and pause only the one that can be done."""
        start, pause = (keys.BY_ID[name].why_not(self._now) is None for name in ("start", "pause"))
        hidden = "pause" if start or not pause else "start"
        return [action_id for action_id in keys.BAR_ORDER if action_id != hidden]

    def _part(self, action_id: str) -> Content:
        action = keys.BY_ID[action_id]
        pair = [action, *([keys.BY_ID[action.also]] if action.also else [])]
        key = "/".join(self._keys.get(one.id, one.shown_key) for one in pair)
        label = self._label(action)
        if action.why_not(self._now) is not None:
            return styled(f"{key} {label}", theme.DIM)
        return styled(key, f"bold {theme.ACCENT}") + styled(f" {label}", theme.MUTED)

    def _label(self, action: keys.Action) -> str:
        """The word for what the key would do now."""
        if action.id == "hold" and self._now.selected_state == "held":
            return "release"
        return action.label
