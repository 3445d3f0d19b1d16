"""Looks at the store four times a second: edits by other processes, and the run of another console."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddconsole.core.errors import StoreError
from ddconsole.core.events import TRANSIENT, Event, QueueChanged, Warned
from ddconsole.runner.outlook import Outlook

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any

    from ddconsole.core.ports import Store
    from ddconsole.core.queue import Queue
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.database import Database
    from ddconsole.runner.feed import Feed

LOOK_EVERY_S = 0.25
"""A look is one PRAGMA while nothing has changed."""

LOOK_AGAIN_S = 10.0
"""Longest pause between two tries at a store that cannot be read; they begin at LOOK_EVERY_S, doubled each time."""

BACKLOG = 2_000
"""Events of an earlier or running run that a console reads when it opens."""


@dataclass(slots=True)
class _Seen:
    version: int = -1
    revision: int = -1
    seq: int = 0
    live: dict[str, datetime] = field(default_factory=dict)


class StoreWatch:
    """Publishes what other processes write. `follows_run` says whether their events are shown, or only the queue."""

    def __init__(self, bench: Bench, database: Database, feed: Feed, on_queue: Callable[[Queue], None]) -> None:
        self._bench = bench
        self._database = database
        self._feed = feed
        self._on_queue = on_queue
        self._seen = _Seen()
        self.follows_run = True

    async def run(self) -> None:
        """Look until cancelled. A store that cannot be read is told once, tried again, and told when it is back."""
        pause, trouble = LOOK_EVERY_S, ""
        while True:
            try:
                await self.look()
            except StoreError as error:
                pause = min(pause * 2, LOOK_AGAIN_S) if trouble else LOOK_EVERY_S
                if not trouble:
                    trouble = f"what other processes change is not seen: {error.what} ({error.advice})"
                    self._tell(trouble)
            else:
                if trouble:
                    self._feed.withdraw(trouble)
                    self._tell("the store can be read again")
                pause, trouble = LOOK_EVERY_S, ""
            await self._bench.clock.sleep(pause)

    async def look(self, *, force: bool = False) -> None:
        """Publish what is new. `force` looks even when no other connection has written."""
        version = await self._database.do(lambda store: store.data_version())
        if version == self._seen.version and not force:
            return
        await self.publish_queue()
        if self.follows_run:
            await self._publish_events()
        self._seen.version = version  # at the end: what could not be read now is looked at again

    async def open_at_end(self) -> None:
        """Show the last run as it stands, then only what is new."""
        started = await self._database.do(lambda store: store.last_run_seq(self._bench.name))
        self._seen.seq = max(started - 1, 0)
        self._feed.load_results(await self._database.do(lambda store: store.results(self._bench.name)))
        await self.look(force=True)

    async def publish_queue(self) -> None:
        """Publish the queue when its revision is new."""
        queue, document = await self._database.do(self._document)
        if queue.revision == self._seen.revision:
            return
        self._seen.revision = queue.revision
        self._feed.publish(Event(0, self._bench.clock.now(), QueueChanged(queue.revision, document)))
        self._on_queue(queue)

    async def skip_own(self) -> None:
        """Events up to now were published by this process; do not show them again."""
        self._seen.seq = await self._database.do(lambda store: last_seq(store, self._bench.name, self._seen.seq))

    def _tell(self, text: str) -> None:
        self._feed.publish(Event(0, self._bench.clock.now(), Warned(text)))

    def _document(self, store: Store) -> tuple[Queue, dict[str, Any]]:
        queue = store.queue(self._bench.name)
        outlook = Outlook(self._bench.name, self._bench.profile, store.phase_history(self._bench.name))
        return queue, outlook.document(queue, self._bench.clock.now())

    async def _publish_events(self) -> None:
        name, after = self._bench.name, self._seen.seq
        fresh = await self._database.do(lambda store: store.events(name, after, BACKLOG))
        for event in fresh:
            self._seen.seq = event.seq
            if not isinstance(event.body, QueueChanged):
                self._feed.publish(event)
        for event in await self._database.do(lambda store: store.live(name)):
            assert event.body.kind in TRANSIENT
            if self._seen.live.get(event.body.kind) != event.t:
                self._seen.live[event.body.kind] = event.t
                self._feed.publish(event)


def last_seq(store: Store, profile: str, after: int) -> int:
    """The newest sequence number above `after`, or `after`."""
    while fresh := store.events(profile, after, BACKLOG):
        after = fresh[-1].seq
    return after
