"""The passes of one attempt: each measured whole, or measured again from its start when the line broke in it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ddconsole.core.errors import Failure, UnreachableError
from ddconsole.core.events import PassFinished, PassStarted, RequestDone, Warned
from ddconsole.engines.launch.downfall import downfall
from ddconsole.passes.base import PassContext
from ddconsole.passes.roundtrip import round_trip
from ddconsole.runner.beside import Beside
from ddconsole.runner.pace import Pace
from ddconsole.runner.phases import AttemptFailed
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.experiment import Workload
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import AttemptKey
    from ddconsole.passes.base import MeasuringPass, PassResult
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.phases import PhaseLog
    from ddconsole.runner.session import Session
    from ddconsole.runner.slot import Occupant

Summaries = dict[str, list[dict[str, Any]]]
"""Of each pass by name, one summary a repeat, as the store keeps them."""

WATCH_EVERY_S = 2.0
"""How often the engine's life is checked while a pass runs; seldom, so that the observer does not slow the observed."""


class _LineLostError(Exception):
    """The connection broke while a pass was measured."""


class Measuring:
    """Runs the passes of an attempt against the engine in the slot."""

    def __init__(
        self,
        bench: Bench,
        session: Session,
        journal: Journal,
        phases: PhaseLog,
        key: AttemptKey,
        occupant: Occupant,
        workload: Workload,
        pace: Pace | None = None,
    ) -> None:
        self._bench = bench
        self._session = session
        self._journal = journal
        self._phases = phases
        self._key = key
        self._occupant = occupant
        self._workload = workload
        self._pace = pace or Pace(bench.clock)
        self._answered_at = 0.0

    async def run(self, passes: Sequence[MeasuringPass], repeats: int, summaries: Summaries) -> None:
        """Measure all passes, repeats interleaved, and add to `summaries`; what is there already is not measured again.

        Raises:
            AttemptFailed: the engine died or hung in the middle of a pass.
        """
        for repeat in range(1, repeats + 1):
            self._pace.begin()
            for measuring in passes:
                finished = summaries.setdefault(measuring.name, [])
                if len(finished) >= repeat:
                    continue
                async with self._phases.phase(f"pass:{measuring.name}"):
                    result = await self._until_whole(measuring, repeat)
                finished.append(result.summary)

    async def _until_whole(self, measuring: MeasuringPass, repeat: int) -> PassResult:
        while True:
            host = await self._session.host()
            try:
                return await self._once(measuring, repeat)
            except (UnreachableError, _LineLostError) as error:
                await self._session.give_up(host, str(error))
                text = f"connection lost during {measuring.name}: it is measured again from its start"
                await self._journal.emit(Warned(text), self._key)

    async def _once(self, measuring: MeasuringPass, repeat: int) -> PassResult:
        clock = self._bench.clock
        async with self._session.forwarded(self._occupant.launched.port) as base_url:
            if not await self._bench.engine.flush(base_url):
                await self._journal.emit(Warned("the engine did not flush its cache: prefixes may be warm"), self._key)
            await self._journal.emit(
                PassStarted(measuring.name, measuring.total, repeat),
                self._key,
                also=lambda store: store.cut_pass(self._key, measuring.name, repeat),
            )
            began = self._answered_at = clock.monotonic()
            trip_s = await round_trip(base_url, clock)
            with Beside(self._bench.engine, base_url, self._occupant.follower) as beside:
                result = await self._guarded(measuring, repeat, base_url, beside, trip_s)
            result.summary["boot"] = self._occupant.name
            result.summary["round_trip_ms"] = None if trip_s is None else round(trip_s * 1000, 3)
            seconds = round(clock.monotonic() - began, 3)
        await self._check_line(result)
        await self._journal.settle()  # a pass counts as whole only when its every request is on disk
        await self._journal.emit(
            PassFinished(measuring.name, seconds, result.summary),
            self._key,
            also=lambda store: store.save_pass(self._key, measuring.name, repeat, result.summary),
        )
        return result

    async def _guarded(
        self, measuring: MeasuringPass, repeat: int, base_url: str, beside: Beside, trip_s: float | None
    ) -> PassResult:
        """The pass beside a watch on engine and line; whichever ends first decides."""

        def on_request(record: RequestRecord, done: int, total: int) -> None:
            self._answered_at = self._bench.clock.monotonic()
            body = RequestDone(measuring.name, done, total, record.to_json(with_text=False))
            key, name = self._key, measuring.name
            self._journal.post(body, key, also=lambda store: store.save_request(key, name, repeat, record))

        pace = self._pace.of(measuring.name)
        context = PassContext(
            base_url=base_url,
            dialect=self._bench.engine.dialect,
            workload=self._workload,
            clock=self._bench.clock,
            on_request=on_request,
            flush=lambda: self._bench.engine.flush(base_url),
            enough=pace,
            time_left=self._pace.left_s,
            another=pace.another,
            counts=beside.counts,
            round_trip_s=trip_s,
        )
        work = asyncio.create_task(measuring.run(context), name=f"pass-{measuring.name}")
        watch = asyncio.create_task(self._watch(measuring.name), name="watch-engine")
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await watch
            result = await work
            result.summary["ended_early"] = None if pace.stop is None else pace.stop.to_json()
            return result
        finally:
            await end_task(work)
            await end_task(watch)

    async def _watch(self, name: str) -> None:
        """Ends, always by an exception, when the pass can no longer be measured, or not be kept."""
        lost = self._session.lost
        limit = self._bench.profile.stall_s("pass")
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(lost.wait(), WATCH_EVERY_S)
                raise _LineLostError("the connection was lost")
            self._occupant.follower.flush()
            self._journal.check()
            await self._end_at_death(name)
            silent = self._bench.clock.monotonic() - self._answered_at
            if silent > limit:
                raise AttemptFailed(
                    Failure(
                        "pass-stalled",
                        f"no request ended for {silent:.0f} s in {name} (limit {limit:.0f} s)",
                        tuple(list(self._occupant.follower.recent)[-3:]),
                        "Look at the engine's log; raise `stalls.pass` in the profile if requests are that long.",
                        f"pass:{name}",
                    )
                )

    async def _end_at_death(self, name: str) -> None:
        host = await self._session.host()
        liveness = await self._bench.launcher.liveness(host, self._occupant.launched)
        if liveness.alive:
            return
        await self._occupant.follower.drain()
        failure = await downfall(host, self._occupant.launched)
        if failure is None:
            failure = self._occupant.follower.tracker.failure(liveness.exit_status, liveness.notes)
        raise AttemptFailed(replace(failure, phase=f"pass:{name}"))  # the log only knows that it was ready

    async def _check_line(self, result: PassResult) -> None:
        """Requests that failed with the line do not count against the engine: the pass is measured again."""
        if all(record.ok for record in result.records):
            return
        host = await self._session.host()
        await host.ping()
        await self._end_at_death(result.name)
