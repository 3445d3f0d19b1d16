"""This machine's clock jumps, or it was suspended: durations, order and states do not depend on it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.runner.claim import BEAT_S


async def test_a_clock_that_jumps_back_a_day_and_forth_an_hour_changes_no_duration_and_no_order(world: Opened) -> None:
    """Attempts, results and events stand in the order in which they came; every time is UTC."""
    async with world(Script(boots=["ready"])) as w:
        clock: Any = w.bench.clock
        plain, jumps = clock.now, iter(range(10_000))

        def jumping() -> datetime:
            moment: datetime = plain()
            return moment + timedelta(days=-1 if next(jumps) % 3 == 0 else 0, hours=next(jumps) % 2)

        clock.now = jumping
        await w.add(tree(12), tree(16), tree(20))
        assert await asyncio.wait_for(w.drain(), 60) == "drained"
        store = w.bench.open_store()
        results = store.results("scripted")
        assert [item["id"] for item in results] == ["E1", "E2", "E3"]
        assert all(item["boot_s"] >= 0 for item in results)
        assert all(item["started_at"].endswith("Z") for item in results)
        assert [item.id for item in store.queue("scripted").items] == ["E1", "E2", "E3"]
        told = store.events("scripted", 0, 10_000)
        assert [event.seq for event in told] == sorted(event.seq for event in told)
        assert all(phase >= 0 for one in store.phase_history("scripted") for phase in one.values())
        store.close()


async def test_a_laptop_that_slept_for_an_hour_in_a_pass_finds_its_line_lost_and_measures_again(world: Opened) -> None:
    """The host went on; the line is built anew, the lease renewed, and the pass repeated from its start."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        clock: Any = w.bench.clock
        lease: Any = w.bench.lease
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        measuring.entered.clear()
        takes = lease.takes
        w.bench.connector.hosts[-1].cut = True  # type: ignore[attr-defined]
        clock.seconds += 3600
        await asyncio.wait_for(measuring.entered.wait(), 10)
        assert measuring.gate is not None
        before = clock.seconds
        await w.until(lambda: lease.takes > takes or clock.seconds > before + 3 * BEAT_S)
        measuring.gate.set()
        assert await asyncio.wait_for(run, 30) == "drained"
        assert measuring.runs == 2
        assert w.outcomes() == ["passed"]
        states = [body.state for body in w.of(events.Connection)]  # type: ignore[attr-defined]
        assert "lost" in states
        assert states[states.index("lost") :].count("connected") >= 1


async def test_a_laptop_whose_host_was_taken_over_while_it_slept_touches_nothing(world: Opened) -> None:
    """It was away for longer than the lease holds: the attempt is interrupted, the other one's work goes on."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        clock: Any = w.bench.clock
        lease: Any = w.bench.lease
        await w.add(tree(12))
        await w.console.start()
        await asyncio.wait_for(measuring.entered.wait(), 10)
        lease.held_by = "bob@desk"
        clock.seconds += 3600
        await w.until(lambda: bool(w.of(events.ExperimentFinished)))
        assert w.outcomes() == ["interrupted"]
        assert any("bob@desk" in body.text for body in w.of(events.Warned))  # type: ignore[attr-defined]
        assert w.script.stops == []
