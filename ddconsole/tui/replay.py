"""A recorded session as something to look at: its events in their order, a clock that stands at the last of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ddconsole.core.errors import RefusedError, SpecError
from ddconsole.core.events import Event
from ddconsole.core.queue import Refusal
from ddconsole.runner.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ddconsole.core.queue import Edit, Queue
    from ddconsole.runner.feed import View
    from ddconsole.runner.intents import OrderPlan, SheetPlan

REFUSAL = "this is a recording: nothing can be changed in it"


def read_events(path: Path) -> list[Event]:
    """The events of a recording, one JSON object a line.

    Raises:
        ValueError: a line is not an event.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Event.from_json(json.loads(line)) for line in lines if line.strip()]


class ReplayController:
    """Fulfils `intents.Controller` for a recording: it can be looked at, and every edit is refused with a reason."""

    def __init__(self, events: Iterable[Event], profile_name: str = "recording", *, owns_run: bool = True) -> None:
        self._events = iter(tuple(events))
        self._feed = Feed()
        self._profile_name = profile_name
        self._owns_run = owns_run
        self.closed: bool | None = None

    @property
    def feed(self) -> Feed:
        """What has been played so far."""
        return self._feed

    @property
    def profile_name(self) -> str:
        """The name that the header shows."""
        return self._profile_name

    @property
    def owns_run(self) -> bool:
        """Whether it looks as if this console ran the queue."""
        return self._owns_run and self._feed.view.running is not None

    @property
    def autostart(self) -> bool:
        """A recording starts nothing."""
        return False

    def play_until(self, reached: Callable[[View], bool]) -> bool:
        """Play events until the view is as wanted; False when the recording ended before."""
        for event in self._events:
            self._feed.publish(event)
            if reached(self._feed.view):
                return True
        return False

    def now(self) -> datetime:
        """The time of the last event: the clock of a replay stands still."""
        return self._feed.view.now or datetime.fromtimestamp(0, UTC)

    async def parse(self, text: str) -> Edit:
        """Refused."""
        raise SpecError(REFUSAL, column=1, text=text)

    async def plan(self, text: str) -> Refusal:
        """Refused."""
        return Refusal(REFUSAL, "read-only")

    async def write_sheet(self, ids: tuple[str, ...]) -> str:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def plan_sheet(self, raw: bytes, without: frozenset[str] = frozenset()) -> SheetPlan:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def plan_orders(self) -> tuple[OrderPlan, ...]:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def edit(self, edit: Edit, *, seen: int | None = None) -> Queue:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def start(self) -> None:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def pause(self) -> None:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def cancel(self) -> None:
        """Refused."""
        raise RefusedError(REFUSAL)

    async def close(self, *, keep_engine: bool) -> None:
        """Nothing to end; remembers what was asked."""
        self.closed = keep_engine
