"""From the launched process to the proved engine: loading watched, death and stalls named, identity shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.errors import Failure, UnreachableError
from ddconsole.core.events import BootProgressed, FindingSeen
from ddconsole.core.progress import Phase
from ddconsole.runner.phases import AttemptFailed

if TYPE_CHECKING:
    from ddconsole.core.config import Config
    from ddconsole.core.ports import AttemptKey, Host, Identity, Launched
    from ddconsole.core.progress import BootProgress, ShardBar
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.follow import LogFollower
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.phases import PhaseLog
    from ddconsole.runner.session import Session

TICK_S = 0.25
"""How often the log's state is looked at."""

PROGRESS_EVERY_S = 0.5
"""Progress events come twice a second at most."""

PROBE_EVERY_S = 1.0
"""How often the process and the port are asked for."""


def bar_json(bar: ShardBar | None) -> dict[str, Any] | None:
    """A bar as events carry it."""
    if bar is None:
        return None
    eta = None if bar.eta_s is None else round(bar.eta_s, 1)
    return {"done": bar.done, "total": bar.total, "eta_s": eta}


@dataclass(slots=True)
class _Seen:
    """What the boot has shown so far, so that each change is told once."""

    phase: Phase | None = None
    warnings: int = 0
    progressed_at: float = 0.0
    probed_at: float = 0.0
    said: BootProgressed | None = None


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
    ) -> None:
        self._bench = bench
        self._session = session
        self._journal = journal
        self._phases = phases
        self._key = key
        self._launched = launched
        self._follower = follower
        self._expected_s = expected_s
        self._kept = kept
        self._began = bench.clock.monotonic()
        self._seen = _Seen(probed_at=self._began)
        self._told: set[Phase] = set()

    async def until_ready(self, config: Config) -> Identity:
        """Wait for the engine, then prove contracts 2 and 3.

        Raises:
            AttemptFailed: it died, hung, is not the one asked for, or never speculated.
        """
        while not await self._answers():
            await self._bench.clock.sleep(TICK_S)
        await self._tell_phases()
        self._tell_progress(force=True)
        async with self._phases.phase(Phase.READY.value):
            return await self._prove(config)

    async def _answers(self) -> bool:
        """One look: tell what is new, end at a death or a stall, say whether the engine calls itself ready."""
        self._follower.flush()
        await self._tell_phases()
        self._tell_progress()
        now = self._bench.clock.monotonic()
        if now - self._seen.probed_at < PROBE_EVERY_S:
            return False
        self._seen.probed_at = now
        await self._end_at_death()
        self._end_at_stall()
        return await self._says_ready()

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
        raise AttemptFailed(self._follower.tracker.failure(liveness.exit_status))

    def _end_at_stall(self) -> None:
        phase = self._follower.tracker.progress.phase
        silent = self._bench.clock.monotonic() - self._follower.last_byte_at
        limit = self._bench.profile.stall_s(phase.value)
        if silent > limit:
            evidence = tuple(list(self._follower.recent)[-3:])
            raise AttemptFailed(
                Failure(
                    "stalled",
                    f"no line for {silent:.0f} s in {phase.value} (limit {limit:.0f} s)",
                    evidence,
                    f"Look at the whole log; raise `stalls.{phase.value}` in the profile if this host is only slow.",
                    phase.value,
                )
            )

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
        warnings = self._follower.tracker.facts.warnings
        for text in warnings[self._seen.warnings :]:
            await self._journal.emit(FindingSeen("warn", "log", text), self._key)
        self._seen.warnings = len(warnings)

    def _tell_progress(self, *, force: bool = False) -> None:
        now = self._bench.clock.monotonic()
        if self._kept or (not force and now - self._seen.progressed_at < PROGRESS_EVERY_S):
            return
        self._seen.progressed_at = now
        progress = self._follower.tracker.progress
        elapsed = now - self._began
        body = BootProgressed(
            phase=progress.phase.value,
            target=bar_json(progress.target),
            draft=bar_json(progress.draft),
            graphs=bar_json(progress.graphs),
            elapsed_s=round(elapsed, 1),
            eta_s=round(self._eta(progress, elapsed), 1),
            silent_s=round(now - self._follower.last_byte_at, 1),
        )
        self._journal.show(body, self._key)

    def _eta(self, progress: BootProgress, elapsed: float) -> float:
        """Seconds to ready: this host's history less what has passed, never below what the bar itself says."""
        remaining = max(self._expected_s - elapsed, 0.0)
        bar = progress.target.eta_s if progress.target is not None else None
        return max(remaining, bar or 0.0)

    async def _prove(self, config: Config) -> Identity:
        launcher, launched, engine = self._bench.launcher, self._launched, self._bench.engine

        async def prove(host: Host) -> Identity:
            owned, who = await launcher.owns_port(host, launched)
            if not owned:
                raise AttemptFailed(port_held(launched.port, who, self._follower))
            async with self._session.forwarded(launched.port) as base_url:
                identity = await engine.identify(base_url, host, launched, config, self._follower.tracker.facts)
                spoken: object = identity
                if not isinstance(identity, Failure):
                    spoken = await engine.speculates(base_url, config)
                if isinstance(spoken, Failure):
                    await host.ping()  # a lost line looks like a wrong answer; it is told apart here
                    raise AttemptFailed(spoken)
            assert not isinstance(identity, Failure)
            return identity

        return await self._session.on_host(prove)


def port_held(port: int, who: str, follower: LogFollower) -> Failure:
    """The false "ready": another server answers on the port, whatever the new engine's log says."""
    line = follower.tracker.facts.bind_failed
    return Failure(
        "port-held",
        f"the engine that was started does not answer on port {port}: {who}",
        (line,) if line else (),
        "End that server, or give this profile another port; nothing was measured against it.",
        Phase.READY.value,
    )
