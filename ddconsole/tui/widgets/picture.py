"""A panel that draws lines of text from the view with a pure function, and repaints only when they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from ddconsole.tui.live import Panel
from ddconsole.tui.text import wrap_words

if TYPE_CHECKING:
    from datetime import datetime

    from textual import events

    from ddconsole.runner.feed import View


class Picture(Panel):
    """Draws `lines(view, now, width, height)`; where that is empty, the sentence of `nothing(view)` in the middle."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._seen: tuple[View, datetime] | None = None
        self._content = Content("")

    def lines(self, view: View, now: datetime, width: int, height: int) -> list[Content]:
        """What to draw."""
        raise NotImplementedError

    def nothing(self, view: View) -> str:
        """What to say when there is nothing to draw."""
        return ""

    def show(self, view: View, now: datetime) -> None:
        """Draw the view."""
        self._seen = (view, now)
        width, height = self.content_size
        lines = self.lines(view, now, width, height)
        content = Content("\n").join(lines) if lines else self._middle(self.nothing(view), width, height)
        if not content.is_same(self._content):
            self._content = content
            self.refresh()

    def _middle(self, sentence: str, width: int, height: int) -> Content:
        said = [
            Content.styled(line.center(width).rstrip(), "$muted") for line in wrap_words(sentence, width - 2, height)
        ]
        above = max(0, (height - len(said)) // 2)
        return Content("\n").join([Content("")] * above + said)

    def on_resize(self, _: events.Resize) -> None:
        """Draw again for the new room."""
        if self._seen is not None:
            self.show(*self._seen)

    def render(self) -> Content:
        """The lines as they stand."""
        return self._content
