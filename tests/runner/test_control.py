"""What an attempt is held against: the control's coding; and a recipe that lacks nothing that would be needed again."""

from __future__ import annotations

import re
from typing import Any

from fakes.recorded_host import RecordedHost, recorded
from fakes.scripted import ScriptedPass
from runner.world import Opened, tree

from ddconsole.adapters.profile_file import load_profile
from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.gpu import GpuSample
from ddconsole.core.levels import summarise_level
from ddconsole.core.ports import AttemptKey
from ddconsole.engines.sglang.preflight import preflight
from ddconsole.passes.base import PassContext, PassResult, pass_summary

CHAIN = Config(Algorithm.CHAIN, block_size=8, window=2048)


class GradedPass(ScriptedPass):
    """A coding pass; each run passes as many of five tasks as `scores` says next."""

    def __init__(self, *scores: int) -> None:
        super().__init__("coding")
        self.scores = list(scores)

    async def run(self, context: PassContext) -> PassResult:
        result = await super().run(context)
        passed = self.scores.pop(0)
        tasks = [
            {"id": f"t{n}", "verdict": "passed" if n < passed else "failed", "detail": "assert f(1) == 2"}
            for n in range(5)
        ]
        graded = {"passed": passed, "total": 5, "graded": True, "tasks": tasks, "suite": "small", "max_tokens": 1024}
        summary = pass_summary(result.records, [summarise_level(result.records, 3.21, 1)])
        return PassResult(self.name, summary | graded, result.records)


async def test_a_tree_far_behind_its_chain_is_wrong_and_one_just_behind_is_warned_of(world: Opened) -> None:
    """The chain first; what was measured before it has no control and is judged by itself."""
    async with world(None, GradedPass(1, 5, 1, 4)) as w:
        await w.add(tree(16), CHAIN, tree(12), tree(20))
        await w.drain()
        finished: list[Any] = w.of(events.ExperimentFinished)
        assert w.outcomes() == ["passed", "passed", "wrong", "passed"]
        assert finished[2].verdict.startswith("wrong: coding 1/5 where its control E2 has 5/5: more than chance")
        assert finished[2].failure["cause"] == "coding-below-control"
        assert "⚠ coding 4/5 where its control E2 has 5/5: which may be chance" in finished[3].verdict


class BusyPass(ScriptedPass):
    """A pass in which a card works."""

    world: Any

    async def run(self, context: PassContext) -> PassResult:
        sample = GpuSample(0, utilization_pct=95.0, pcie_gen=5, pcie_width=16, sm_clock_mhz=2317)
        self.world.console._journal.under_load.take([sample])
        return await super().run(context)


async def test_the_recipe_is_whole(world: Opened) -> None:
    """Each part that somebody would need to make the number again, from a preflight's real reading of a ct200."""
    host: Any = RecordedHost(recorded())
    found = await preflight(load_profile("ct200").profile, host, tree(), 30_000)
    busy = BusyPass()
    async with world(None, busy) as w:
        busy.world = w
        w.bench.engine.facts = dict(found.facts)  # type: ignore[attr-defined]
        await w.add(tree())
        await w.drain()
        store = w.bench.open_store()
        recipe = store.recipe(AttemptKey("scripted", "E1", 1))
        store.close()
    assert recipe["engine_version"] == "0.5.23"
    assert recipe.keys() >= {"command", "env", "secret_env", "workload", "limits", "plan", "effective"}
    facts = recipe["host_facts"]
    assert re.fullmatch("[0-9a-f]{64}", facts["drafter"]["config_sha256"])
    card = facts["cards"][0]
    assert card["driver_version"] == "580.95.05"
    assert (card["clocks.sm"], card["clocks.mem"], card["clocks.max.sm"]) == (180.0, 405.0, 2430.0)
    assert facts["sm_clock_under_load"] == [{"index": 0, "low_mhz": 2317, "high_mhz": 2317}]
    assert recipe["seeds"]["resampling"] == 0
    assert recipe.keys() >= {"profile_digest", "ddconsole"}, "the profile's revision and the program's"
