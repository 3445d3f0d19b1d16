"""What was measured whole before an interruption stands; only the rest is measured again."""

from __future__ import annotations

import asyncio

from fakes.scripted import RECORD, Script, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.ports import AttemptKey
from ddconsole.core.queue import Change


async def interrupted_in(world: Opened, first: ScriptedPass, second: ScriptedPass) -> World:
    """A console that is closed while the second pass is being measured."""
    async with world(None, first, second) as w:
        await w.add(tree())
        await w.console.start()
        await asyncio.wait_for(second.entered.wait(), 10)
    return w


async def test_a_finished_pass_is_not_measured_again(world: Opened) -> None:
    """The second attempt takes over the whole pass, with its request; the cut one is measured from its start."""
    coding, throughput = ScriptedPass("coding"), ScriptedPass("throughput", asyncio.Event())
    await interrupted_in(world, coding, throughput)
    throughput.gate = None
    async with world(None, coding, throughput) as w:
        assert await w.drain(resume=True) == "drained"
        assert w.outcomes() == ["passed"]
        assert any("not measured again: coding" in body.text for body in w.of(events.Warned))
        store = w.bench.open_store()
        key = AttemptKey("scripted", "E1", 2)
        assert set(store.finished_passes(key)) == {"coding", "throughput"}
        assert store.records(key, "coding") == [RECORD]
        assert store.recipe(key)["inherited_from"] == 1
        store.close()
    assert (coding.runs, throughput.runs) == (1, 2)


async def test_an_edited_experiment_inherits_nothing(world: Opened) -> None:
    """It is another config: what the old one measured does not stand for it."""
    coding, throughput = ScriptedPass("coding"), ScriptedPass("throughput", asyncio.Event())
    await interrupted_in(world, coding, throughput)
    throughput.gate = None
    async with world(None, coding, throughput) as w:
        await w.console.edit(Change("E1", tree(24)))
        assert await w.drain(resume=True) == "drained"
    assert coding.runs == 2


async def test_an_attempt_that_had_measured_all_starts_no_engine(world: Opened) -> None:
    """Killed between the last pass and its verdict: the verdict is all that is missing."""
    async with world() as w:
        await w.add(tree())
        store, clock = w.bench.open_store(), w.bench.clock
        effective = w.bench.engine.effective(tree()).to_json()
        recipe = {"ddconsole": w.bench.version, "profile_digest": w.bench.digest, "suite": "quick",
                  "effective": effective, "engine_version": "0.5.23"}  # fmt: skip
        store.begin_run("scripted", "killed", 1, clock.now())
        key = store.begin_attempt("scripted", "E1", recipe, clock.now())
        for name in ("coding", "throughput"):
            store.save_pass(key, name, 1, {"requests": 1, "failed": 0, "passed": 1, "total": 1})
        store.close()
    async with world(Script()) as w:
        assert await w.drain(resume=True) == "drained"
        assert w.outcomes() == ["passed"]
        assert w.script.launches == []
        assert w.console.feed.view.results[-1]["engine_version"] == "0.5.23"


async def test_a_failed_attempt_is_not_inherited(world: Opened) -> None:
    """Only an interruption says nothing against what was measured."""
    coding = ScriptedPass("coding")
    throughput = ScriptedPass("throughput")
    async with world(Script(boots=["dies", "ready"]), coding, throughput) as w:
        await w.add(tree())
        await w.drain()
        store = w.bench.open_store()
        assert store.inheritable_passes(AttemptKey("scripted", "E1", 2)) == {}
        store.close()
    assert coding.runs == 0


async def test_requests_of_a_cut_pass_are_no_measurement(world: Opened) -> None:
    """The line breaks in a pass: its requests stay on record, but only those of the whole pass count."""
    throughput = ScriptedPass("throughput")
    async with world(None, throughput) as w:
        await w.add(tree())
        store, clock = w.bench.open_store(), w.bench.clock
        key = store.begin_attempt("scripted", "E1", {}, clock.now())
        store.save_request(key, "throughput", 1, RECORD)
        store.cut_pass(key, "throughput", 1)
        assert store.records(key) == []
        store.save_request(key, "throughput", 1, RECORD)
        assert store.records(key) == [RECORD]
        store.close()
