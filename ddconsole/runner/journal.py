"""The journal: what happens is on disk first, then on the feed, in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ddconsole.core.events import TRANSIENT, Body, Event, LogLines
from ddconsole.core.gpu_load import LinksUnderLoad

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.ports import AttemptKey, Clock, Store
    from ddconsole.runner.database import Database
    from ddconsole.runner.feed import Feed

LIVE_EVERY_S = 1.0
"""How often the newest GPU sample and log tail go to the store, for consoles that watch from another process."""

LIVE_LOG_LINES = 100
"""Log lines that a watching console finds there."""


class Journal:
    """Writes events to the store and publishes them. The only writer of this profile's events in a run.

    One that does not `keep` them, for a console that shall change nothing, only publishes. `under_load` is what the
    samples say of the cards' links while they work; kept with an attempt when it ends.
    """

    def __init__(self, database: Database, feed: Feed, clock: Clock, profile: str, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._database = database
        self._feed = feed
        self._clock = clock
        self._profile = profile
        self._pending: set[asyncio.Future[Event]] = set()
        self._errors: list[BaseException] = []
        self._tail: deque[str] = deque(maxlen=LIVE_LOG_LINES)
        self._live_at: dict[str, float] = {}
        self.under_load = LinksUnderLoad()

    def gpu_mib(self) -> int | None:
        """Memory in use on all cards by the newest sample, in MiB; None while no card has told it."""
        used = [gpu["memory_used_mib"] for gpu in self._feed.view.gpus if gpu.get("memory_used_mib") is not None]
        return sum(used) if used else None

    def post(
        self, body: Body, key: AttemptKey | None = None, also: Callable[[Store], object] | None = None
    ) -> asyncio.Future[Event]:
        """Keep an event, and whatever `also` writes, then publish it. Order is that of the calls."""
        event = Event(0, self._clock.now(), body, key.id if key else None, key.attempt if key else None)
        if not self._keeps:
            return self._only_published(event)

        def write(store: Store) -> Event:
            if also is not None:
                also(store)
            return store.append_event(self._profile, event)

        future = self._database.submit(write)
        self._pending.add(future)
        future.add_done_callback(self._written)
        return future

    async def emit(
        self, body: Body, key: AttemptKey | None = None, also: Callable[[Store], object] | None = None
    ) -> None:
        """As `post`, and wait until it is on disk.

        Raises:
            StoreError: it could not be written.
        """
        await asyncio.shield(self.post(body, key, also))

    def show(self, body: Body, key: AttemptKey | None = None) -> None:
        """Publish something of which only the latest matters; it reaches the store once a second at most."""
        assert body.kind in TRANSIENT
        event = Event(0, self._clock.now(), body, key.id if key else None, key.attempt if key else None)
        self._feed.publish(event)
        if isinstance(body, LogLines):
            self._tail.extend(body.lines)
        now = self._clock.monotonic()
        if not self._keeps or now - self._live_at.get(body.kind, -LIVE_EVERY_S) < LIVE_EVERY_S:
            return
        self._live_at[body.kind] = now
        kept: Body = LogLines(list(self._tail), body.offset) if isinstance(body, LogLines) else body
        live = Event(0, event.t, kept, event.id, event.attempt)
        future = self._database.submit(lambda store: store.append_event(self._profile, live))
        self._pending.add(future)
        future.add_done_callback(self._forget)

    def tell(self, body: Body) -> None:
        """Publish something that is worth a look and nothing more; it never reaches the store."""
        self._feed.publish(Event(0, self._clock.now(), body))

    async def settle(self) -> None:
        """Wait until everything posted is on disk and published.

        Raises:
            StoreError: something could not be written.
        """
        while self._pending:
            await asyncio.wait(set(self._pending))
        if self._errors:
            raise self._errors.pop(0)

    def _only_published(self, event: Event) -> asyncio.Future[Event]:
        self._feed.publish(event)
        published: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        published.set_result(event)
        return published

    def _written(self, future: asyncio.Future[Event]) -> None:
        self._forget(future)
        if not future.cancelled() and future.exception() is None:
            self._feed.publish(future.result())

    def _forget(self, future: asyncio.Future[Event]) -> None:
        self._pending.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            self._errors.append(error)
