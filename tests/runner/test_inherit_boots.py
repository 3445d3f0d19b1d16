"""A pass that was taken over from an interrupted attempt was measured on that attempt's engine: boots count rightly."""

from __future__ import annotations

import asyncio

from fakes.records import record
from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, tree

from ddconsole.core.boots import Known
from ddconsole.core.experiment import Origin
from ddconsole.core.levels import summarise_level
from ddconsole.core.queue import Add, Draft
from ddconsole.passes.base import PassContext, PassResult, pass_summary


class Measured(ScriptedPass):
    """Three requests at concurrency 1; from the second run on it may be held until the test opens the gate."""

    def __init__(self, name: str, gate: asyncio.Event | None = None, free_runs: int = 0) -> None:
        super().__init__(name, gate)
        self.free_runs = free_runs

    async def run(self, context: PassContext) -> PassResult:
        self.runs += 1
        if self.gate is not None and self.runs > self.free_runs:
            self.entered.set()
            await self.gate.wait()
        records = tuple(record(f"p{n}") for n in range(3))
        summary = pass_summary(records, [summarise_level(records, 3.0, 1)]) | {"passed": 3, "total": 3}
        return PassResult(self.name, summary, records)


async def interrupted(world: Opened, held: Measured, *others: Measured, repeats: int = 1) -> None:
    """A console that dies while `held` is being measured; its engine is ended with it."""
    async with world(None, *others, held) as w:
        names = tuple(one.name for one in (*others, held))
        await w.console.edit(Add((Draft(tree(), passes=names, repeats=repeats),), Origin()))
        await w.console.start()
        await asyncio.wait_for(held.entered.wait(), 10)
    held.gate = None


async def test_a_pass_keeps_the_boot_it_was_measured_on(world: Opened) -> None:
    """Coding stands from the first engine, throughput is measured on the second; the figures are coding's."""
    coding, throughput = Measured("coding"), Measured("throughput", asyncio.Event())
    await interrupted(world, throughput, coding)
    async with world(Script(), coding, throughput) as w:
        assert await w.drain(resume=True) == "drained"
        item = w.console.feed.view.results[-1]
    assert (coding.runs, throughput.runs) == (1, 2)
    assert "-E1-1-" in item["boot"]
    assert item["by_boot"] is None


async def test_repeats_around_an_interruption_are_two_boots(world: Opened) -> None:
    """The first repeat on the first engine, the second on another one."""
    coding = Measured("coding", asyncio.Event(), free_runs=1)
    await interrupted(world, coding, repeats=2)
    async with world(Script(), coding) as w:
        assert await w.drain(resume=True) == "drained"
        item = w.console.feed.view.results[-1]
    assert coding.runs == 3
    assert [boot.split("-")[-2] for boot in item["by_boot"]] == ["1", "2"]
    assert len(Known([item]).boots(item)) == 2
    assert item["by_prompt"]["p0"][0] == sum(rows["p0"][0] for rows in item["by_boot"].values())
