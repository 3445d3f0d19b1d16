"""The loop that works on the queue: one experiment after another, until there is nothing left to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from ddconsole.core.errors import DdconsoleError, HostError, RefusedError, StoreError, UnreachableError
from ddconsole.core.events import ExperimentStarted, RunFinished, RunStarted, Warned
from ddconsole.core.experiment import Experiment, Outcome, Running
from ddconsole.core.queue import Hold, SetPaused, next_to_run, running
from ddconsole.core.spec import SpecContext
from ddconsole.engines.launch.service import NOT_OURS
from ddconsole.runner.attempt import HOST_HELD, Attempt
from ddconsole.runner.best import bind_to_best
from ddconsole.runner.claim import Claim
from ddconsole.runner.estimates import Estimates
from ddconsole.runner.phases import AttemptFailed
from ddconsole.runner.recovery import find_engines
from ddconsole.runner.row import Row, row_of
from ddconsole.runner.slot import EngineSlot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ddconsole.core.config import Config
    from ddconsole.core.ports import AttemptKey
    from ddconsole.core.queue import Queue
    from ddconsole.runner.attempt import Ended
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.database import Database
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session


@dataclass(slots=True)
class Tally:
    """What a run has come to."""

    passed: int = 0
    failed: int = 0
    reason: str = "cancelled"

    @property
    def attempts(self) -> int:
        """Attempts that ended by themselves."""
        return self.passed + self.failed


class Drain:
    """Works on one profile's queue in this process.

    `on_queue` is called when it has written to the queue; `waits` keeps it going when the queue is empty or paused.
    """

    def __init__(
        self,
        bench: Bench,
        session: Session,
        journal: Journal,
        database: Database,
        on_queue: Callable[[], Awaitable[None]],
        *,
        waits: bool = False,
    ) -> None:
        self._bench = bench
        self._session = session
        self._journal = journal
        self._database = database
        self._on_queue = on_queue
        self._waits = waits
        self._claim = Claim(bench, session, journal, self._host_lost)
        self._slot = EngineSlot(bench, session, journal, database, self._claim)
        self._attempt: Attempt | None = None
        self._attempt_task: asyncio.Task[Ended] | None = None
        self._row = Row()
        self._run_id = uuid4().hex
        self.queue_changed = asyncio.Event()
        self.tally = Tally()
        self.keep_engine = False
        self._held_by_other = False

    async def begin(self, *, resume: bool) -> None:
        """Take the host for this process; `resume` goes on with a paused queue.

        Raises:
            RefusedError: another process works on this host.
            StoreError: that it begins cannot be written; nothing is held then.
        """
        self._bench.lock.acquire()
        try:
            await self._begun(resume=resume)
        except BaseException:
            self._bench.lock.release()
            raise

    async def _begun(self, *, resume: bool) -> None:
        name, run_id, at = self._bench.name, self._run_id, self._bench.clock.now()
        await self._journal.emit(
            RunStarted(self._bench.profile.host, os.getpid(), resumed=resume),
            also=lambda store: store.begin_run(name, run_id, os.getpid(), at),
        )
        if resume:
            await self._database.do(lambda store: store.edit(name, SetPaused(False)))
        self._row = row_of(await self._database.do(lambda store: store.results(name)))
        await self._queue_written()

    async def run(self, limit: int | None = None) -> Tally:
        """Work until the queue is empty or paused, or `limit` attempts have ended; for ever when it waits.

        Raises:
            UnreachableError: the host could not be reached in the first place.
            RefusedError: a console on another machine works on it.
        """
        await self._session.host()
        await self._claim.take()
        try:
            await find_engines(self._database, self._journal, self._slot, self._bench.name)
        except AttemptFailed as stuck:
            return await self._stuck(stuck)
        while limit is None or self.tally.attempts < limit:
            experiment = await self._next()
            if experiment is None:
                return self.tally
            await self._one(experiment)
        self.tally.reason = "max"
        return self.tally

    def obey(self, queue: Queue) -> None:
        """The queue was changed, by whichever process: look for work, and end what somebody cancelled."""
        self.queue_changed.set()
        now = running(queue)
        if now is not None and isinstance(now.state, Running) and now.state.cancelling:
            self.stop_attempt(Outcome.CANCELLED)

    def stop_attempt(self, why: Outcome) -> bool:
        """End the running attempt as cancelled or interrupted. False when nothing runs."""
        if self._attempt is None or self._attempt_task is None:
            return False
        self._attempt.why_stopped = why
        self._attempt_task.cancel()
        return True

    async def end(self) -> None:
        """Leave the host as the user wants it, and say that this run is over. Whatever fails in it is said.

        A run whose end cannot be written is found to have ended uncleanly by the next one.
        """
        try:
            async with asyncio.timeout(self._bench.end_s):
                await (self._slot.let_go() if self.keep_engine else self._slot.give_back())
        except AttemptFailed as stuck:
            await self._stuck(stuck)
        except TimeoutError:
            await self._journal.emit(Warned("the host does not answer: its engine was left, the next run finds it"))
        except (RefusedError, HostError, StoreError, UnreachableError) as error:
            await self._journal.emit(Warned(f"{in_a_line(error)}: the engine of this run was left"))
        finally:
            try:
                await self._slot.leave()
                await self._claim.release()
                await self._over()
            finally:
                self._bench.lock.release()

    async def _over(self) -> None:
        run_id, at = self._run_id, self._bench.clock.now()
        body = RunFinished(self.tally.reason, self.tally.passed, self.tally.failed)
        try:
            await self._journal.emit(body, also=lambda store: store.end_run(run_id, at))
        except StoreError as error:
            self._journal.tell(body)
            self._journal.tell(Warned(f"the end of this run is not on disk: {in_a_line(error)}"))

    def _host_lost(self) -> None:
        """Another console has taken the host over: what runs is not measured beside its work."""
        self.stop_attempt(Outcome.INTERRUPTED)
        self._held_by_other = True
        self.queue_changed.set()

    async def _stuck(self, stuck: AttemptFailed) -> Tally:
        """Something of an engine could not be ended: nothing more is started, and that is said."""
        self.tally.reason = "error"
        await self._journal.emit(Warned(f"{stuck.failure.what}: {'; '.join(stuck.failure.evidence)}"))
        return self.tally

    async def _next(self) -> Experiment | None:
        """The next experiment; waits for one when this run waits."""
        while True:
            self.queue_changed.clear()
            await self._still_ours()
            queue = await self._database.do(lambda store: store.queue(self._bench.name))
            experiment = None if queue.paused else next_to_run(queue)
            if experiment is not None or not self._waits:
                self.tally.reason = "paused" if queue.paused else "drained"
                return experiment
            await self.queue_changed.wait()

    async def _still_ours(self) -> None:
        """Look at the lease again once it was seen in other hands.

        Raises:
            RefusedError: it still is.
        """
        if self._held_by_other:
            await self._claim.take()
            self._held_by_other = False

    async def _one(self, experiment: Experiment) -> None:
        name = self._bench.name
        bound = await self._bound(experiment)
        if bound is None or bound.config is None:
            return
        config, at = bound.config, self._bench.clock.now()
        recipe = {
            "ddconsole": self._bench.version,
            "profile_digest": self._bench.digest,
            "suite": experiment.suite,
            "effective": self._bench.engine.effective(config).to_json(),
        }
        try:
            key = await self._database.do(lambda store: store.begin_attempt(name, experiment.id, recipe, at, config))
        except RefusedError:
            return  # it was edited away between the look and the start; look again
        await self._queue_written()
        await self._attempted(bound, config, key)

    async def _bound(self, experiment: Experiment) -> Experiment | None:
        """The experiment with `base=best` bound to the best so far; None when it had to be held, with the reason."""
        if not experiment.base_best:
            return experiment
        name, profile = self._bench.name, self._bench.profile
        queue = await self._database.do(lambda store: store.queue(name))
        results = await self._database.do(lambda store: store.results(name))
        bound = bind_to_best(experiment, results, SpecContext.of(profile, queue))
        if isinstance(bound, Experiment):
            return bound
        await self._database.do(lambda store: store.edit(name, Hold((experiment.id,))))
        await self._journal.emit(Warned(f"{experiment.id} is held: {bound}"))
        await self._queue_written()
        return None

    async def _attempted(self, experiment: Experiment, config: Config, key: AttemptKey) -> None:
        """Run the attempt that was begun, and take its end into account."""
        history = await self._database.do(lambda store: store.phase_history(self._bench.name))
        estimates = Estimates(self._bench.profile, history)
        await self._journal.emit(
            ExperimentStarted(
                config.label(),
                config.to_json(),
                self._bench.engine.effective(config).to_json(),
                list(experiment.passes),
                round(estimates.experiment_s(experiment)[0], 1),
            ),
            key,
        )
        self._attempt = Attempt(
            self._bench, self._session, self._journal, self._database, self._slot,
            key, experiment, estimates.boot_s()[0],
        )  # fmt: skip
        await self._ended(await self._watched(self._attempt), key)

    async def _watched(self, attempt: Attempt) -> Ended:
        """Run the attempt as a task of its own, so that it can be stopped without stopping the loop."""
        self._attempt_task = task = asyncio.create_task(attempt.run(), name="attempt")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            raise
        finally:
            self._attempt = self._attempt_task = None

    async def _ended(self, ended: Ended, key: AttemptKey) -> None:
        await self._queue_written()
        if ended.outcome is Outcome.PASSED:
            self.tally.passed += 1
        elif ended.outcome in (Outcome.FAILED, Outcome.WRONG):
            self.tally.failed += 1
        if ended.outcome is Outcome.CANCELLED and not await self._emptied():
            ended = replace(ended, slot_dirty=True)
        cause = ended.failure.cause if ended.failure is not None else None
        if cause == HOST_HELD:
            self._held_by_other = True
            return
        twice = self._row.take(key.id, ended.outcome.value, cause)
        if ended.slot_dirty or twice:
            await self._pause_for(cause or "stop-incomplete", ended)

    async def _emptied(self) -> bool:
        """End a cancelled experiment's engine; False when something of it remains."""
        try:
            await self._slot.empty()
        except AttemptFailed as stuck:
            await self._stuck(stuck)
            return False
        except HostError as error:
            await self._journal.emit(Warned(in_a_line(error)))
            return False
        return True

    async def _pause_for(self, cause: str, ended: Ended) -> None:
        """A night is not burnt on one fault."""
        name = self._bench.name
        await self._database.do(lambda store: store.edit(name, SetPaused(True)))
        why = "the engine could not be ended" if ended.slot_dirty else f"{cause} twice in a row"
        if cause == NOT_OURS:
            why = "the host's service may not be taken over without consent"
        await self._journal.emit(Warned(f"queue paused: {why}"))
        await self._queue_written()

    async def _queue_written(self) -> None:
        """This process wrote to the queue: show it, and look at it again."""
        self.queue_changed.set()
        await self._on_queue()


def in_a_line(error: DdconsoleError) -> str:
    """What happened and what to do, for a warning."""
    return f"{error.what} ({error.advice})" if error.advice else error.what
