"""What was measured on is kept with every result, also where an engine was kept from an earlier one."""

from __future__ import annotations

from typing import Any

from fakes.scripted import ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.gpu import GpuSample
from ddconsole.core.ports import AttemptKey
from ddconsole.passes.base import PassContext, PassResult


def facts(w: World, experiment: str) -> dict[str, Any]:
    """The host facts of an experiment's first attempt, as the store has them."""
    store = w.bench.open_store()
    try:
        found: dict[str, Any] = store.recipe(AttemptKey("scripted", experiment, 1))["host_facts"]
        return found
    finally:
        store.close()


async def test_facts_are_kept_and_a_kept_engine_hands_them_on(world: Opened) -> None:
    """The second experiment found its engine running: it names the attempt whose preflight looked."""
    async with world() as w:
        await w.add(tree(12), tree(12))
        await w.drain()
        assert [body.kept for body in w.of(events.Ready)] == [False, True]  # type: ignore[attr-defined]
        assert facts(w, "E1")["machine"] == {"kernel": "scripted"}
        assert facts(w, "E2") == facts(w, "E1") | {"by_attempt": "E1/1"}


class BusyPass(ScriptedPass):
    """A pass in which the cards work over a slow link."""

    world: World

    async def run(self, context: PassContext) -> PassResult:
        journal = self.world.console._journal
        journal.under_load.take([GpuSample(0, utilization_pct=95.0, pcie_gen=3, pcie_width=16, sm_clock_mhz=2100)])
        return await super().run(context)


async def test_links_under_load_are_kept_and_a_slow_one_is_told(world: Opened) -> None:
    """Preflight sees idle cards only; the run sees them at work."""
    busy = BusyPass()
    async with world(None, busy) as w:
        busy.world = w
        w.bench.engine.facts = {"cards": [{"index": 0, "pcie.link.gen.max": 5.0}]}  # type: ignore[attr-defined]
        await w.add(tree(12))
        await w.drain()
        assert facts(w, "E1")["pcie_under_load"] == [{"index": 0, "gen": 3, "width": 16}]
        assert facts(w, "E1")["sm_clock_under_load"] == [{"index": 0, "low_mhz": 2100, "high_mhz": 2100}]
        found = [body for body in w.of(events.FindingSeen) if body.code == "pcie-slow"]  # type: ignore[attr-defined]
        assert [body.text for body in found] == [  # type: ignore[attr-defined]
            "PCIe stayed below its best under load: card 0 gen 3 of 5"
        ]
