"""The same cause twice in a row pauses the queue, in one run or in runs one after another."""

from __future__ import annotations

import pytest
from fakes.scripted import Script
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Place, by_id
from ddconsole.runner.row import Row, row_of

OOM, HELD, DOWN = ("failed", "gpu-oom"), ("failed", "port-held"), ("interrupted", "host-rebooted")
PASS, CANCEL, CUT = ("passed", None), ("cancelled", None), ("interrupted", None)


def pauses(*ends: tuple[str, str | None], ids: str = "") -> list[int]:
    """Numbers, from 1, of the ends that pause the queue; `ids` are the experiments', each its own when not given."""
    row, names = Row(), ids or "ABCDEFGH"
    return [number for number, (of, end) in enumerate(zip(names, ends, strict=False), 1) if row.take(of, *end)]


@pytest.mark.parametrize(
    ("ends", "paused"),
    [
        ((OOM, OOM), [2]),
        ((OOM, HELD, OOM, HELD), []),
        ((OOM, PASS, OOM), []),
        ((OOM, CANCEL, OOM), []),
        ((OOM, CUT, OOM), [3]),
        ((OOM, ("interrupted", "host-held"), OOM), [3]),
        ((OOM, OOM, OOM), [2]),
        ((OOM, OOM, OOM, OOM), [2, 4]),
        ((("failed", "service-not-ours"),), [1]),
        ((DOWN, DOWN), [2]),
        ((DOWN, OOM), []),
    ],
)
def test_what_breaks_a_row_and_what_does_not(ends: tuple[tuple[str, str | None], ...], paused: list[int]) -> None:
    """Another cause, a pass and a cancellation do; an interruption says nothing. After a pause it begins anew."""
    assert pauses(*ends) == paused


def test_trying_again_what_took_the_host_down_is_no_second_time() -> None:
    """That has a limit of its own; another experiment that does it too is one."""
    assert pauses(DOWN, DOWN, ("failed", "host-rebooted"), ids="AAA") == []
    assert pauses(DOWN, DOWN, DOWN, ids="AAB") == [3]


def test_results_of_an_older_shape_are_read() -> None:
    """Those of a killed console hold nothing but their outcome."""
    row = row_of([{"id": "E1", "outcome": "failed", "failure": {"cause": "gpu-oom"}}, {"outcome": "interrupted"}])
    assert row == Row("gpu-oom", "E1")


async def test_runs_of_one_attempt_each_pause_the_queue_as_one_run_does(world: Opened) -> None:
    """`ddconsole run --max 1`, again and again, with an engine that dies; resumed, the cause counts anew."""
    launched: list[int] = []
    one, two, waits = (False, "max", False), (False, "max", True), (False, "paused", True)
    for resume, reason, paused in (one, two, waits, (True, "max", False), two):
        async with world(Script(boots=["dies"])) as w:
            if not launched:
                await w.add(*(tree(budget) for budget in range(12, 24)))
            assert await w.drain(resume=resume, limit=1) == reason
            assert w.console.feed.view.queue["paused"] is paused
            launched.append(len(w.script.launches))
    assert launched == [1, 1, 0, 1, 1]


async def test_a_resumed_queue_is_not_paused_by_the_next_failure_alone(world: Opened) -> None:
    """In one run: two failures pause; after the word the first one does not, its second does."""
    async with world(Script(boots=["dies"])) as w:
        await w.add(*(tree(budget) for budget in range(12, 24)))
        for failures in (2, 4):
            await w.console.start()
            await w.until(lambda: len([t for t in w.of(events.Warned) if "twice" in t.text]) * 2 == failures)  # type: ignore[attr-defined] # noqa: B023
            assert len(w.outcomes()) == failures


async def test_what_has_to_follow_a_success_waits_while_others_run(world: Opened) -> None:
    """`after! E1` behind a failure never starts, and those that only stand behind it do."""
    async with world(Script(boots=["dies", "ready"])) as w:
        await w.add(tree(12))
        origin, place = Origin("after!", after="E1"), Place("after", "E1")
        await w.console.edit(Add((Draft(tree(16), requires="E1"),), origin, place))
        await w.add(tree(20))
        assert await w.drain() == "drained"
        ids = [event.id for event in w.seen if isinstance(event.body, events.ExperimentStarted)]
        assert ids == ["E1", "E3"]
        assert w.outcomes() == ["failed", "passed"]
        store = w.bench.open_store()
        waiting = by_id(store.queue("scripted"), "E2")
        store.close()
        assert waiting is not None
        assert waiting.requires == "E1"
        assert type(waiting.state).__name__ == "Queued"
