"""`base=best` takes its knobs at the start, from the best that had passed by then."""

from __future__ import annotations

from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.queue import Add, Draft


async def test_it_is_bound_when_it_starts_not_when_it_is_queued(world: Opened) -> None:
    """The best of that moment, with what was typed kept; the queue then shows the config that ran."""
    async with world(Script(), ScriptedPass()) as w:
        await w.console.edit(Add((Draft(tree(99), base_best=True, pinned=("window",)),), Origin()))
        store, clock = w.bench.open_store(), w.bench.clock
        await w.add(tree(12), tree(16), tree(20))
        for id_, budget, speed, outcome in (("E2", 12, 140.0, Outcome.PASSED), ("E3", 16, 150.0, Outcome.PASSED),
                                            ("E4", 20, 190.0, Outcome.WRONG)):  # fmt: skip
            key = store.begin_attempt("scripted", id_, {}, clock.now())
            item = {"config": tree(budget).to_json(), "tok_s_e2e": speed}
            store.finish_attempt(key, outcome, item, None, clock.now())
        store.close()
        await w.drain()
        started = w.of(events.ExperimentStarted)
        assert [body.config["budget"] for body in started] == [16], "the fastest that passed, not the fastest"
        item = next(item for item in w.console.feed.view.queue["items"] if item["id"] == "E1")
        assert item["config"]["budget"] == 16


async def test_with_nothing_passed_it_is_held_with_the_reason(world: Opened) -> None:
    """And the queue goes on."""
    async with world(Script(), ScriptedPass()) as w:
        await w.console.edit(Add((Draft(tree(99), base_best=True), Draft(tree(12))), Origin()))
        await w.drain()
        states = {item["id"]: item["state"] for item in w.console.feed.view.queue["items"]}
        assert states == {"E1": "held", "E2": "done"}
        assert any("nothing has passed yet" in body.text for body in w.of(events.Warned))
