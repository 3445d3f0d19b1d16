"""One try at an experiment: preflight, launch, loading, proof, passes, verdict. Ends in exactly one outcome."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Algorithm
from ddconsole.core.earlier import earlier_failures
from ddconsole.core.errors import DdconsoleError, Failure, HostError, RefusedError, StoreError
from ddconsole.core.events import ExperimentFinished, FindingSeen, Ready, Warned, utc_text
from ddconsole.core.experiment import Outcome
from ddconsole.core.progress import Phase
from ddconsole.core.queue import by_id
from ddconsole.core.recipe import launch_recipe, measuring_recipe
from ddconsole.core.require import parse_require
from ddconsole.core.verdict import judge, result_item
from ddconsole.engines.launch.deaths import named_by_disk
from ddconsole.engines.launch.ports import choose_port
from ddconsole.passes.plan import build_passes, planned_work
from ddconsole.passes.workload import workload_of
from ddconsole.runner.boot import Boot
from ddconsole.runner.estimates import BOOT
from ddconsole.runner.host_facts import keep_host_facts, keep_load_facts, take_over_host_facts
from ddconsole.runner.measuring import Measuring, Summaries
from ddconsole.runner.pace import Pace
from ddconsole.runner.phases import AttemptFailed, PhaseLog
from ddconsole.runner.tasks import to_the_end
from ddconsole.runner.tries import close_attempt, end_after_last_try, judged_failure
from ddconsole.runner.yardstick import Yardstick, find_yardstick

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.ports import AttemptKey, Finding, Identity
    from ddconsole.passes.base import MeasuringPass
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.database import Database
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session
    from ddconsole.runner.slot import EngineSlot, Occupant


HOST_HELD = "host-held"
"""Cause of an interruption by a console on another machine that has taken the host over."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended. `slot_dirty`: something of the engine could not be ended; nothing may start after it."""

    outcome: Outcome
    failure: Failure | None = None
    slot_dirty: bool = False


@dataclass(slots=True)
class Measured:
    """What an attempt has brought so far."""

    engine_version: str | None = None
    boot_s: float | None = None
    summaries: Summaries = field(default_factory=dict)
    boot: str | None = None


class Attempt:
    """Takes one experiment through its phases. `why_stopped` is what a cancellation of its task means."""

    def __init__(
        self,
        bench: Bench,
        session: Session,
        journal: Journal,
        database: Database,
        slot: EngineSlot,
        key: AttemptKey,
        experiment: Experiment,
        expected_boot_s: float,
    ) -> None:
        assert experiment.config is not None
        self._bench = bench
        self._session = session
        self._journal = journal
        self._database = database
        self._slot = slot
        self._key = key
        self._experiment = experiment
        self._config: Config = experiment.config
        self._effective: Effective = bench.engine.effective(experiment.config)
        self._expected_boot_s = expected_boot_s
        self._phases = PhaseLog(journal, bench.clock, key)
        self._measured = Measured()
        self._yardstick = Yardstick()
        self._started_at: datetime = bench.clock.now()
        self._workload = workload_of(bench.profile)
        self.why_stopped = Outcome.INTERRUPTED

    async def run(self) -> Ended:
        """The whole attempt. Whatever happens in it, its end is on disk when this returns.

        Raises:
            StoreError: what it brings cannot be kept. It is interrupted: now if that much can be written, else when
                its run is found to have ended uncleanly. Its engine is as it was.
        """
        try:
            ended = await self._to_its_end()
            with contextlib.suppress(asyncio.CancelledError):
                await to_the_end(self._finish(ended))
        except StoreError as error:
            with contextlib.suppress(asyncio.CancelledError):
                await to_the_end(self._interrupted_by(error))
            raise
        return ended

    async def _interrupted_by(self, error: StoreError) -> None:
        """Nothing is measured that cannot be kept; that it was interrupted is shown even when it cannot be either."""
        failure = Failure(error.kind, error.what, error.evidence, error.advice)
        try:
            await self._finish(Ended(Outcome.INTERRUPTED, failure))
        except StoreError:
            said = f"interrupted: {error.what}"
            body = ExperimentFinished(Outcome.INTERRUPTED.value, said, failure.to_json())
            self._journal.tell(body, self._key)

    async def _to_its_end(self) -> Ended:
        try:
            await self._work()
            return Ended(*self._judged())
        except AttemptFailed as failed:
            return await self._stopped_after(failed.failure)
        except RefusedError as error:  # the host is another console's: nothing of it is touched, not even our engine
            return Ended(Outcome.INTERRUPTED, Failure(HOST_HELD, error.what, error.evidence, error.advice))
        except StoreError:
            raise
        except DdconsoleError as error:
            return await self._stopped_after(Failure(error.kind, error.what, error.evidence, error.advice))
        except asyncio.CancelledError:
            return Ended(self.why_stopped)

    async def _work(self) -> None:
        await end_after_last_try(self._database, self._key)
        names = self._experiment.passes
        passes = await self._passes(names)
        if await self._all_inherited(names):
            return
        occupant = await self._engine()
        self._measured.summaries = await self._inherited()
        measuring = Measuring(
            self._bench, self._session, self._journal, self._phases, self._key, occupant, self._workload, self._pace()
        )
        while passes:
            await measuring.run(passes, self._experiment.repeats, self._measured.summaries)
            further = await self._further_passes(names)
            names += further
            passes = await self._passes(further) if further else []

    async def _all_inherited(self, names: Sequence[str]) -> bool:
        """The attempt before was interrupted when all was measured: no engine has to be started for its verdict."""
        there = await self._database.do(lambda store: store.inheritable_passes(self._key))
        if any(len(there.get(name, ())) < self._experiment.repeats for name in names):
            return False
        self._measured.summaries = await self._inherited()
        recipe = await self._database.do(lambda store: store.recipe(self._key))
        self._measured.engine_version = recipe.get("engine_version")
        self._measured.boot = recipe.get("boot")
        return True

    async def _inherited(self) -> Summaries:
        """Whole passes of an attempt that was interrupted are not measured again."""
        found = await self._database.do(lambda store: store.inherit_passes(self._key))
        if found:
            said = ", ".join(f"{name} ×{len(repeats)}" if len(repeats) > 1 else name for name, repeats in found.items())
            text = f"measured before the interruption, not measured again: {said}"
            await self._journal.emit(Warned(text), self._key)
        return found

    async def _passes(self, names: Sequence[str]) -> list[MeasuringPass]:
        """The passes of these names, refused now rather than after the weights are loaded."""
        profile = self._bench.profile
        parse_require(profile.limits_of(self._experiment.suite).require)
        trained = profile.engine.known_block_size
        work = {
            "effective": self._effective.to_json(),
            "workload": self._workload.to_json(),
            "suite": self._experiment.suite,
            "measured_on": profile.host,
            "work": planned_work(profile, self._experiment.suite, names),
        }
        name = self._key.profile
        self._yardstick = await self._database.do(lambda store: find_yardstick(store, name, work, trained))
        sandbox = await self._bench.open_sandbox()
        passes = build_passes(profile, self._experiment.suite, names, sandbox, self._yardstick.control)
        for measuring in passes:
            why = measuring.refusal()
            if why is not None:
                raise AttemptFailed(not_measurable(measuring.name, why))
        return passes

    def _pace(self) -> Pace:
        """The suite's time box; only a tree of the quick suite is ended early as hopeless, for chains are controls."""
        suite = self._experiment.suite
        early = suite == "quick" and self._config.algorithm is Algorithm.TREE
        box_s = self._bench.profile.passes.box_s(suite)
        return Pace(self._bench.clock, box_s, self._yardstick.best if early else None)

    async def _further_passes(self, done: tuple[str, ...]) -> tuple[str, ...]:
        """Passes that were given to the experiment while it ran."""
        queue = await self._database.do(lambda store: store.queue(self._key.profile))
        now = by_id(queue, self._key.id)
        return () if now is None else tuple(name for name in now.passes if name not in done)

    async def _engine(self) -> Occupant:
        """The engine in the slot, kept or newly started, and proved to be the one asked for."""
        kept = await self._slot.holds(self._effective)
        if not kept and self._slot.occupant is not None:
            async with self._phases.phase(Phase.STOP.value):
                await self._slot.empty()
        began = self._bench.clock.monotonic()
        occupant = self._slot.occupant if kept else await self._launch()
        assert occupant is not None
        if kept:
            await take_over_host_facts(self._database, self._key, occupant.name)
        occupant.follower.key = self._key
        self._measured.boot = occupant.name
        boot = Boot(
            self._bench, self._session, self._journal, self._phases, self._key,
            occupant.launched, occupant.follower, self._expected_boot_s, kept=kept,
            history=await self._database.do(lambda store: store.phase_history(self._key.profile)),
        )  # fmt: skip
        identity = await boot.until_ready(self._config)
        seconds = round(self._bench.clock.monotonic() - began, 3)
        self._measured.engine_version = identity.version
        self._measured.boot_s = None if kept else seconds
        await self._tell_ready(identity, seconds, kept=kept)
        return occupant

    async def _launch(self) -> Occupant:
        engine = self._bench.engine
        async with self._phases.phase(Phase.PREFLIGHT.value):
            port = engine.port if engine.port is not None else await self._session.on_host(choose_port)
            found = await self._session.on_host(lambda host: engine.preflight(host, self._config, port))
            await keep_host_facts(self._database, self._key, found.facts)
            reviewed = await self._session.on_host(lambda host: self._bench.launcher.review(host, port, found.findings))
            found = replace(found, findings=(*reviewed, *await self._failed_before()))
            for finding in found.findings:
                seen = FindingSeen(finding.level, finding.code, finding.text, finding.advice)
                await self._journal.emit(seen, self._key)
            if blocking := found.blocking:
                first = blocking[0]
                evidence = tuple(finding.text for finding in blocking[1:])
                raise AttemptFailed(Failure(first.code, first.text, evidence, first.advice))
        async with self._phases.phase(Phase.LAUNCH.value):
            plan = engine.plan(self._config, port)
            await self._database.do(lambda store: store.update_recipe(self._key, launch_recipe(plan)))
            return await to_the_end(self._slot.launch(plan, self._effective, self._key))

    async def _failed_before(self) -> tuple[Finding, ...]:
        name, host, effective = self._key.profile, self._bench.profile.host, self._effective.to_json()
        return await self._database.do(lambda store: earlier_failures(store.results(name), effective, host, name))

    async def _tell_ready(self, identity: Identity, seconds: float, *, kept: bool) -> None:
        body = Ready(seconds, list(identity.proved), list(identity.unproved), identity.version, kept)
        recipe = {
            "engine_version": identity.version,
            "proved": body.proved,
            "unproved": body.unproved,
            "boot": self._measured.boot,
            **measuring_recipe(self._bench.profile, self._experiment.suite, self._workload),
        }
        if kept and self._slot.occupant is not None:
            recipe |= launch_recipe(self._bench.engine.plan(self._config, self._slot.occupant.launched.port))

        def also(store: Any) -> None:
            store.update_recipe(self._key, recipe)
            if not kept:
                store.save_phase(self._key, BOOT, seconds)

        await self._journal.emit(body, self._key, also=also)

    def _judged(self) -> tuple[Outcome, Failure | None]:
        limits = self._bench.profile.limits_of(self._experiment.suite)
        return judge(
            self._config,
            self._measured.summaries,
            require=limits.require,
            control=self._yardstick.coding,
            divergence=limits.divergence,
        )

    async def _stopped_after(self, failure: Failure) -> Ended:
        """The failure stands even when the user leaves while the engine is being ended; the run's end sees to it."""
        outcome = Outcome.FAILED
        try:
            failure = await self._named(failure)
            outcome, failure = await judged_failure(self._database, self._key, failure)
            return await self._after_failure(outcome, failure)
        except asyncio.CancelledError:
            return Ended(outcome, failure)

    async def _named(self, failure: Failure) -> Failure:
        """What a command on the host could not do, named by the host's full disk where that is why."""
        if failure.cause != HostError.kind:
            return failure
        folder = self._bench.profile.launcher.state_dir
        with contextlib.suppress(HostError):
            return await self._session.on_host(lambda host: named_by_disk(host, failure, folder))
        return failure

    async def _after_failure(self, outcome: Outcome, failure: Failure) -> Ended:
        """A failed engine is not kept; what it leaves behind is the next one's trouble, so it is said."""
        try:
            if self._slot.occupant is not None:
                async with self._phases.phase(Phase.STOP.value):
                    await self._slot.empty()
        except AttemptFailed as stuck:
            return Ended(outcome, failure, slot_dirty=bool(stuck.failure))
        return Ended(outcome, failure)

    async def _finish(self, ended: Ended) -> None:
        await keep_load_facts(self._database, self._journal, self._key)
        at = self._bench.clock.now()
        item = self._item(ended, at)
        body = ExperimentFinished(
            ended.outcome.value,
            str(item["verdict"]),
            None if ended.failure is None else ended.failure.to_json(),
            item,
        )
        await self._journal.emit(
            body,
            self._key,
            also=lambda store: close_attempt(store, self._key, ended.outcome, item, ended.failure, at),
        )

    def _item(self, ended: Ended, at: datetime) -> dict[str, Any]:
        return result_item(
            id=self._key.id,
            sweep=self._experiment.sweep,
            attempt=self._key.attempt,
            outcome=ended.outcome,
            config=self._config,
            effective=self._effective,
            workload=self._workload,
            engine_version=self._measured.engine_version,
            boot_s=self._measured.boot_s,
            summaries=self._measured.summaries,
            failure=ended.failure,
            measured_on=self._bench.profile.host,
            started_at=utc_text(self._started_at),
            finished_at=utc_text(at),
            suite=self._experiment.suite,
            boot=self._measured.boot,
            control=self._yardstick.coding,
        )


def not_measurable(name: str, why: str) -> Failure:
    """A pass that this machine cannot run; known before the engine is paid for."""
    return Failure(
        "not-measurable",
        f"the {name} pass cannot be run here: {why}",
        (),
        "Install bubblewrap on this machine, or set `allow_no_isolation: true` in the profile's coding pass.",
        Phase.PREFLIGHT.value,
    )
