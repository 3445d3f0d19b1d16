"""Screens that show the feed, and panels that are parts of them. Values come down; what is hidden costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.screen import Screen
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ddconsole.runner.feed import Topic, View


class Panel(Widget):
    """A part of a live screen.

    Attributes:
        topics: what of the view it shows; it is told when one of these has changed.
        ticking: it shows a time that runs, so it is told once a second as well.
    """

    topics: ClassVar[frozenset[Topic]] = frozenset()
    ticking: ClassVar[bool] = False

    def show(self, view: View, now: datetime) -> None:
        """Take the view in; called only while the panel is on the screen."""
        raise NotImplementedError


class LiveScreen(Screen[None]):
    """A screen whose panels show the feed. Topics wait for panels that are hidden, until these come into view."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[Panel, set[Topic]] = {}

    def live_panels(self) -> Iterable[Panel]:
        """The panels that are told."""
        return self.query(Panel)

    def take(self, topics: set[Topic]) -> None:
        """Note that these topics have changed."""
        for panel in self.live_panels():
            touched = topics & panel.topics
            if touched:
                self._waiting.setdefault(panel, set()).update(touched)

    def flush(self, view: View, now: datetime, *, second: bool = False) -> None:
        """Hand the view to each visible panel that has something waiting; `second` says that a second has passed."""
        for panel in self.live_panels():
            waiting = panel in self._waiting
            if (waiting or (second and panel.ticking)) and panel.is_on_screen:
                self._waiting.pop(panel, None)
                panel.show(view, now)
