"""What the console has to say, in place of the bar of keys for a while: it never covers a panel."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from ddconsole.tui import theme
from ddconsole.tui.text import styled, wrap_words

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel
    from textual.timer import Timer

SIGNS: dict[SeverityLevel, tuple[str, str]] = {
    "information": ("✔", theme.GOOD),
    "warning": ("⚠", theme.WARN),
    "error": ("✘", theme.BAD),
}

MOST_LINES, MEMORY = 3, 50

STAYS_S: dict[SeverityLevel, float] = {"information": 4.0, "warning": 6.0, "error": 9.0}
"""Seconds in sight; those under a dialog do not count."""


class NoticeLine(Widget):
    """One notice, the newest; a screen class `-notice` says that there is one. `said` are the last ones, each once."""

    def __init__(self) -> None:
        super().__init__(id="notice")
        self.said: deque[str] = deque(maxlen=MEMORY)
        self._text = ""
        self._severity: SeverityLevel = "information"
        self._timer: Timer | None = None

    def say(self, text: str, severity: SeverityLevel, stays_s: float | None = None) -> None:
        """Show it in place of what stands there."""
        self._text, self._severity = text, severity
        if not self.said or self.said[-1] != text:
            self.said.append(text)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(stays_s or STAYS_S[severity], self._end)
        self.screen.add_class("-notice")
        self.refresh(layout=True)

    def outdate(self) -> None:
        """A warning about a key is over as soon as another key has done something."""
        if self._severity == "warning":
            self.screen.remove_class("-notice")

    def _end(self) -> None:
        """Away with it, once it could be read."""
        if self.screen.is_current:
            self.screen.remove_class("-notice")
        else:
            self._timer = self.set_timer(STAYS_S["information"], self._end)

    def render(self) -> Content:
        """A sign, and the words with a hanging indent."""
        sign, tone = SIGNS[self._severity]
        lines = wrap_words(self._text, max(10, self.content_size.width - 2), MOST_LINES)
        head = [styled(f"{sign} " if index == 0 else "  ", tone) for index in range(len(lines))]
        return Content("\n").join(mark + styled(line) for mark, line in zip(head, lines, strict=True))
