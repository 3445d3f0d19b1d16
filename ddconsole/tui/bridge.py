"""From the feed to the screen: one timer, the only one. It takes what is dirty and hands it to the screen in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.tui.live import LiveScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from textual.app import App

    from ddconsole.runner.feed import Feed

TICKS_PER_S = 8
"""How often the screen may change; a flood of events costs no more than that."""


class Bridge:
    """Polls the feed; several changes between two ticks are one.

    Args:
        now: the clock for times that run; a replay's stands still.
        on_second: called once a second, for what else has to be looked at.
    """

    def __init__(
        self, app: App[int], feed: Feed, now: Callable[[], datetime], on_second: Sequence[Callable[[], None]] = ()
    ) -> None:
        self._app = app
        self._feed = feed
        self._now = now
        self._on_second = tuple(on_second)
        self._ticks = 0

    def start(self) -> None:
        """Begin to tick."""
        self._app.set_interval(1 / TICKS_PER_S, self.tick, name="bridge")

    def tick(self) -> None:
        """One look at the feed."""
        self._ticks += 1
        second = self._ticks % TICKS_PER_S == 0
        topics = self._feed.take_dirty()
        shown = self._in_sight()
        for screen in self._app.screen_stack:
            if topics and isinstance(screen, LiveScreen):
                screen.take(topics)
        if shown is not None:
            shown.flush(self._feed.view, self._now(), second=second)
        if second:
            for look in self._on_second:
                look()

    def _in_sight(self) -> LiveScreen | None:
        """The topmost live screen: dialogs stand before it, but it is still seen."""
        return next((one for one in reversed(self._app.screen_stack) if isinstance(one, LiveScreen)), None)
