"""The journal: what happens is on disk first, then on the feed, in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ddconsole.core.errors import StoreError
from ddconsole.core.events import TRANSIENT, Body, Connection, Event, FindingSeen, LogLines, Warned
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

WORDS = (Warned, FindingSeen, Connection)
"""What only tells: it is shown even when the store cannot take it, for then it is needed most."""


class Journal:
    """Writes events to the store and publishes them. The only writer of this profile's events in a run.

    One that does not `keep` them, for a console that shall change nothing, only publishes. `under_load` is what the
    samples say of the cards' links while they work; kept with an attempt when it ends.

    A write that fails is its caller's error where the caller waits for it (`emit`), else the next `check`'s, once; of
    several only the first is remembered. Words, and live values of which only the latest matters, are never an error.
    """

    def __init__(self, database: Database, feed: Feed, clock: Clock, profile: str, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._database = database
        self._feed = feed
        self._clock = clock
        self._profile = profile
        self._pending: set[asyncio.Future[Event]] = set()
        self._error: BaseException | None = None
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
        """Keep an event, and whatever `also` writes, then publish it. Order is that of the calls.

        What cannot be kept is the next `check`'s error; words are published all the same.
        """
        future = self._write(body, key, also)
        future.add_done_callback(self._remember)
        return future

    async def emit(
        self, body: Body, key: AttemptKey | None = None, also: Callable[[Store], object] | None = None
    ) -> None:
        """As `post`, and wait until it is on disk.

        Raises:
            StoreError: it could not be written. Words that could not be are published, and that is all.
        """
        future = self._write(body, key, also)
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(self._remember)  # its caller is gone, and does not hear of it
            raise

    def show(self, body: Body, key: AttemptKey | None = None) -> None:
        """Publish something of which only the latest matters; it reaches the store once a second at most."""
        assert body.kind in TRANSIENT
        event = self._event(body, key)
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
        future.add_done_callback(self._live_written)

    def tell(self, body: Body, key: AttemptKey | None = None) -> None:
        """Publish something that never reaches the store: worth a look and nothing more, or no store takes it."""
        self._feed.publish(self._event(body, key))

    def check(self) -> None:
        """Say that something posted could not be written; each such error is said once.

        Raises:
            StoreError: something could not.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def settle(self) -> None:
        """Wait until everything posted is on disk and published.

        Raises:
            StoreError: something could not be written.
        """
        while self._pending:
            await asyncio.wait(set(self._pending))
        self.check()

    def _event(self, body: Body, key: AttemptKey | None) -> Event:
        return Event(0, self._clock.now(), body, key.id if key else None, key.attempt if key else None)

    def _write(
        self, body: Body, key: AttemptKey | None, also: Callable[[Store], object] | None
    ) -> asyncio.Future[Event]:
        event = self._event(body, key)
        if not self._keeps:
            return self._only_published(event)

        def write(store: Store) -> Event:
            if also is not None:
                also(store)
            try:
                return store.append_event(self._profile, event)
            except StoreError:
                if also is None and isinstance(body, WORDS):
                    return event
                raise

        future = self._database.submit(write)
        self._pending.add(future)
        future.add_done_callback(self._written)
        return future

    def _only_published(self, event: Event) -> asyncio.Future[Event]:
        self._feed.publish(event)
        published: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        published.set_result(event)
        return published

    def _written(self, future: asyncio.Future[Event]) -> None:
        self._pending.discard(future)
        if not future.cancelled() and future.exception() is None:
            self._feed.publish(future.result())

    def _live_written(self, future: asyncio.Future[Event]) -> None:
        self._pending.discard(future)
        if not future.cancelled() and not isinstance(future.exception(), StoreError):
            self._remember(future)

    def _remember(self, future: asyncio.Future[Event]) -> None:
        if not future.cancelled() and self._error is None:
            self._error = future.exception()
