"""The console's own disk is full in the middle of a run: that is said, the run winds up, and starts again with room."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.scripted import RECORD, FreeLease, FreeLock, Script, ScriptedPass
from runner.world import Opened, World, tree

from ddconsole.adapters.store import SqliteStore
from ddconsole.core import events
from ddconsole.core.errors import StoreError
from ddconsole.passes.base import PassContext, PassResult
from ddconsole.runner.console import Console
from ddconsole.runner.database import Database
from ddconsole.runner.feed import Feed
from ddconsole.runner.journal import Journal

ADVICE = "free some space and try again"


class Disk:
    """The disk under the store."""

    def __init__(self) -> None:
        self.full = False
        self.refused_request = threading.Event()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """While it is full every transaction that writes is refused, as SQLite refuses it; those that read are not."""
    disk, real, save_request = Disk(), SqliteStore._writing, SqliteStore.save_request

    def saving(store: SqliteStore, *request: Any) -> None:
        try:
            save_request(store, *request)
        except StoreError:
            disk.refused_request.set()
            raise

    @contextlib.contextmanager
    def writing(store: SqliteStore) -> Iterator[object]:
        if disk.full:
            raise StoreError("the store cannot be written: the disk is full", advice=ADVICE)
        with real(store) as db:
            yield db

    monkeypatch.setattr(SqliteStore, "_writing", writing)
    monkeypatch.setattr(SqliteStore, "save_request", saving)
    monkeypatch.setattr("ddconsole.runner.measuring.WATCH_EVERY_S", 0.01)
    return disk


class SlowPass(ScriptedPass):
    """One request ends at the gate, the next one never does."""

    async def run(self, context: PassContext) -> PassResult:
        self.entered.set()
        assert self.gate is not None
        await self.gate.wait()
        context.on_request(RECORD, 1, 100)
        await asyncio.Event().wait()
        raise AssertionError("nothing ends this wait but its cancellation")


def warned(world: World) -> list[str]:
    return [body.text for body in world.of(events.Warned)]  # type: ignore[attr-defined]


async def in_a_pass(w: World, measuring: ScriptedPass) -> None:
    await w.add(tree(12), tree(16))
    await w.console.start()
    await asyncio.wait_for(measuring.entered.wait(), 10)


async def assert_nothing_is_held(w: World) -> None:
    lock, lease = w.bench.lock, w.bench.lease
    assert isinstance(lock, FreeLock)
    assert isinstance(lease, FreeLease)
    assert not lock.held
    assert lease.released
    ours = {"drain", "attempt", "renew-lease", "follow-log"}
    await w.until(lambda: not ours & {task.get_name() for task in asyncio.all_tasks()})  # its last step is just ahead


@pytest.mark.parametrize("kind", [ScriptedPass, SlowPass])
async def test_a_disk_that_fills_in_a_pass_winds_the_run_up_and_says_what_to_do(
    world: Opened, disk: Disk, kind: type[ScriptedPass]
) -> None:
    """At the first request that cannot be kept, not at the end of the pass; no engine and no lease are left."""
    measuring = kind(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await in_a_pass(w, measuring)
        disk.full = True
        assert measuring.gate is not None
        measuring.gate.set()
        await w.until(lambda: not w.console.owns_run)
        assert any("the disk is full" in text and ADVICE in text for text in warned(w))
        assert w.console.feed.view.running is None
        assert w.outcomes() == ["interrupted"]
        assert w.script.living == set()
        await assert_nothing_is_held(w)
        disk.full = False


async def test_s_starts_again_when_there_is_room_and_the_attempt_comes_first(world: Opened, disk: Disk) -> None:
    """Refused while the disk is full, with nothing held after it; then interrupted in the store too, and next."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await in_a_pass(w, measuring)
        disk.full = True
        assert measuring.gate is not None
        measuring.gate.set()
        await w.until(lambda: not w.console.owns_run)
        with pytest.raises(StoreError, match="full"):
            await w.console.start()
        assert not w.console.owns_run
        await assert_nothing_is_held(w)
        disk.full = False
        await w.console.start()
        await w.until(lambda: w.outcomes()[-2:] == ["passed", "passed"])
        started = [(event.id, event.attempt) for event in w.seen if isinstance(event.body, events.ExperimentStarted)]
        assert started == [("E1", 1), ("E1", 2), ("E2", 1)]
        store = w.bench.open_store()
        assert [item["outcome"] for item in store.results("scripted")] == ["interrupted", "passed", "passed"]
        assert store.open_attempts("scripted") == []
        store.close()


async def test_a_run_that_cannot_be_begun_holds_nothing(world: Opened, disk: Disk) -> None:
    """Its first record is refused: the lock goes back, and other consoles' runs are shown again."""
    async with world() as w:
        disk.full = True
        with pytest.raises(StoreError):
            await w.console.begin(waits=False, resume=False)
        disk.full = False
        assert not w.bench.lock.held  # type: ignore[attr-defined]
        await w.add(tree(12))
        assert await w.drain() == "drained"


@pytest.mark.parametrize("keep", [False, True])
async def test_quitting_on_a_full_disk_ends_or_leaves_the_engine_as_asked(
    world: Opened, disk: Disk, keep: bool
) -> None:
    """`close` works; the next console finds the attempt interrupted at the front, and the queue paused."""
    measuring, script = ScriptedPass(gate=asyncio.Event()), Script()
    async with world(script, measuring, keep=keep) as w:
        await in_a_pass(w, measuring)
        disk.full = True
    assert w.outcomes() == ["interrupted"]
    assert (len(script.living), len(script.kept)) == ((1, 1) if keep else (0, 0))
    await assert_nothing_is_held(w)
    disk.full, measuring.gate = False, None
    async with world(script, measuring) as after:
        queue = after.console.feed.view.queue
        assert queue["paused"]
        assert [(item["id"], item["state"]) for item in queue["items"]] == [("E1", "queued"), ("E2", "queued")]
        await after.drain(resume=True)
        assert after.outcomes() == ["passed", "passed"]
        assert next(body.kept for body in after.of(events.Ready)) is keep  # type: ignore[attr-defined]
    assert script.living == set()


async def test_a_run_without_a_screen_ends_with_the_stores_error(world: Opened, disk: Disk) -> None:
    """`ddconsole run` exits as the store's error says; closing raises nothing of its own."""
    measuring = ScriptedPass(gate=asyncio.Event())
    async with world(None, measuring) as w:
        await w.add(tree(12))
        run = asyncio.create_task(w.drain())
        await asyncio.wait_for(measuring.entered.wait(), 10)
        disk.full = True
        assert measuring.gate is not None
        measuring.gate.set()
        with pytest.raises(StoreError, match="full"):
            await run
        disk.full = False
    await assert_nothing_is_held(w)
    assert w.script.living == set()


async def test_a_request_that_was_not_kept_makes_no_whole_pass(world: Opened, disk: Disk) -> None:
    """The disk was full for one request only: the pass is not counted with a hole in it."""

    class Holed(ScriptedPass):
        async def run(self, context: PassContext) -> PassResult:
            if disk.refused_request.is_set():
                return await super().run(context)
            disk.full = True
            context.on_request(RECORD, 1, 2)
            await asyncio.to_thread(disk.refused_request.wait, 10)
            disk.full = False
            context.on_request(RECORD, 2, 2)
            return PassResult(self.name, {"requests": 2, "failed": 0, "passed": 2, "total": 2}, (RECORD, RECORD))

    async with world(None, Holed()) as w:
        await w.add(tree(12))
        with pytest.raises(StoreError):
            await w.drain()
        store = w.bench.open_store()
        assert [item["outcome"] for item in store.results("scripted")] == ["interrupted"], "that could be written"
        store.close()


async def test_words_are_shown_though_no_store_takes_them_and_errors_are_bounded(world: Opened, disk: Disk) -> None:
    """Of a thousand failed writes one is remembered, and said once."""
    async with world() as w:
        feed, database = Feed(), Database(w.bench.open_store)
        seen: list[events.Body] = []
        feed.subscribe(lambda event: seen.append(event.body))
        journal = Journal(database, feed, w.bench.clock, "scripted")
        disk.full = True
        await journal.emit(events.Warned("the disk is full"))
        await journal.emit(events.Connection("lost"))
        for _ in range(1000):
            journal.post(events.PhaseChanged("kv", "started"))
        journal.show(events.LogLines(["x"], 1))
        with pytest.raises(StoreError):
            await journal.emit(events.PhaseChanged("kv", "started"))
        with pytest.raises(StoreError):
            await journal.settle()
        await journal.settle()
        disk.full = False
        kinds = [type(body) for body in seen]
        assert kinds == [events.Warned, events.Connection, events.LogLines], "a phase is on disk before it is shown"
        await database.close()


async def test_a_full_disk_does_not_end_the_watch_of_the_cards(world: Opened, disk: Disk) -> None:
    """Connecting is told, not stored; samples go on."""
    async with world() as w:
        second = Console(w.bench, lambda text, queue: pytest.fail(text), patient=False)
        problems: list[events.GpuSampled] = []
        third = asyncio.Event()

        def see(event: events.Event) -> None:
            if isinstance(event.body, events.GpuSampled):
                problems.append(event.body)
                if len(problems) == 3:
                    third.set()

        second.feed.subscribe(see)
        await second.open(telemetry=True)
        disk.full = True
        await asyncio.wait_for(third.wait(), 20)
        assert second.feed.view.connection is not None
        assert second.feed.view.connection.state == "connected"
        disk.full = False
        await second.close(keep_engine=False)
