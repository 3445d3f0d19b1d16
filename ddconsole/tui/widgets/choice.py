"""A few options: one of them, or any number of them. The chosen are marked by a sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from ddconsole.tui import theme
from ddconsole.tui.text import styled

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size

SIGNS = {False: ("○", "●"), True: ("□", "■")}
"""Not chosen and chosen, for one of them and for any number."""

SIGN_CELLS, GAP = 2, 2
"""Cells of a sign with its space, and between two options."""


class Choice(Widget, can_focus=True):
    """`● tree  ○ chain  ○ off`. Left and right move; space chooses, or moving does where only one can be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", "left", show=False),
        Binding("right,l", "step(1)", "right", show=False),
        Binding("space", "choose", "choose", show=False),
    ]

    @dataclass
    class Changed(Message):
        """Another choice was made."""

        choice: Choice

    def __init__(self, options: tuple[str, ...], chosen: tuple[str, ...], *, several: bool = False, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._options = options
        self._chosen = {option for option in chosen if option in options}
        self._several = several
        self._at = next((place for place, option in enumerate(options) if option in self._chosen), 0)

    @property
    def chosen(self) -> tuple[str, ...]:
        """What is chosen, in the order of the options."""
        return tuple(option for option in self._options if option in self._chosen)

    def action_step(self, by: int) -> None:
        """Go to a neighbour."""
        self._at = min(max(self._at + by, 0), len(self._options) - 1)
        if not self._several:
            self._choose(self._options[self._at])
        self.refresh()

    def action_choose(self) -> None:
        """Choose, or take back."""
        self._choose(self._options[self._at])

    def _choose(self, option: str) -> None:
        before = set(self._chosen)
        self._chosen = self._chosen ^ {option} if self._several else {option}
        if self._chosen != before:
            self.refresh()
            self.post_message(self.Changed(self))

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked."""
        for place, (x, y) in enumerate(self._places(self.content_size.width)):
            option = self._options[place]
            if y == event.y and x <= event.x < x + len(option) + SIGN_CELLS:
                self._at = place
                self._choose(option)

    def _places(self, width: int) -> list[tuple[int, int]]:
        """Column and line of each option; those that do not fit beside the last one begin a line."""
        places, x, y = [], 0, 0
        for option in self._options:
            if x and x + len(option) + SIGN_CELLS > width:
                x, y = 0, y + 1
            places.append((x, y))
            x += len(option) + SIGN_CELLS + GAP
        return places

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the options need."""
        return self._places(width)[-1][1] + 1

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """And no longer."""
        self.refresh()

    def render(self) -> Content:
        """The options, line by line."""
        lines: dict[int, list[Content]] = {}
        for place, (_, y) in enumerate(self._places(self.content_size.width)):
            lines.setdefault(y, []).append(self._option(place, self._options[place]))
        return Content("\n").join(Content(" " * GAP).join(line) for line in lines.values())

    def _option(self, place: int, option: str) -> Content:
        chosen = option in self._chosen
        tone = theme.ACCENT if chosen else theme.MUTED
        here = self.has_focus and place == self._at
        return styled(SIGNS[self._several][chosen], tone) + styled(
            f" {option}", f"{'underline ' if here else ''}{tone if not chosen else 'bold ' + tone}"
        )
