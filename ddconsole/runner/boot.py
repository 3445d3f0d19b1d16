"""From the launched process to the proved engine: loading watched, death and stalls named, identity shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ddconsole.core.errors import Failure, UnreachableError
from ddconsole.core.progress import Phase
from ddconsole.engines.launch.downfall import downfall
from ddconsole.runner.activity import Activity
from ddconsole.runner.boot_progress import ProgressTeller
from ddconsole.runner.estimates import phase_medians
from ddconsole.runner.patience import Patience
from ddconsole.runner.phases import AttemptFailed, in_phase
from ddconsole.runner.port_holder import names_port, port_held
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from ddconsole.core.config import Config
    from ddconsole.core.ports import AttemptKey, Host, Identity, Launched
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.follow import LogFollower
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.phases import PhaseLog
    from ddconsole.runner.session import Session

T = TypeVar("T")

TICK_S = 0.25
"""How often the log's state is looked at."""

DYING_LOOKS = 8
"""Looks, TICK_S apart, for the death of an engine that has just failed a request."""

PROGRESS_EVERY_S = 0.5
"""Progress events come twice a second at most."""

PROBE_EVERY_S = 1.0
"""How often the process is asked for; and the pause between two questions to the port, however long an answer takes."""


@dataclass(slots=True)
class _Seen:
    """What the boot has shown so far, so that each change is told once."""

    phase: Phase | None = None
    progressed_at: float = 0.0
    looked_at: float = 0.0


class Boot:
    """Watches one launch until it has proved that it is ready and the one that was asked for.

    `kept` is an engine that booted for an earlier attempt: its log is read again, its phases are not told again.
    """

    def __init__(
        self,
        bench: Bench,
        session: Session,
        journal: Journal,
        phases: PhaseLog,
        key: AttemptKey,
        launched: Launched,
        follower: LogFollower,
        expected_s: float,
        *,
        kept: bool = False,
        history: Sequence[dict[str, float]] = (),
    ) -> None:
        self._bench = bench
        self._session = session
        self._journal = journal
        self._phases = phases
        self._key = key
        self._launched = launched
        self._follower = follower
        self._kept = kept
        began = bench.clock.monotonic()
        self._seen = _Seen(looked_at=began)
        self._activity = Activity(session, launched, bench.clock, journal.gpu_mib)
        self._teller = ProgressTeller(
            bench.profile, follower, self._activity, expected_s, phase_medians(history), began
        )
        self._patience = Patience(bench.profile, follower, self._activity, bench.clock)
        self._told: set[Phase] = set()

    async def until_ready(self, config: Config) -> Identity:
        """Wait for the engine, then prove contracts 2 and 3.

        Raises:
            AttemptFailed: it died, hung, is not the one asked for, or never speculated.
        """
        await self._watched(self._until_it_says_so())
        await self._end_at_death()  # whoever answers: the engine that we started has to be alive
        await self._tell_phases()
        self._tell_progress(force=True)
        async with self._phases.phase(Phase.READY.value):
            self._patience.renew()
            return await self._watched(self._prove(config))

    async def _watched(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which may hang as long as it likes: death, stall and progress are seen beside it."""
        task = asyncio.create_task(work, name="boot-work")
        try:
            while not task.done():
                await self._look()
                await self._pause(task)
            return task.result()
        finally:
            await end_task(task)

    async def _pause(self, task: asyncio.Task[Any]) -> None:
        """Until the next look, or until the work is done."""
        tick = asyncio.create_task(self._bench.clock.sleep(TICK_S), name="boot-tick")
        try:
            await asyncio.wait({task, tick}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_task(tick)

    async def _look(self) -> None:
        """Tell what is new; end at a death, a stall or the limit of the whole."""
        self._follower.flush()
        await self._tell_phases()
        self._tell_progress()
        now = self._bench.clock.monotonic()
        if now - self._seen.looked_at < PROBE_EVERY_S:
            return
        self._seen.looked_at = now
        await self._end_at_death()
        await self._activity.look()
        failure = self._patience.exhausted()
        if failure is not None:
            raise AttemptFailed(failure)

    async def _until_it_says_so(self) -> None:
        """Ask the port again and again; one question at a time."""
        await self._bench.clock.sleep(PROBE_EVERY_S)
        while not await self._says_ready():
            await self._bench.clock.sleep(PROBE_EVERY_S)

    async def _says_ready(self) -> bool:
        if not self._follower.tracker.progress.fired_up and self._follower.tracker.progress.target is None:
            return False  # nothing listens before the weights are in; probing would only fill the log
        try:
            async with self._session.forwarded(self._launched.port) as base_url:
                return await self._bench.engine.ready(base_url)
        except UnreachableError:
            return False  # the session reconnects; the boot goes on meanwhile

    async def _end_at_death(self) -> None:
        launcher, launched = self._bench.launcher, self._launched
        liveness = await self._session.on_host(lambda host: launcher.liveness(host, launched))
        if liveness.alive:
            return
        await self._follower.drain()
        fallen = await self._session.on_host(lambda host: downfall(host, launched))
        if fallen is not None:
            raise AttemptFailed(in_phase(fallen, self._follower.tracker.progress.phase.value))
        tracker = self._follower.tracker
        if names_port(tracker.facts.bind_failed, launched.port):
            raise AttemptFailed(await self._session.on_host(lambda host: port_held(host, launched, tracker.facts)))
        raise AttemptFailed(tracker.failure(liveness.exit_status, liveness.notes))

    async def _end_if_dying(self) -> None:
        """An engine that dies of a request fails that request first: its death explains more, and comes in a moment."""
        for _ in range(DYING_LOOKS):
            await self._end_at_death()
            await self._bench.clock.sleep(TICK_S)

    async def _tell_phases(self) -> None:
        if self._kept:
            return
        progress = self._follower.tracker.progress
        for phase, seconds in progress.finished.items():
            if phase not in self._told:
                self._told.add(phase)
                await self._phases.end(phase.value, seconds)
        if progress.phase not in (self._seen.phase, Phase.READY, *self._told):
            self._seen.phase = progress.phase
            await self._phases.begin(progress.phase.value)

    def _tell_progress(self, *, force: bool = False) -> None:
        now = self._bench.clock.monotonic()
        if self._kept or (not force and now - self._seen.progressed_at < PROGRESS_EVERY_S):
            return
        self._seen.progressed_at = now
        self._journal.show(self._teller.body(now), self._key)

    async def _prove(self, config: Config) -> Identity:
        launcher, launched, engine = self._bench.launcher, self._launched, self._bench.engine

        async def prove(host: Host) -> Identity:
            owned, who = await launcher.owns_port(host, launched)
            if not owned:
                raise AttemptFailed(await port_held(host, launched, self._follower.tracker.facts, who))
            async with self._session.forwarded(launched.port) as base_url:
                identity = await engine.identify(base_url, host, launched, config, self._follower.tracker.facts)
                spoken: object = identity
                if not isinstance(identity, Failure):
                    spoken = await engine.speculates(base_url, config)
                if isinstance(spoken, Failure):
                    await host.ping()  # a lost line looks like a wrong answer; it is told apart here
                    await self._end_if_dying()
                    raise AttemptFailed(spoken)
            assert not isinstance(identity, Failure)
            return identity

        return await self._session.on_host(prove)
