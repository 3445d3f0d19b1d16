"""Which panel a narrow screen shows below the running one: names side by side, the shown one marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from ddconsole.tui import theme
from ddconsole.tui.text import styled

if TYPE_CHECKING:
    from textual import events


class TabStrip(Widget):
    """Names of panels; a click shows one."""

    @dataclass
    class Chosen(Message):
        """A name was clicked."""

        panel: str

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(id="tabs")
        self._names = names
        self._shown = names[0]

    def show(self, panel: str) -> None:
        """Mark the one that is shown."""
        self._shown = panel
        self.refresh()

    def render(self) -> Content:
        """The names."""
        return Content(" ").join(
            styled(f" {name} ", f"bold reverse {theme.ACCENT}")
            if name == self._shown
            else styled(f" {name} ", theme.MUTED)
            for name in self._names
        )

    def on_click(self, event: events.Click) -> None:
        """Show what was clicked."""
        at = 0
        for name in self._names:
            if at <= event.x < at + len(name) + 2:
                self.post_message(self.Chosen(name))
            at += len(name) + 3
