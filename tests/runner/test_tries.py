"""The night: an experiment that takes the host, or its engine's service, down is tried again at most twice."""

from __future__ import annotations

import asyncio

import pytest
from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.experiment import Failed, Queued
from ddconsole.core.ports import Launched
from ddconsole.core.queue import Retry
from ddconsole.passes.base import PassContext, PassResult


@pytest.fixture(autouse=True)
def _watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass looks at the engine's life without waiting."""
    monkeypatch.setattr("ddconsole.runner.measuring.WATCH_EVERY_S", 0.01)


class DownPass(ScriptedPass):
    """A pass in which the host is booted anew the first `times`; the line is cut with it."""

    def __init__(self, script: Script, times: int) -> None:
        super().__init__()
        self.script = script
        self.times = times

    async def run(self, context: PassContext) -> PassResult:
        if not self.times:
            return await super().run(context)
        self.times -= 1
        self.fall()
        await asyncio.Event().wait()
        raise AssertionError("nothing ends this wait but its cancellation")

    def fall(self) -> None:
        self.script.boot_id += "+"


class GonePass(DownPass):
    """The same, and what goes down is the unit of the engine, without a word of its end."""

    def fall(self) -> None:
        self.script.unit_gone = True
        self.script.living.clear()


def finished(world: World) -> list[tuple[str | None, str, str | None]]:
    """Id, outcome and cause of every end."""
    return [
        (event.id, event.body.outcome, event.body.failure and event.body.failure["cause"])
        for event in world.seen
        if isinstance(event.body, events.ExperimentFinished)
    ]


async def test_an_attempt_that_loses_its_host_is_interrupted_and_comes_next(world: Opened) -> None:
    """Queued again at the front, ahead of who waited behind it; its second try is measured."""
    script = Script()
    async with world(script, DownPass(script, times=1)) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "drained"
        assert finished(w) == [("E1", "interrupted", "host-rebooted"), ("E1", "passed", None), ("E2", "passed", None)]
        told = w.of(events.ExperimentFinished)[0]
        assert "try 2 of 3" in told.failure["what"]
        assert told.failure["phase"] == "pass:throughput"
        store = w.bench.open_store()
        assert store.cuts("scripted", "E1") == [], "what passed in the end has nothing to answer for"
        store.close()


async def test_the_third_time_it_fails_with_that_cause_and_the_queue_goes_on(world: Opened) -> None:
    """Two more tries, then a failure; a night is not burnt on one experiment, and its followers run."""
    script = Script()
    async with world(script, DownPass(script, times=3)) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "drained"
        cause = "host-rebooted"
        assert finished(w) == [
            ("E1", "interrupted", cause), ("E1", "interrupted", cause), ("E1", "failed", cause), ("E2", "passed", None),
        ]  # fmt: skip
        assert "not tried again" in w.of(events.ExperimentFinished)[2].failure["what"]
        assert len(script.launches) == 4
        store = w.bench.open_store()
        first = store.queue("scripted").items[0]
        assert isinstance(first.state, Failed)
        assert first.state.failure.cause == cause
        assert [item["outcome"] for item in store.results("scripted")][:3] == ["interrupted", "interrupted", "failed"]
        store.close()
    assert script.living & {launched.pid for launched in script.launches[3:]} == set()


async def test_a_retry_by_hand_has_its_tries_again(world: Opened) -> None:
    """The user has looked at the host and wants it once more."""
    script = Script()
    falling = DownPass(script, times=4)
    async with world(script, falling) as w:
        await w.add(tree(12))
        await w.drain()
        await w.console.edit(Retry("E1"))
        assert (await w.console.drain()).reason == "drained"
        assert [end[1] for end in finished(w)] == ["interrupted", "interrupted", "failed", "interrupted", "passed"]


async def test_a_second_experiment_that_loses_the_host_too_pauses_the_queue(world: Opened) -> None:
    """The same cause twice in a row, with two experiments: it is the host."""
    script = Script()
    async with world(script, DownPass(script, times=4)) as w:
        await w.add(tree(12), tree(16))
        assert await w.drain() == "paused"
        assert finished(w)[3] == ("E2", "interrupted", "host-rebooted")
        assert any("twice in a row" in body.text for body in w.of(events.Warned))
        assert isinstance(w.console.feed.view.queue["items"], list)
        store = w.bench.open_store()
        assert isinstance(store.queue("scripted").items[1].state, Queued)
        store.close()


async def test_a_host_lost_while_loading_counts_the_same(world: Opened) -> None:
    """The phase in which it went down is named."""
    script = Script(boots=["hangs", "ready"])
    async with world(script) as w:
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await w.until(lambda: any(b.phase == "load_target" for b in w.of(events.PhaseChanged)))
        script.boot_id = "another"
        w.bench.connector.hosts[-1].cut = True  # type: ignore[attr-defined]
        assert await asyncio.wait_for(run, 30) == "drained"
        assert finished(w) == [("E1", "interrupted", "host-rebooted"), ("E1", "passed", None)]
        assert w.of(events.ExperimentFinished)[0].failure["phase"] == "load_target"


async def test_a_unit_that_systemd_lost_is_tried_again_too(world: Opened) -> None:
    """Its manager went down with it: no end of the engine was recorded anywhere."""
    script = Script(unit="ddconsole-x.service")
    async with world(script, GonePass(script, times=3)) as w:
        await w.add(tree(12))
        assert await w.drain() == "drained"
        assert [end[1:] for end in finished(w)] == [
            ("interrupted", "service-vanished"), ("interrupted", "service-vanished"), ("failed", "service-vanished"),
        ]  # fmt: skip


async def test_passes_that_were_whole_before_the_host_went_down_stand(world: Opened) -> None:
    """As after every interruption."""
    script = Script()
    coding, falling = ScriptedPass("coding"), DownPass(script, times=2)
    async with world(script, coding, falling) as w:
        await w.add(tree(12))
        await w.drain()
        assert w.outcomes() == ["interrupted", "interrupted", "passed"]
    assert coding.runs == 1


def console_and_host_die(world: World, number: int) -> None:
    """What both leave behind when a machine that runs its own engine goes down in a pass."""
    store, now = world.bench.open_store(), world.bench.clock.now()
    store.begin_run("scripted", f"killed-{number}", 1, now)
    key = store.begin_attempt("scripted", "E1", {}, now)
    name = f"scripted-E1-{number}-abcd"
    store.plan_engine(key, name, {})
    launched = Launched("process", 900 + number, 900 + number, 1, f"boot {number}", "t", f"/runs/{name}/engine.log",
                        "/runs", 30000)  # fmt: skip
    store.remember_engine(name, launched)
    store.close()


@pytest.mark.parametrize("deaths", [2, 3])
async def test_a_host_that_takes_the_console_with_it_is_counted_from_the_store(world: Opened, deaths: int) -> None:
    """`host: local`, run again at each boot: the third time, the fourth start launches nothing and fails."""
    script = Script(boot_id="boot 99")
    async with world(script) as w:
        await w.add(tree(12))
    for number in range(1, deaths):
        async with world(script) as w:
            console_and_host_die(w, number)
        async with world(script) as w:  # it finds the dead engine, and is killed before it starts another
            assert await w.drain(resume=True, limit=0) == "max"
    async with world(script) as w:
        console_and_host_die(w, deaths)
    async with world(script) as w:
        assert await w.drain(resume=True) == "drained"
        ends = finished(w)
        assert ends[-1] == (("E1", "passed", None) if deaths == 2 else ("E1", "failed", "host-rebooted"))
        assert len(script.launches) == (1 if deaths == 2 else 0)


async def test_a_clean_end_before_the_host_was_booted_counts_for_nothing(world: Opened) -> None:
    """Quit in the middle, engine kept; the host is booted for an update; nobody took it down."""
    script = Script()
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(script, measuring, keep=True) as w:
        await w.add(tree(12))
        await w.console.start()
        await asyncio.wait_for(measuring.entered.wait(), 10)
    script.boot_id = "after the update"
    measuring.gate = None
    async with world(script, measuring) as w:
        store = w.bench.open_store()
        assert await w.drain(resume=True, limit=0) == "max"
        assert store.cuts("scripted", "E1") == []
        store.close()
