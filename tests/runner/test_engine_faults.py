"""The engine dies, hangs or is exchanged in every phase and in every pass: a named outcome, a clean host, the next one.

The log is a real tracker's; the host and its time are scripted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fakes.scripted import NoStream, Script, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.errors import Failure
from ddconsole.core.ports import Launched
from ddconsole.core.progress import Phase
from ddconsole.engines.sglang.bootlog import BootLog

STAMP = "[2026-12-02 14:00:00 TP0] "
FIRED = "[2026-12-02 14:07:00] The server is fired up and ready to roll!\n"
OOM = (
    f"{STAMP}Scheduler hit an exception: Traceback (most recent call last):\n"
    f"{STAMP}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 3 has a total capacity of"
    " 94.97 GiB of which 1.10 GiB is free.\n"
)

RECORDED = Path(__file__).parents[1] / "engines" / "data" / "boot-0.5.23-dflash-b8.log"


def logs_by_phase() -> dict[Phase, str]:
    """The recorded boot, cut where the engine enters each phase; what comes behind is not written any more."""
    tracker, logs, log = BootLog(), dict[Phase, str](), ""
    for number, line in enumerate(RECORDED.read_text().splitlines(keepends=True)):
        tracker.feed(line.encode(), float(number))
        log += line
        logs.setdefault(tracker.progress.phase, log)
    del logs[Phase.READY]
    return logs


PHASES = logs_by_phase()


def test_the_recorded_boot_goes_through_every_phase() -> None:
    """What is tried below is all there is."""
    mine = {Phase.PREFLIGHT, Phase.LAUNCH, Phase.READY, Phase.STOP}
    assert set(PHASES) == set(Phase) - mine


class LogStream(NoStream):
    """A log as far as it was written."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._text:
            yield self._text.encode()
        await self._closed.wait()


class Written:
    """What each launch writes, in order; the last entry is a whole boot and repeats."""

    def __init__(self, *logs: str) -> None:
        self.logs = [*logs, FIRED]

    def install(self, world: World) -> None:
        """Put these logs and a real tracker behind the scripted launcher and engine."""
        launcher: Any = world.bench.launcher
        engine: Any = world.bench.engine

        async def follow(host: Any, launched: Launched, offset: int) -> LogStream:
            text = self.logs[min(launched.pid - 100, len(self.logs) - 1)]
            return LogStream(text[offset:])

        def tracker() -> BootLog:
            engine.trackers += 1
            return BootLog()

        launcher.follow, engine.tracker = follow, tracker


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stall has a limit of 20 s."""
    monkeypatch.setattr("ddconsole.core.profile.Profile.stall_s", lambda self, phase: 20.0)


def first_failure(world: World) -> dict[str, Any]:
    failure: dict[str, Any] = world.of(events.ExperimentFinished)[0].failure  # type: ignore[attr-defined]
    return failure


async def two_run(world: World) -> None:
    """Two experiments, of which the second finds the host as if nothing had been."""
    await world.add(tree(12), tree(16))
    assert await asyncio.wait_for(world.drain(), 60) == "drained"
    assert world.outcomes() == ["failed", "passed"]
    assert world.script.living <= {101}, "nothing of the first is left"
    assert world.script.stops[0] == 100


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("last", "cause"), [(OOM, "gpu-oom"), ("", "killed")], ids=["oom", "killed"])
async def test_a_death_in_any_phase_has_the_cause_that_the_log_shows(
    world: Opened, phase: Phase, last: str, cause: str
) -> None:
    """Out of memory, and killed without a word; the queue goes on."""
    async with world(Script(boots=["dies", "ready"])) as w:
        Written(PHASES[phase] + last).install(w)
        await two_run(w)
        found = first_failure(w)
        assert found["cause"] == cause
        assert found["phase"] == phase.value
        assert found["advice"]


@pytest.mark.parametrize("phase", PHASES)
async def test_a_hang_in_any_phase_ends_at_its_limit(world: Opened, phase: Phase) -> None:
    """No line for longer than the profile's limit of that phase; the silence is the evidence."""
    async with world(Script(boots=["hangs", "ready"])) as w:
        Written(PHASES[phase]).install(w)
        began = w.bench.clock.monotonic()
        await two_run(w)
        found = first_failure(w)
        assert found["cause"] == "stalled"
        assert found["phase"] == phase.value
        assert "no line for" in found["what"]
        assert "limit 20 s" in found["what"]
        assert w.bench.clock.monotonic() - began < 60


async def test_an_engine_that_never_gets_ready_after_it_said_so_ends_at_its_limit(world: Opened) -> None:
    """`fired up` is only a word: its /ready never answers 200, and then nothing more comes."""
    async with world(Script(boots=["hangs", "ready"])) as w:
        Written(FIRED).install(w)
        await two_run(w)
        assert (first_failure(w)["cause"], first_failure(w)["phase"]) == ("stalled", "ready")


async def test_an_engine_that_dies_of_its_first_request_is_told_by_its_death(world: Opened) -> None:
    """The request fails first; the cause is what killed the engine, not that an answer did not come."""
    async with world() as w:
        Written(FIRED + OOM).install(w)
        engine: Any = w.bench.engine

        async def speculates(base_url: str, config: Any) -> Any:
            if len(w.script.launches) > 1:
                return None
            w.script.living.clear()
            return Failure("first-request", "the first request failed: RemoteProtocolError")

        engine.speculates = speculates
        await two_run(w)
        assert first_failure(w)["cause"] == "gpu-oom"


class Trouble(ScriptedPass):
    """A pass that goes on for ever the first time, after it has done something to the engine."""

    def __init__(self, name: str, world_script: Script, what: str) -> None:
        super().__init__(name)
        self.script = world_script
        self.what = what

    async def run(self, context: Any) -> Any:
        if self.runs:
            return await super().run(context)
        self.runs += 1
        if self.what == "dies":
            self.script.living.clear()
        elif self.what == "is exchanged":  # another process took its place: the pid is gone, the port answers
            self.script.living.clear()
            self.script.port_owner = None
        await asyncio.Event().wait()
        raise AssertionError("nothing ends this wait but its cancellation")


@pytest.fixture
def _watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass looks at the engine's life without waiting."""
    monkeypatch.setattr("ddconsole.runner.measuring.WATCH_EVERY_S", 0.01)


@pytest.mark.usefixtures("_watched_closely")
@pytest.mark.parametrize("name", ["throughput", "coding", "quality"])
@pytest.mark.parametrize(
    ("what", "last", "cause"),
    [("dies", OOM, "gpu-oom"), ("dies", "", "killed"), ("is exchanged", "", "killed")],
    ids=["out of memory", "killed", "restarted behind our back"],
)
async def test_an_engine_that_is_lost_in_a_pass_fails_that_pass(
    world: Opened, name: str, what: str, last: str, cause: str
) -> None:
    """The pass does not wait for its time-outs; what it had measured does not count."""
    script = Script()
    async with world(script, Trouble(name, script, what)) as w:
        Written(FIRED + last).install(w)
        await two_run(w)
        found = first_failure(w)
        assert (found["cause"], found["phase"]) == (cause, f"pass:{name}")


@pytest.mark.usefixtures("_watched_closely")
@pytest.mark.parametrize("name", ["throughput", "coding", "quality"])
async def test_a_hang_in_a_pass_ends_at_its_limit(world: Opened, name: str) -> None:
    """The engine lives, and no request ends."""
    script = Script()
    async with world(script, Trouble(name, script, "hangs")) as w:
        Written(FIRED).install(w)
        run = asyncio.create_task(two_run(w))
        await w.until(lambda: bool(w.of(events.PassStarted)))
        clock: Any = w.bench.clock
        clock.seconds += w.bench.profile.stall_s("pass") + 1
        await run
        assert (first_failure(w)["cause"], first_failure(w)["phase"]) == ("pass-stalled", f"pass:{name}")


async def test_a_port_that_is_another_process_is_no_engine(world: Opened) -> None:
    """Named with who holds it; the next experiment runs when the port is free again."""
    script = Script(port_owner="pid 4711 (nginx), user bob")
    async with world(script) as w:
        Written(FIRED).install(w)
        await w.add(tree(12))
        await w.drain()
        assert first_failure(w)["cause"] == "port-held"
        assert "4711" in first_failure(w)["what"]
        assert script.living == set()
