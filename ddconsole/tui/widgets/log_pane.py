"""The engine's log: looks straight into the feed's ring, draws only the lines in sight, follows unless one reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from ddconsole.runner.feed import Topic
from ddconsole.tui.live import Panel
from ddconsole.tui.text import clean, fit_content, severity, wrap_words

if TYPE_CHECKING:
    from collections import deque
    from datetime import datetime

    from textual import events

    from ddconsole.runner.feed import View

MARKS = {"error": ("✘ ", "log--error"), "warning": ("⚠ ", "log--warning"), "plain": ("  ", "")}
"""Glyph and component class of a line's severity."""

SIDE_STEP = 20
"""Cells that one key moves sideways."""


class LogPane(Panel, ScrollView, can_focus=True):
    """The last lines of the log. Scrolling up stops it from following; the end key, or scrolling down, follows again.

    `_top` counts lines from the first one ever seen, so that text being read stands still while the ring turns.
    """

    ALLOW_MAXIMIZE = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"log--error", "log--warning", "log--empty"}
    topics: ClassVar = frozenset({Topic.LOG})
    BORDER_TITLE = "LOG"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "up", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("left", "side(-1)", "left", show=False),
        Binding("right", "side(1)", "right", show=False),
        Binding("home", "first", "first line", show=False),
        Binding("end,G", "follow", "follow", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="log")
        self._ring: deque[str] | None = None
        self._total = 0
        self._top = 0
        self._side = 0
        self._following = True

    @property
    def following(self) -> bool:
        """New lines come into sight by themselves."""
        return self._following

    def show(self, view: View, now: datetime) -> None:
        """Take in what was written since; one repaint however much that is."""
        self._ring, self._total = view.log, view.log_total
        if self._following:
            self._top = self._last_top
        self._settle()

    @property
    def _count(self) -> int:
        return len(self._ring) if self._ring is not None else 0

    @property
    def _first(self) -> int:
        """Number of the oldest line that is still there."""
        return self._total - self._count

    @property
    def _last_top(self) -> int:
        return max(self._total - self._room, self._first)

    @property
    def _room(self) -> int:
        return max(1, self.content_size.height)

    def _settle(self) -> None:
        """Keep the top within what is there, say how much is below, and repaint."""
        self._top = min(max(self._top, self._first), self._last_top)
        below = self._total - self._top - self._room
        self.border_subtitle = "" if self._following or below <= 0 else f"↓ {below:,} more · end follows"
        self.virtual_size = Size(self.content_size.width, self._count)
        self.refresh()

    def _go_to(self, top: int) -> None:
        self._top = min(max(top, self._first), self._last_top)
        self._following = self._top >= self._last_top
        self._settle()

    def action_step(self, by: int) -> None:
        """Scroll by lines."""
        self._go_to(self._top + by)

    def action_page(self, by: int) -> None:
        """Scroll by what is in sight."""
        self._go_to(self._top + by * self._room)

    def action_first(self) -> None:
        """To the oldest line that is still there."""
        self._go_to(self._first)

    def action_follow(self) -> None:
        """To the end, and stay there."""
        self._go_to(self._total)

    def action_side(self, by: int) -> None:
        """Look at what is right of the edge."""
        self._side = max(0, self._side + by * SIDE_STEP)
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        event.stop()
        self._go_to(self._top + 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel, back."""
        event.stop()
        self._go_to(self._top - 3)

    def on_resize(self, _: events.Resize) -> None:
        """Another room: what follows stays at the end."""
        if self._following:
            self._top = self._last_top
        self._settle()

    def render_line(self, y: int) -> Strip:
        """One line of the log."""
        width = self.content_size.width
        if not self._count:
            return self._empty(y, width)
        index = self._top + y - self._first
        if self._ring is None or not 0 <= index < self._count:
            return Strip.blank(width, self.rich_style)
        line = clean(self._ring[index])
        mark, component = MARKS[severity(line)]
        return self._strip(Content(mark + line[self._side :]), component, width)

    def _empty(self, y: int, width: int) -> Strip:
        said = wrap_words("the engine's log comes here", width - 2, 1)
        line = Content(said[0].center(width)) if y == (self._room - 1) // 2 else Content("")
        return self._strip(line, "log--empty", width)

    def _strip(self, line: Content, component: str, width: int) -> Strip:
        style = self.visual_style
        if component:
            style += self.get_visual_style(component)
        strips = Visual.to_strips(self, fit_content(line, width), width, 1, style, pad=True, apply_selection=False)
        return strips[0] if strips else Strip.blank(width)
