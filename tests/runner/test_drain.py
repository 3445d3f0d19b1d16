"""The queue is worked on: one experiment after another, every end recorded, nothing left running by accident."""

from __future__ import annotations

import asyncio

import pytest
from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.core.errors import RefusedError, UnreachableError
from ddconsole.core.experiment import Done, Failed, Origin, Outcome, Queued
from ddconsole.core.ports import Finding, Launched
from ddconsole.core.queue import Add, Cancel, Draft, Place, SetPaused


async def test_an_experiment_goes_through_its_phases_to_a_verdict(world: Opened) -> None:
    """Preflight, launch, loading, ready, pass, verdict: each told, each on disk, the engine stopped at the end."""
    async with world() as w:
        await w.add(tree())
        assert await w.drain() == "drained"
        phases = [(b.phase, b.state) for b in w.of(events.PhaseChanged)]
        for phase in ("preflight", "launch", "load_target", "pass:throughput"):
            assert (phase, "done") in phases
        assert w.outcomes() == ["passed"]
        ready = w.of(events.Ready)[0]
        assert ready.proved == ["port", "block size 8"]
    assert w.script.living == set()
    async with world() as again:
        result = again.console.feed.view.results[0]
        assert (result["id"], result["outcome"], result["engine_version"]) == ("E1", "passed", "0.5.23")
        assert again.console.feed.view.queue["items"][0]["state"] == "done"


async def test_equal_engines_share_one_boot(world: Opened) -> None:
    """A config that equals the running engine's keeps it; another one stops it first."""
    async with world() as w:
        await w.add(tree(12), tree(12), tree(16))
        await w.drain()
        assert [body.kept for body in w.of(events.Ready)] == [False, True, False]
    assert len(w.script.launches) == 2
    assert w.script.stops == [100, 101]


async def test_a_failure_is_recorded_and_the_queue_goes_on(world: Opened) -> None:
    """One failed experiment never blocks its followers."""
    async with world(Script(boots=["dies", "ready"])) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "drained"
        assert w.outcomes() == ["failed", "passed"]
        first = w.of(events.ExperimentFinished)[0]
        assert first.failure["cause"] == "gpu-oom"
        assert first.failure["advice"]


@pytest.mark.parametrize(
    ("fate", "cause"),
    [
        ("dies", "gpu-oom"),
        ("hangs", "stalled"),
        ("wrong", "identity-mismatch"),
        ("silent-drafter", "drafter-never-engaged"),
    ],
)
async def test_every_bad_boot_has_its_name_and_leaves_nothing(world: Opened, fate: str, cause: str) -> None:
    """Death, hang, mistaken identity and a drafter that never engaged are failures, never low scores."""
    async with world(Script(boots=[fate])) as w:
        await w.add(tree())
        await w.drain()
        assert w.of(events.ExperimentFinished)[0].failure["cause"] == cause
        assert w.script.living == set()
        assert w.of(events.PassStarted) == []


async def test_a_port_held_by_another_server_is_no_ready(world: Opened) -> None:
    """The log may say "fired up"; the socket belongs to another process, and nothing is measured."""
    async with world(Script(port_owner="pid 4711 (sglang), user bob")) as w:
        await w.add(tree())
        await w.drain()
        failure = w.of(events.ExperimentFinished)[0].failure
        assert failure["cause"] == "port-held"
        assert "4711" in failure["what"]
        assert w.of(events.PassStarted) == []


async def test_a_blocking_finding_costs_no_launch(world: Opened) -> None:
    """Preflight saves minutes: the engine is never started."""
    finding = Finding("block", "window-below-block", "window 4 is below block size 8", "Ask for a window of 8 or more.")
    async with world(Script(findings=(finding,))) as w:
        await w.add(tree())
        await w.drain()
        assert w.script.launches == []
        assert w.of(events.ExperimentFinished)[0].failure["cause"] == "window-below-block"


async def test_the_same_cause_twice_in_a_row_pauses_the_queue(world: Opened) -> None:
    """A night is not burnt on one fault."""
    async with world(Script(boots=["dies"])) as w:
        await w.add(tree(12), tree(16), tree(20))
        assert await w.drain() == "paused"
        assert w.outcomes() == ["failed", "failed"]
        assert any("twice in a row" in body.text for body in w.of(events.Warned))
        assert w.console.feed.view.queue["paused"]


async def test_an_engine_that_cannot_be_ended_pauses_the_queue(world: Opened) -> None:
    """No engine is started beside the remains of another."""
    async with world(Script(boots=["wrong"], remains=("pid 100 still holds 90 GB on GPU 3",))) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "paused"
        assert len(w.script.launches) == 1
        w.script.remains = ()


async def test_max_ends_the_run_with_the_rest_still_queued(world: Opened) -> None:
    """`--max 1` takes one."""
    async with world() as w:
        await w.add(tree(12), tree(16))
        assert await w.drain(limit=1) == "max"
        states = [item["state"] for item in w.console.feed.view.queue["items"]]
        assert states == ["done", "queued"]


async def test_an_edit_from_elsewhere_takes_effect_while_one_runs(world: Opened) -> None:
    """A second process puts an experiment in front while the first is measured; it runs next."""
    gate = asyncio.Event()
    measuring = ScriptedPass(gate=gate)
    async with world(None, measuring) as w:
        await w.add(tree(12), tree(16))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        other = w.bench.open_store()
        other.edit("scripted", Add((Draft(tree(20)),), Origin(), Place("front")))
        other.close()
        gate.set()
        await run
        order = [event.id for event in w.seen if isinstance(event.body, events.ExperimentStarted)]
        assert order == ["E1", "E3", "E2"]


async def test_cancel_stops_the_running_one_only(world: Opened) -> None:
    """The cancelled experiment is recorded as such and its engine is stopped; the next one runs."""
    gate = asyncio.Event()
    measuring = ScriptedPass(gate=gate)
    async with world(None, measuring) as w:
        await w.add(tree(12), tree(16))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        gate.set()
        measuring.gate = None
        await w.console.cancel()
        await run
        assert w.outcomes() == ["cancelled", "passed"]
        assert w.script.stops[0] == 100


async def test_another_process_cancels_the_running_one(world: Opened) -> None:
    """Everything the screen does, a command does too: the mark is in the store, the runner obeys it."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        other = w.bench.open_store()
        other.edit("scripted", Cancel("E1"))
        other.close()
        await run
        assert w.outcomes() == ["cancelled"]
        assert w.script.living == set()


async def test_closing_in_the_middle_puts_the_experiment_back_in_front(world: Opened) -> None:
    """A console that is closed loses nothing: interrupted, and queued again at the front."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await w.add(tree(12), tree(16))
        await w.console.start()
        await asyncio.wait_for(measuring.entered.wait(), 10)
    store = w.bench.open_store()
    queue = store.queue("scripted")
    assert [type(item.state) for item in queue.items] == [Queued, Queued]
    assert [item.id for item in queue.items] == ["E1", "E2"]
    assert store.open_attempts("scripted") == []
    assert w.script.living == set()
    store.close()


async def test_a_kept_engine_is_found_again_by_the_next_console(world: Opened) -> None:
    """Quit with the engine left running, come back, and the same config boots nothing."""
    async with world(keep=True) as w:
        await w.add(tree(12))
        await w.drain()
    assert w.script.living == {100}
    assert w.script.kept == [100], "the host knows that it was left on purpose"
    async with world(w.script) as again:
        await again.add(tree(12))
        await again.drain()
        assert [body.kept for body in again.of(events.Ready)] == [True]
    assert again.script.living == set()


async def test_an_unclean_end_is_put_right_and_waits_for_a_word(world: Opened) -> None:
    """What a killed console left running is marked interrupted and queued at the front; the queue starts paused."""
    async with world() as w:
        await w.add(tree(12), tree(16))
        store = w.bench.open_store()
        store.begin_run("scripted", "killed", 1, w.bench.clock.now())
        store.begin_attempt("scripted", "E1", {}, w.bench.clock.now())
        store.close()
    async with world() as after:
        states = [item["state"] for item in after.console.feed.view.queue["items"]]
        assert states == ["queued", "queued"]
        assert not after.console.autostart
        assert await after.drain() == "paused"
    async with world() as again:
        assert await again.drain(resume=True) == "drained"
        assert again.outcomes() == ["passed", "passed"]


async def test_an_engine_whose_launch_was_never_recorded_is_found_by_its_name(world: Opened) -> None:
    """Killed between the launch and its record, then killed again before the host was asked: it is still found."""
    async with world() as w:
        await w.add(tree(12))
        store = w.bench.open_store()
        store.begin_run("scripted", "killed", 1, w.bench.clock.now())
        key = store.begin_attempt("scripted", "E1", {}, w.bench.clock.now())
        store.plan_engine(key, "scripted-E1-1-abcd", {})
        store.close()
    lost = Launched("process", 100, 100, 1, "boot", "t", "/runs/scripted-E1-1-abcd/engine.log", "/runs", 30000)
    script = Script(launches=[lost], living={100})
    async with world(script) as unreachable:
        unreachable.bench.connector.refuse = True  # type: ignore[attr-defined]
        with pytest.raises(UnreachableError):
            await unreachable.drain(resume=True)
    assert script.living == {100}
    async with world(script) as w:
        assert await w.drain(resume=True) == "drained"
        assert script.stops[0] == 100, "it was found and ended before its config was started again"
    assert script.living == set()


async def test_a_launch_that_left_no_trace_on_the_host_is_forgotten(world: Opened) -> None:
    """The console died before the host heard of it."""
    async with world() as w:
        await w.add(tree(12))
        store = w.bench.open_store()
        key = store.begin_attempt("scripted", "E1", {}, w.bench.clock.now())
        store.plan_engine(key, "scripted-E1-1-abcd", {})
        store.close()
    async with world() as w:
        assert await w.drain(resume=True) == "drained"
        store = w.bench.open_store()
        assert [kept.key.attempt for kept in store.engines("scripted")] == [2], "only the new one, still in the slot"
        store.close()


async def test_a_second_runner_of_the_host_is_refused_and_only_watches(world: Opened) -> None:
    """One runner a host; the second console says who it is and can still edit the queue."""
    async with world() as w:
        w.bench.lock.held_by = "another ddconsole, pid 4711"  # type: ignore[attr-defined]
        await w.add(tree(12))
        with pytest.raises(RefusedError, match="4711"):
            await w.drain()
        assert not w.console.owns_run
        queue = await w.add(tree(16))
        assert len(queue.items) == 2


async def test_an_unreachable_host_ends_a_run_with_everything_still_queued(world: Opened) -> None:
    """Nothing is started, nothing is lost."""
    async with world() as w:
        w.bench.connector.refuse = True  # type: ignore[attr-defined]
        await w.add(tree(12))
        with pytest.raises(UnreachableError):
            await w.drain()
        assert [item["state"] for item in w.console.feed.view.queue["items"]] == ["queued"]


async def test_a_cut_line_in_a_pass_measures_it_again(world: Opened) -> None:
    """The pass is repeated from its start on the new connection, and that is said."""
    gate = asyncio.Event()
    measuring = ScriptedPass(gate=gate)
    async with world(None, measuring) as w:
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        w.bench.connector.hosts[0].cut = True  # type: ignore[attr-defined]
        measuring.entered.clear()
        await asyncio.wait_for(measuring.entered.wait(), 10)
        gate.set()
        await run
        assert measuring.runs == 2
        assert any("measured again" in body.text for body in w.of(events.Warned))
        assert w.outcomes() == ["passed"]


async def test_an_engine_that_dies_in_a_pass_is_a_failure_of_that_pass(world: Opened) -> None:
    """The pass does not wait for its time-outs; the phase of death is named."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        w.script.living.clear()
        await run
        failure = w.of(events.ExperimentFinished)[0].failure
        assert (failure["cause"], failure["phase"]) == ("gpu-oom", "pass:throughput")


async def test_start_goes_on_with_a_paused_queue(world: Opened) -> None:
    """`s` after `p`: the console waits for work, and takes it when it may."""
    async with world() as w:
        await w.add(tree(12))
        await w.console.edit(SetPaused(True))
        finished = asyncio.Event()
        w.console.feed.subscribe(
            lambda event: finished.set() if isinstance(event.body, events.ExperimentFinished) else None
        )
        await w.console.start()
        await asyncio.wait_for(finished.wait(), 10)
        assert w.console.owns_run
        assert w.outcomes() == [Outcome.PASSED.value]


async def test_states_of_the_store_match_what_was_told(world: Opened) -> None:
    """The queue's end states carry the attempt and the failure."""
    async with world(Script(boots=["dies", "ready"])) as w:
        await w.add(tree(12), tree(16))
        await w.drain()
        store = w.bench.open_store()
        first, second = store.queue("scripted").items
        store.close()
        assert isinstance(first.state, Failed)
        assert first.state.failure.cause == "gpu-oom"
        assert second.state == Done(1, Outcome.PASSED)
