"""The watch of the store outlives the store's troubles, and a part of a console that dies is missed at once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from runner.test_full_store import assert_nothing_is_held, warned
from runner.world import Opened, World, tree

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.errors import StoreError
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Place
from ddconsole.runner.watch import LOOK_AGAIN_S, LOOK_EVERY_S


class Trouble:
    """What a look at the store comes to."""

    def __init__(self) -> None:
        self.on = False
        self.looks = 0
        self.enough = threading.Event()


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Trouble:
    """While it is on, the store cannot be read."""
    trouble, real = Trouble(), SqliteStore.data_version

    def data_version(store: SqliteStore) -> int:
        if trouble.on:
            trouble.looks += 1
            if trouble.looks == 12:
                trouble.enough.set()
            raise StoreError("the store cannot be read or written: the disk answers with an error", advice="look at it")
        return real(store)

    monkeypatch.setattr(SqliteStore, "data_version", data_version)
    return trouble


async def test_a_store_that_cannot_be_read_is_said_once_tried_again_and_taken_back(
    world: Opened, trouble: Trouble
) -> None:
    """Pauses grow to a bound; then edits of others are seen as before."""
    async with world() as w:
        trouble.on = True
        assert await asyncio.to_thread(trouble.enough.wait, 20)
        said = [text for text in warned(w) if "not seen" in text]
        assert len(said) == 1
        assert "the disk answers with an error" in said[0]
        assert "look at it" in said[0]
        slept = [each for each in w.bench.clock.slept if each >= LOOK_EVERY_S]  # type: ignore[attr-defined]
        assert max(slept) == LOOK_AGAIN_S == 10.0
        trouble.on = False
        await w.until(lambda: "the store can be read again" in warned(w))
        assert said[0] not in [getattr(body, "text", "") for _, body in w.console.feed.view.notices]
        other = w.bench.open_store()
        other.edit("scripted", Add((Draft(tree(20)),), Origin(), Place()))
        other.close()
        await w.until(lambda: len(w.console.feed.view.queue["items"]) == 1)


async def test_a_change_that_could_not_be_read_is_looked_at_again(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version was read and the queue was not: the next look does not take it for seen."""
    real, failed = SqliteStore.queue, asyncio.Event()

    async with world() as w:
        loop = asyncio.get_running_loop()

        def queue(store: SqliteStore, profile: str) -> object:
            if not failed.is_set():
                loop.call_soon_threadsafe(failed.set)
                raise StoreError("the store is held by another process")
            return real(store, profile)

        other = w.bench.open_store()
        monkeypatch.setattr(SqliteStore, "queue", queue)
        other.edit("scripted", Add((Draft(tree(20)),), Origin(), Place()))
        other.close()
        await asyncio.wait_for(failed.wait(), 10)
        await w.until(lambda: len(w.console.feed.view.queue["items"]) == 1)


async def test_a_part_that_dies_of_a_bug_is_said(world: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, at once, on the screen."""

    async def broken(*_: object) -> None:
        raise ValueError("a bug of ours")

    monkeypatch.setattr("ddconsole.runner.console.watch_gpus", broken)
    async with world() as w:
        await w.console.open(telemetry=True)
        await w.until(lambda: any("watch-gpus ended" in text and "a bug of ours" in text for text in warned(w)))


async def test_a_run_that_dies_of_a_bug_is_said_and_closing_leaves_nothing(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug is raised when everything is closed, so that it is reported."""

    async def broken(*_: object) -> None:
        raise ValueError("a bug of ours")

    monkeypatch.setattr("ddconsole.runner.drain.find_engines", broken)
    worlds: list[World] = []

    async def session() -> None:
        async with world() as w:
            worlds.append(w)
            await w.console.start()
            await w.until(lambda: any("drain ended" in text and "a bug of ours" in text for text in warned(w)))

    with pytest.raises(ValueError, match="bug"):
        await session()
    await assert_nothing_is_held(worlds[0])
