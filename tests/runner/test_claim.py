"""A console works on a host only while the host's lease is its own."""

from __future__ import annotations

import asyncio

import pytest
from fakes.scripted import FreeLease, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.errors import RefusedError


def lease(world: World) -> FreeLease:
    found = world.bench.lease
    assert isinstance(found, FreeLease)
    return found


async def test_a_host_that_another_machine_runs_is_left_alone(world: Opened) -> None:
    """Refused with its holder's name; nothing is started, everything stays queued."""
    async with world() as w:
        await w.add(tree())
        lease(w).held_by = "bob@desk"
        with pytest.raises(RefusedError, match="bob@desk"):
            await w.drain()
        assert w.script.launches == []
        assert w.console.feed.view.queue["items"][0]["state"] == "queued"


async def test_the_lease_is_asked_for_before_every_launch_and_stop_and_given_back(world: Opened) -> None:
    """At the start, and around each of two engines."""
    async with world() as w:
        await w.add(tree(12), tree(16))
        await w.drain()
        assert lease(w).takes >= 1 + 2 + 1
        assert not lease(w).released
    assert lease(w).takes >= 1 + 2 + 2
    assert lease(w).released


async def test_a_host_taken_over_in_a_pass_interrupts_it_and_its_engine_is_not_touched(world: Opened) -> None:
    """The laptop slept: the attempt goes back to the front, the engine stays, and the screen can be used."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await w.add(tree())
        await w.console.start()
        await asyncio.wait_for(measuring.entered.wait(), 10)
        lease(w).held_by = "bob@desk"
        await w.until(lambda: not w.console.owns_run)
        other = w.bench.open_store()
        other.append_event("scripted", events.Event(0, w.bench.clock.now(), events.Warned("said by another process")))
        other.close()
        await w.until(lambda: any(body.text == "said by another process" for body in w.of(events.Warned)))
        assert w.outcomes() == ["interrupted"], "and nothing of this run is told a second time"
        assert w.script.stops == []
        said = [body.text for body in w.of(events.Warned)]
        assert any("bob@desk" in text and "left" in text for text in said)
        assert w.console.feed.view.queue["items"][0]["state"] == "queued"
        lease(w).held_by = None
        measuring.gate = None
        await w.console.start()
        await w.until(lambda: w.outcomes() == ["interrupted", "passed"])
        assert [body.kept for body in w.of(events.Ready)] == [False, True], "its engine was found again"


async def test_a_host_taken_over_between_two_experiments_starts_no_second_engine(world: Opened) -> None:
    """Seen at the launch, before the next beat."""
    async with world() as w:
        await w.add(tree(12), tree(16))
        w.console.feed.subscribe(
            lambda event: (
                setattr(lease(w), "held_by", "bob@desk") if isinstance(event.body, events.ExperimentFinished) else None
            )
        )
        with pytest.raises(RefusedError, match="bob@desk"):
            await w.drain()
        assert len(w.script.launches) == 1
        assert w.outcomes()[0] == "passed"
