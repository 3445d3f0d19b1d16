"""The host's disk is full while a run works on it: what is ours is ended, the cause is named, nothing stays locked."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from fakes.scripted import FreeLease, FreeLock, ScriptedLauncher, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.errors import HostError, UnwritableLeaseError
from ddconsole.core.ports import Launched, LaunchPlan, StopProof
from ddconsole.engines.launch.lease import LIFE_S
from ddconsole.runner.claim import BEAT_S

FULL = "sh: 1: cannot create /runs/x/launch: No space left on device"


def lease(world: World) -> FreeLease:
    found = world.bench.lease
    assert isinstance(found, FreeLease)
    return found


def no_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease can be read and not be written from now on."""

    async def take(host: Any) -> None:
        raise UnwritableLeaseError("the lease on the host cannot be taken", evidence=(FULL,), advice="free space")

    monkeypatch.setattr(lease(world), "take", take)


async def in_a_pass(w: World, measuring: ScriptedPass) -> None:
    await w.add(tree(12))
    await w.console.start()
    await asyncio.wait_for(measuring.entered.wait(), 10)


async def test_quitting_ends_our_engine_though_the_lease_cannot_be_written(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a stop it is enough that nobody else holds the host."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await in_a_pass(w, measuring)
        no_room(w, monkeypatch)
    assert w.script.living == set()
    assert w.script.stops == [100]


async def test_a_lease_that_cannot_be_written_starts_nothing(world: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is enough for a stop alone."""
    async with world() as w:
        await w.add(tree(12))
        no_room(w, monkeypatch)
        with pytest.raises(UnwritableLeaseError):
            await w.drain()
        assert w.script.launches == []


async def test_an_engine_that_the_host_will_not_end_is_said_and_nothing_stays_locked(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`close` comes to its end; the next run finds the engine by its record."""

    async def stop(self: ScriptedLauncher, host: Any, launched: Launched) -> StopProof:
        raise HostError("the stop did not come to its end", advice="look at the host")

    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await in_a_pass(w, measuring)
        monkeypatch.setattr(ScriptedLauncher, "stop", stop)
    said = [body.text for body in w.of(events.Warned)]  # type: ignore[attr-defined]
    assert any("the stop did not come to its end (look at the host)" in text and "was left" in text for text in said)
    assert isinstance(w.bench.lock, FreeLock)
    assert not w.bench.lock.held
    assert lease(w).released
    assert w.of(events.RunFinished) != []
    store = w.bench.open_store()
    assert [kept.key.id for kept in store.engines("scripted")] == ["E1"]
    assert not store.close_unclean_runs("scripted", w.bench.clock.now()), "the run itself ended in order"
    store.close()
    monkeypatch.undo()


async def test_a_launch_on_a_full_disk_fails_with_its_own_cause_and_advice(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As preflight and an engine's log name it."""

    async def launch(self: ScriptedLauncher, host: Any, plan: LaunchPlan, name: str) -> Launched:
        raise HostError("the engine could not be started", evidence=(FULL,))

    monkeypatch.setattr(ScriptedLauncher, "launch", launch)
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
        failure = w.of(events.ExperimentFinished)[0].failure  # type: ignore[attr-defined]
        assert (failure["cause"], failure["phase"]) == ("disk-full", "launch")
        assert "Free space on the host" in failure["advice"]


async def test_the_lease_is_renewed_every_ten_seconds_and_misses_five_beats_before_it_ends(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rhythm that docs/reliability.md promises, by the clock of the run."""
    assert (BEAT_S, LIFE_S) == (10.0, 60)
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await in_a_pass(w, measuring)
        beats: list[float] = []
        enough = asyncio.Event()

        async def take(host: Any) -> None:
            beats.append(w.bench.clock.monotonic())
            if len(beats) == 7:
                enough.set()

        monkeypatch.setattr(lease(w), "take", take)
        await asyncio.wait_for(enough.wait(), 20)
        between = [later - earlier for earlier, later in itertools.pairwise(beats)]
        assert all(9.9 <= each <= 12 for each in between), between
