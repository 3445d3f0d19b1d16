"""A measured experiment's engine left serving, over scripted parts."""

from __future__ import annotations

import pytest
from fakes.scripted import Script, ScriptedHost
from runner.world import Opened, World, tree

from ddconsole.core.errors import HostError, RefusedError
from ddconsole.core.ports import Finding
from ddconsole.runner.promote import Promoted, promote


async def promoted(w: World, id_: str = "E1") -> tuple[Promoted, list[str]]:
    """Promote, with what was said."""
    said: list[str] = []
    return await promote(w.bench, ScriptedHost(), id_, said.append), said  # type: ignore[arg-type]


def on_record(w: World) -> list[str]:
    """Experiments whose engines are on record."""
    store = w.bench.open_store()
    try:
        return [kept.key.id for kept in store.engines("scripted")]
    finally:
        store.close()


async def test_the_winner_is_started_and_kept(world: Opened) -> None:
    """It is on record, marked as kept, and runs when the command is over."""
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    async with world(w.script) as w:
        done, said = await promoted(w)
        assert not done.kept
        assert done.launched.pid in w.script.living
        assert done.launched.pid in w.script.kept
        assert on_record(w) == ["E1"]
        assert any(f"pid {done.launched.pid}" in line for line in said)
        assert any("load_target" in line for line in said), "eight minutes are not spent in silence"
        assert done.proved == ("port", "block size 8")


async def test_an_engine_that_serves_it_already_is_kept_and_others_are_ended(world: Opened) -> None:
    """No second boot of the same engine; nothing of ours beside it."""
    async with world(keep=True) as w:
        await w.add(tree(12), tree(16))
        await w.drain()
    async with world(w.script) as w:
        launches = len(w.script.launches)
        done, _ = await promoted(w, "E2")
        assert done.kept
        assert len(w.script.launches) == launches
        done, said = await promoted(w, "E1")
        assert not done.kept
        assert w.script.living == {done.launched.pid}
        assert on_record(w) == ["E1"]
        assert "the engine of E2 was ended" in said


async def test_only_what_passed_is_left_serving(world: Opened) -> None:
    """Neither what is not there nor what failed or waits."""
    async with world(Script(boots=["dies"])) as w:
        await w.add(tree(12))
        await w.drain()
        await w.add(tree(16))
    async with world(w.script) as w:
        for id_, why in (("E9", "no experiment"), ("E1", "not passed"), ("E2", "not passed")):
            with pytest.raises(RefusedError, match=why):
                await promoted(w, id_)
        assert w.script.living == set()


async def test_what_blocks_a_launch_blocks_a_promotion(world: Opened) -> None:
    """With the finding's own words, and nothing is started."""
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    async with world(w.script) as w:
        launches = len(w.script.launches)
        w.script.findings = (
            Finding("warn", "disk", "little room"),
            Finding("block", "port-held", "port 1 is held", "end it"),
        )
        with pytest.raises(RefusedError, match="port 1 is held") as refused:
            await promoted(w)
        assert refused.value.advice == "end it"
        assert len(w.script.launches) == launches


@pytest.mark.parametrize(
    ("boot", "why"),
    [("dies", "out of GPU memory"), ("wrong", "/server_info says 16"), ("silent-drafter", "no verify step")],
)
async def test_one_that_fails_is_told_by_its_cause_ended_and_what_it_displaced_put_back(
    world: Opened, boot: str, why: str
) -> None:
    """As in a run: what answers is proved, and production is not left without its service."""
    script = Script(restored=("sglang.service is put back as it was: active",))
    async with world(script) as w:
        await w.add(tree(12))
        await w.drain()
    script.boots = [boot]
    said: list[str] = []
    async with world(script) as w:
        with pytest.raises(HostError, match=why):
            await promote(w.bench, ScriptedHost(), "E1", said.append)  # type: ignore[arg-type]
        assert script.living == set()
        assert on_record(w) == []
    assert said[-1] == script.restored[0]
    assert script.kept == []


async def test_nothing_is_put_back_beside_what_could_not_be_ended(world: Opened) -> None:
    """Its cards are still full; it stays on record, and what remains is named."""
    script = Script()
    async with world(script) as w:
        await w.add(tree(12))
        await w.drain()
    script.boots, script.remains = ["wrong"], ("process 7 sglang::scheduler",)
    said: list[str] = []
    async with world(script) as w:
        with pytest.raises(HostError, match="/server_info says 16"):
            await promote(w.bench, ScriptedHost(), "E1", said.append)  # type: ignore[arg-type]
        assert on_record(w) == ["E1"]
    assert "process 7" in said[-1]
    assert script.restores == 0


async def test_one_that_serves_already_and_does_not_answer_is_left_and_said(world: Opened) -> None:
    """Nothing is ended or started on a guess."""
    async with world(keep=True) as w:
        await w.add(tree(12))
        await w.drain()
    w.script.boots = ["hangs"]
    async with world(w.script) as w:
        launches = len(w.script.launches)
        with pytest.raises(HostError, match="does not answer"):
            await promoted(w)
        assert (len(w.script.launches), len(w.script.living)) == (launches, 1)


async def test_one_that_never_becomes_ready_is_left_and_said(world: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still be loading; how to look at it and end it is said."""
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    w.script.boots = ["hangs"]
    monkeypatch.setattr("ddconsole.runner.promote_boot.READY_FACTOR", 0.0)  # the least wait: 600 virtual seconds
    async with world(w.script) as w:
        with pytest.raises(HostError, match="not ready after 600 s") as late:
            await promoted(w)
        assert "stop" in late.value.advice
        assert on_record(w) == ["E1"]


async def test_another_process_on_the_port_is_no_winner(world: Opened) -> None:
    """The old server that answers in its place."""
    async with world() as w:
        await w.add(tree(12))
        await w.drain()
    async with world(w.script) as w:
        w.script.port_owner = "port 30000 is held by pid 7 (eve, python)"
        with pytest.raises(HostError, match="pid 7"):
            await promoted(w)
