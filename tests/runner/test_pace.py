"""How long is measured, what a new attempt is measured against, and what is kept of how it was made."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.clock import VirtualClock
from fakes.records import record
from fakes.results import measured
from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, tree

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.early import Best
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.levels import summarise_level
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import AttemptKey
from ddconsole.core.profile import CodingPass
from ddconsole.core.queue import Add, Draft
from ddconsole.passes.base import PassContext, PassResult, pass_summary
from ddconsole.runner.pace import Pace
from ddconsole.runner.yardstick import find_yardstick

NOW = datetime(2026, 12, 2, 14, tzinfo=UTC)
CHAIN = Config(Algorithm.CHAIN, 8, window=2048)


async def test_the_time_box_begins_anew_with_each_repeat() -> None:
    """And says why it ended a pass, the first reason that it had."""
    clock = VirtualClock()
    pace = Pace(clock, box_s=60.0)
    asked = [record(f"p{n}") for n in range(3)]
    first = pace.of("coding")
    assert not first(asked, 8)
    await clock.sleep(61)
    assert first(asked, 8)
    assert first.stop is not None
    assert first.stop.code == "time-box"
    pace.begin()
    assert not pace.of("coding")(asked, 8)


async def test_no_further_level_is_begun_without_time_or_hope() -> None:
    """Without a box there is always time; a pass that was cut by the box alone is not hopeless."""
    clock = VirtualClock()
    assert Pace(clock).left_s() is None
    assert Pace(clock).of("throughput").another()
    pace = Pace(clock, box_s=60.0)
    await clock.sleep(59)
    assert pace.left_s() == pytest.approx(1)
    assert pace.of("throughput").another()
    await clock.sleep(2)
    assert not pace.of("throughput").another()
    fast = {f"p{n}": (100.0, 1.0, 99.0, 0.9, 100.0, 20.0, 0.9) for n in range(4)}
    hopeless = Pace(clock, best={"coding": Best("E14", fast)}).of("coding")
    assert hopeless.another()
    assert hopeless([record(f"p{n}", 100, 80, 4.0) for n in range(3)], 5)
    assert not hopeless.another()


async def test_hopeless_is_judged_by_the_same_pass() -> None:
    """Another pass asks other prompts; without a best nothing is ended early."""
    fast = {f"p{n}": (100.0, 1.0, 99.0, 0.9, 100.0, 20.0, 0.9) for n in range(4)}
    slow = [record(f"p{n}", 100, 80, 4.0) for n in range(3)]
    pace = Pace(VirtualClock(), best={"coding": Best("E14", fast)})
    assert pace.of("coding")(slow, 5)
    assert not pace.of("throughput")(slow, 5)
    assert not Pace(VirtualClock()).of("coding")(slow, 5)


def finished(
    store: SqliteStore, config: Config, rate: float, passes: dict[str, list[RequestRecord]], **item: Any
) -> None:
    """One more experiment, measured."""
    queue = store.edit("p", Add((Draft(config),), Origin()))
    key = store.begin_attempt("p", queue.items[-1].id, {}, NOW)
    for name, records in passes.items():
        for one in records:
            store.save_request(key, name, 1, one)
        store.save_pass(key, name, 1, pass_summary(records, []))
    result = measured(key.id, rate, budget=config.budget) | {"config": config.to_json(), "effective": config.to_json()}
    store.finish_attempt(key, Outcome.PASSED, result | item, None, NOW)


WORK = {key: measured("E0", 1)[key] for key in ("workload", "suite", "measured_on")} | {"effective": tree(16).to_json()}


def test_the_best_result_and_the_controls_texts(tmp_path: Path) -> None:
    """The fastest that did the same work, pass by pass; the chain's answers with how often it left them itself."""
    store = SqliteStore(tmp_path / "s.db")
    texts = [record("q1", text="x"), record("q2", text="y"), record("q1", text="x"), record("q2", text="z")]
    finished(store, CHAIN, 100, {"coding": [record("a", 100, 25)], "quality": texts})
    finished(store, tree(12), 140, {"coding": [record("a", 100, 20), record("a", 50, 10)], "throughput": [record("t")]})
    finished(store, tree(8), 999, {"coding": [record("a", 100, 1)]}, suite="confirm")
    found = find_yardstick(store, "p", WORK, 8)
    assert set(found.best) == {"coding", "throughput"}
    assert found.best["coding"].id == "E2"
    assert found.best["coding"].by_prompt["a"][0] == 150
    assert found.control is not None
    assert (found.control.id, found.control.texts) == ("E1", {"q1": "x", "q2": "y"})
    assert (found.control.differing, found.control.repeated) == (1, 2)
    store.close()


def test_without_results_there_is_nothing_to_measure_against(tmp_path: Path) -> None:
    """And a chain without a quality pass is no control of answers."""
    store = SqliteStore(tmp_path / "s.db")
    assert find_yardstick(store, "p", WORK, 8).best == {}
    finished(store, CHAIN, 100, {"coding": [record("a")]})
    assert find_yardstick(store, "p", WORK, 8).control is None
    store.close()


class AskingPass(ScriptedPass):
    """Asks three requests too many and looks whether it is enough, as a load does."""

    def __init__(self, answers: list[RequestRecord]) -> None:
        super().__init__("coding")
        self.answers = answers

    async def run(self, context: PassContext) -> PassResult:
        asked: list[RequestRecord] = []
        for one in self.answers:
            if context.enough is not None and context.enough(asked, len(self.answers)):
                break
            asked.append(one)
            context.on_request(one, len(asked), len(self.answers))
        summary = pass_summary(asked, [summarise_level(asked, 1.0, 1)]) | {"passed": len(asked), "total": len(asked)}
        summary |= {"suite": "small", "max_tokens": CodingPass().max_tokens}
        return PassResult("coding", summary, tuple(asked))


def answers(steps: int, seconds: float) -> list[RequestRecord]:
    return [record(f"p{n}", 100, steps + n % 2, seconds) for n in range(6)]


async def test_a_hopeless_tree_is_ended_early_and_the_verdict_says_so(world: Opened) -> None:
    """Against the best so far (300 tokens in 61 steps); the first is measured whole, and so is a chain, a control."""
    ask = AskingPass(answers(20, 1.0))
    async with world(Script(), ask) as w:
        await w.add(tree(12))
        await w.drain()
        ask.answers = answers(80, 4.0)
        await w.add(tree(16), CHAIN)
        await w.drain()
        first, hopeless, chain = w.console.feed.view.results
    assert [len(one["by_prompt"]) for one in (first, hopeless, chain)] == [6, 3, 6]
    assert "coding ended early: τ 1.24 after 3 prompts is hopeless against E1's 4.92" in hopeless["verdict"]
    assert "ended early" not in first["verdict"] + chain["verdict"]


async def test_the_recipe_is_whole(world: Opened, tmp_path: Path) -> None:
    """Command, environment, suite, seeds, boot: also where the engine was kept, whose boot it shares."""
    async with world() as w:
        await w.add(tree(12), tree(12), tree(16))
        await w.drain()
        results = w.console.feed.view.results
    store = SqliteStore(tmp_path / "ddconsole.db")
    recipes = [store.recipe(AttemptKey("scripted", item["id"], 1)) for item in results]
    store.close()
    for recipe in recipes:
        assert {"command", "env", "secret_env", "plan", "limits", "seeds", "workload", "engine_version", "boot"} <= set(
            recipe
        )
        assert recipe["plan"]["time_box_s"] == 180.0
    boots = [item["boot"] for item in results]
    assert boots == [recipe["boot"] for recipe in recipes]
    assert boots[0] == boots[1] != boots[2]
    assert [item["suite"] for item in results] == ["quick"] * 3


@pytest.mark.parametrize("suite", ["quick", "confirm"])
async def test_only_quick_has_a_box_by_default(world: Opened, suite: str) -> None:
    """confirm measures to its end."""
    seen: list[bool] = []

    class Slow(ScriptedPass):
        async def run(self, context: PassContext) -> PassResult:
            await context.clock.sleep(200)
            assert context.enough is not None
            seen.append(context.enough([record(f"p{n}") for n in range(3)], 8))
            return await super().run(context)

    async with world(Script(), Slow()) as w:
        await w.console.edit(Add((Draft(tree(), suite=suite),), Origin()))
        await w.drain()
    assert seen == [suite == "quick"]
