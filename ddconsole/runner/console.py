"""What stands behind a screen: the feed, the store's watch, the connection, and the run when this process has it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import DdconsoleError, RefusedError, StoreError, UnreachableError
from ddconsole.core.events import Connection, Event, QueueChanged, Warned
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import Cancel, Refusal, SetPaused, running
from ddconsole.runner.database import Database
from ddconsole.runner.drain import Drain, in_a_line
from ddconsole.runner.feed import Feed
from ddconsole.runner.foresight import foresee, look_through, orders, written_out
from ddconsole.runner.journal import Journal
from ddconsole.runner.recovery import put_right
from ddconsole.runner.session import Session
from ddconsole.runner.tasks import end_task, to_the_end
from ddconsole.runner.telemetry import watch_gpus
from ddconsole.runner.watch import StoreWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from ddconsole.core.queue import Edit, Queue
    from ddconsole.core.spec import SpecRefusal
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.drain import Tally
    from ddconsole.runner.foresight import QueueFile, Siblings
    from ddconsole.runner.intents import OrderPlan, Plan, SheetPlan

    T = TypeVar("T")


class Console:
    """Fulfils `intents.Controller`. Open it, use it, close it; every task it starts has ended by then."""

    def __init__(
        self,
        bench: Bench,
        parse: Callable[[str, Queue], Edit],
        *,
        patient: bool = True,
        siblings: Siblings = lambda _: (),
        files: QueueFile | None = None,
    ) -> None:
        self._bench = bench
        self._siblings = siblings
        self._files = files
        self._parse = parse
        self.feed = Feed()
        self._database = Database(bench.open_store)
        self._journal = Journal(self._database, self.feed, bench.clock, bench.name, keeps=not bench.read_only)
        self._session = Session(bench.connector, self._journal, bench.clock, patient=patient)
        self._watch = StoreWatch(bench, self._database, self.feed, self._queue_changed)
        self._drain: Drain | None = None
        self._run: asyncio.Task[Tally] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ended_uncleanly = False

    @property
    def profile_name(self) -> str:
        """Name of the profile that this is about."""
        return self._bench.name

    @property
    def owns_run(self) -> bool:
        """This process works on the queue."""
        return self._drain is not None

    @property
    def autostart(self) -> bool:
        """The profile asks to start the queue when the screen opens; not after an unclean end or a pause."""
        paused = bool(self.feed.view.queue.get("paused"))
        return self._bench.profile.autostart and not paused and not self._ended_uncleanly

    async def open(self, *, telemetry: bool = True) -> None:
        """Put right what a dead process left, show what is in the store, and begin to watch store and host."""
        await self._put_right()
        await self._watch.open_at_end()
        self._spawn(self._watch.run(), "watch-store")
        if telemetry:
            self._spawn(self._watch_host(), "watch-gpus")

    def show_queue(self) -> None:
        """Publish the queue as it stands once more, for who began to listen after it was opened."""
        queue = self.feed.view.queue
        self.feed.publish(Event(0, self._bench.clock.now(), QueueChanged(int(queue["revision"]), queue)))

    def show_waiting(self, what: str) -> None:
        """The connection waits for an answer of the user's, who is not interrupted."""
        body = Connection("waiting", detail=f"waits for an answer: {what}", advice="ctrl+o answers")
        self.feed.publish(Event(0, self._bench.clock.now(), body))

    async def parse(self, text: str) -> Edit:
        """One line of the queue's language as an edit."""
        queue = await self._database.do(lambda store: store.queue(self._bench.name))
        return self._parse(text, queue)

    async def plan(self, text: str) -> Plan | SpecRefusal | Refusal:
        """What one line of the queue's language would come to; nothing is changed."""
        return await self._database.do(lambda store: foresee(self._bench, store, text, self._siblings))

    async def write_sheet(self, ids: tuple[str, ...]) -> str:
        """Waiting experiments as a text for an editor."""
        files = self._sheets()
        return allowed(await self._database.do(lambda store: written_out(self._bench, store, files, ids)))

    async def plan_sheet(self, raw: bytes, without: frozenset[str] = frozenset()) -> SheetPlan:
        """What such a text comes to when it has been edited."""
        files = self._sheets()
        return allowed(
            await self._database.do(lambda s: look_through(self._bench, s, files, raw, without, self._siblings))
        )

    def _sheets(self) -> QueueFile:
        if self._files is None:
            raise RefusedError("this console writes no sheets")
        return self._files

    async def plan_orders(self) -> tuple[OrderPlan, ...]:
        """Other orders for those that are queued."""
        return await self._database.do(lambda store: orders(self._bench, store))

    async def edit(self, edit: Edit, *, seen: int | None = None) -> Queue:
        """Apply an edit to the queue."""
        queue = await self._database.do(lambda store: store.edit(self._bench.name, edit, seen=seen))
        await self._watch.publish_queue()
        return queue

    async def start(self) -> None:
        """Begin to work on the queue, or go on with it. What an earlier run could not end is put right first."""
        if self._drain is None:
            await self._put_right()
        await self.edit(SetPaused(False))
        if self._drain is None:
            await self.begin(waits=True, resume=True)
            self._run = asyncio.create_task(self._go_on(), name="drain")
            self._run.add_done_callback(self._ended_early)

    async def begin(self, *, waits: bool, resume: bool) -> None:
        """Take the host for this process. `resume` goes on with a paused queue.

        Raises:
            RefusedError: another process works on this host.
            StoreError: that it begins cannot be written.
        """
        drain = Drain(self._bench, self._session, self._journal, self._database, self._watch.publish_queue, waits=waits)
        self._watch.follows_run = False
        try:
            await drain.begin(resume=resume)
        except DdconsoleError:
            self._watch.follows_run = True
            raise
        self._drain = drain

    async def drain(self, limit: int | None = None) -> Tally:
        """Work on the queue in the caller's task until it is empty or paused.

        Raises:
            UnreachableError: the host could not be reached in the first place.
        """
        assert self._drain is not None
        return await self._drain.run(limit)

    async def pause(self) -> None:
        """Start nothing new; what runs goes on."""
        await self.edit(SetPaused(True))

    async def cancel(self) -> None:
        """Ask for the end of the running experiment, in whichever process it runs; it is recorded as cancelled."""
        queue = await self._database.do(lambda store: store.queue(self._bench.name))
        now = running(queue)
        if now is None:
            raise RefusedError("nothing runs")
        await self.edit(Cancel(now.id))

    async def close(self, *, keep_engine: bool) -> None:
        """End this process's run and every task; the store and the connection are closed, whatever fails.

        A bug that the run died of is raised when all is closed.
        """
        if self._drain is not None:
            self._drain.keep_engine = keep_engine
            await self._end_run(self._drain)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        try:
            await self._session.close()
            await self._journal.settle()
        except StoreError as error:
            self._journal.tell(Warned(in_a_line(error)))
        finally:
            await self._database.close()
        raise_bug(self._run)

    async def _put_right(self) -> None:
        """Under the run lock, so that another console's living run is never mistaken for a dead one's remains."""
        try:
            self._bench.lock.acquire()
        except RefusedError:
            return
        try:
            self._ended_uncleanly = await put_right(self._database, self._journal, self._bench.clock, self._bench.name)
        finally:
            self._bench.lock.release()

    async def _go_on(self) -> Tally:
        drain = self._drain
        assert drain is not None
        try:
            return await drain.run()
        except DdconsoleError as error:
            await self._journal.emit(Warned(f"the queue stopped: {in_a_line(error)}"))
            await to_the_end(self._wind_up(drain))
            return drain.tally

    async def _wind_up(self, drain: Drain) -> None:
        """This process's run is over, and the console goes on: what others do on the host is shown again."""
        try:
            drain.tally.reason = "error"
            await drain.end()
            with contextlib.suppress(StoreError):  # then some of this run is told a second time
                await self._watch.skip_own()
        finally:
            self._watch.follows_run = True
            self._drain = None

    async def _end_run(self, drain: Drain) -> None:
        drain.stop_attempt(Outcome.INTERRUPTED)
        await end_task(self._run)
        if self._drain is drain:
            await drain.end()
            self._drain = None

    async def _watch_host(self) -> None:
        """Cards and connection of the host, whoever runs the queue."""
        try:
            await watch_gpus(self._session, self._journal, self._bench.clock)
        except UnreachableError as error:
            body = Connection("unreachable", detail=error.what, advice=error.advice)
            self.feed.publish(Event(0, self._bench.clock.now(), body))

    def _queue_changed(self, queue: Queue) -> None:
        if self._drain is not None:
            self._drain.obey(queue)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended_early)
        self._tasks.append(task)

    def _ended_early(self, task: asyncio.Task[Any]) -> None:
        """A part of this console that died is missed at once, not when somebody wonders."""
        if not task.cancelled() and (error := task.exception()) is not None:
            said = in_a_line(error) if isinstance(error, DdconsoleError) else repr(error)
            self._journal.tell(Warned(f"{task.get_name()} ended: {said}; start ddconsole again"))


def raise_bug(run: asyncio.Task[Tally] | None) -> None:
    """Raise what a run died of when that was no expected error; nothing when it was cancelled or ended by itself."""
    error = None if run is None or run.cancelled() else run.exception()
    if error is not None and not isinstance(error, DdconsoleError):
        raise error


def allowed(found: T | Refusal) -> T:
    """What was found, when the rules allow it.

    Raises:
        RefusedError: they do not.
    """
    if isinstance(found, Refusal):
        raise RefusedError(found.reason, code=found.code)
    return found
