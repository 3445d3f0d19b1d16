"""Keys go through one at a time, so that typing ahead lands where it was meant to.

Textual hands a key to the widget that has the focus when the key arrives, while what the key before it does (open a
dialog, move the focus) happens later, when that key has bubbled back to the app. On a slow link several keys come at
once, and those behind the first would go to the old place. Here a key is handed on when the one before it has been
dealt with, and the screen that it opened stands.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import App
from textual.message import Message

if TYPE_CHECKING:
    from textual.screen import Screen

PATIENCE_S = 0.25
"""Seconds after which the next key goes its way all the same: the widget that had the last one may be gone."""


class DealtWith(Message):
    """Follows a key on its way from the focused widget up to the app: whoever wanted the key has had it."""

    def __init__(self, key: events.Event) -> None:
        super().__init__()
        self.key = key


class OneKeyAtATime(App[int]):
    """An app whose keys and pastes are handed on in order, each when the one before it has had its effect."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key | events.Paste] = deque()
        self._on_its_way: events.Event | None = None
        self._typed_on: Screen[object] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Take keys and pastes in; everything else goes its usual way."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            await self._hand_on()
        else:
            await super().on_event(event)

    async def _hand_on(self) -> None:
        if self._on_its_way is not None or not self._typed:
            return
        event = self._on_its_way = self._typed.popleft()
        target, self._typed_on = self.focused or self.screen, self.screen
        await super().on_event(event)
        target.post_message(DealtWith(event))
        self.set_timer(PATIENCE_S, lambda: self._go_on(event))

    @on(DealtWith)
    def _dealt_with(self, message: DealtWith) -> None:
        message.stop()
        if self.screen is self._typed_on:
            self._go_on(message.key)
        else:  # the screen that was opened, or came back, has its focus when it has been drawn
            self.screen.call_after_refresh(self._go_on, message.key)

    def _go_on(self, event: events.Event) -> None:
        if self._on_its_way is event:
            self._on_its_way = None
            self.call_next(self._hand_on)
