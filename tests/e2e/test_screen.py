"""The screen over the real runner: keys pressed while an experiment runs on the demo host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from fakes.command import Cli
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from ddconsole.cli.common import load_profile, open_and_seed
from ddconsole.cli.wiring import make_bench, parse_edit
from ddconsole.core.queue import by_id
from ddconsole.runner.console import Console
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import ProfileFacts
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.tables import QueueTable

pytestmark = pytest.mark.xdist_group("e2e")

LONG = "add b=8 B=12 passes=throughput repeats=90"
"""Runs until it is cancelled."""

LOOK_S = 0.05


@dataclass
class Desk:
    """A console at work, and the keys that drive it."""

    app: ConsoleApp
    console: Console
    pilot: Pilot[Any]

    async def press(self, *keys: str) -> None:
        """Press keys as fast as fingers do. Pilot's own way waits until this process is idle, which it never is."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(Key(name, key if len(key) == 1 else None))
            await self.pilot.pause(LOOK_S)

    async def fill(self, field: str, value: str) -> None:
        """Go to a field of the form, and type over what is in it."""
        entry = self.app.screen.query_one(f"#{field}", Input)
        while self.app.screen.focused is not entry:  # `has_focus` follows a moment later
            before = self.app.screen.focused
            await self.press("tab")
            await self.until(lambda: self.app.screen.focused is not before, "the next field")  # noqa: B023
        await self.press("end", *["backspace"] * len(entry.value), *value)
        await self.until(lambda: entry.value == value, f"{value} in {field}")

    async def until(self, reached: Callable[[], Any], what: str, seconds: float = 30.0) -> None:
        """Wait for a condition, with a deadline."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not reached():
            assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} s: {what}\n{self.text()}"
            await self.pilot.pause(LOOK_S)

    def states(self) -> dict[str, str]:
        """State by id, as the feed has them."""
        return {item["id"]: item["state"] for item in self.console.feed.view.queue.get("items") or []}

    def waiting(self) -> list[str]:
        """Ids that wait, in their order."""
        return [id_ for id_, state in self.states().items() if state in ("queued", "held")]

    async def form(self, key: str) -> None:
        """Open the form with a key, and wait until it takes others."""
        await self.press(key)
        await self.until(lambda: isinstance(self.app.screen, QueueForm) and self.app.screen.focused, "the form")

    async def answer(self, question: str, key: str) -> None:
        """Press the key of a question, wait for the question, and answer it."""
        await self.press(question)
        await self.until(lambda: isinstance(self.app.screen, Confirm) and self.app.screen.focused, "the question")
        await self.press(key)

    async def select(self, id_: str) -> None:
        """Put the cursor on an experiment."""
        table = self.app.screen.query_one(QueueTable)
        await self.until(lambda: id_ in self.states(), f"{id_} in the queue")
        await self.press("home")
        await self.until(lambda: table.selected == next(iter(self.shown())), "the cursor at the top")
        for below in self.shown()[1 : self.shown().index(id_) + 1]:
            await self.press("down")
            await self.until(lambda: table.selected == below, f"the cursor on {below}")  # noqa: B023
        assert table.selected == id_

    def shown(self) -> list[str]:
        """Ids of the queue's rows."""
        return [id_ for id_, state in self.states().items() if state in ("running", "queued", "held")]

    def text(self) -> str:
        """What is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@asynccontextmanager
async def opened(cli: Cli, monkeypatch: pytest.MonkeyPatch, *, telemetry: bool = True) -> AsyncIterator[Desk]:
    """The console as `connect` builds it, in this process, on the home of `cli`."""
    for name, value in cli.env.items():
        monkeypatch.setenv(name, value)
    loaded = load_profile("e2e")
    open_and_seed(loaded).close()
    console = Console(make_bench(loaded), parse_edit(loaded))
    facts = ProfileFacts.of(loaded.profile)
    app = ConsoleApp(console, facts, opening=lambda: console.open(telemetry=telemetry), guarded=False)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        desk = Desk(app, console, pilot)
        await desk.until(lambda: bool(console.feed.view.queue), "the queue on the screen")
        yield desk


def by_hand(cli: Cli) -> None:
    """The profile starts nothing by itself."""
    path = cli.home / "dd" / "config" / "profiles" / "e2e.yaml"
    path.write_text(path.read_text().replace("autostart: true", "autostart: false"))


async def test_every_key_works_while_an_experiment_runs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start, add, edit, move, hold, remove, undo, pause, cancel, go on, and quit with the engine stopped."""
    cli.profile(LONG, "add b=8 B=16 passes=throughput", "add algorithm=chain passes=throughput", scale=1.0)
    by_hand(cli)
    async with opened(cli, monkeypatch) as desk:
        view = desk.console.feed.view
        await desk.until(lambda: "press s to start the queue" in desk.text(), "nothing is started by itself")
        await desk.press("s")
        await desk.until(lambda: view.experiment is not None and view.id == "E1", "E1 started")

        await desk.form("a")
        await desk.fill("budget", "24")
        await desk.press("enter")
        await desk.until(lambda: desk.states().get("E4") == "queued", "E4 added")
        await desk.until(lambda: isinstance(desk.app.screen, Dashboard), "the form is gone")

        await desk.select("E2")
        await desk.form("e")
        await desk.fill("budget", "20")
        await desk.press("enter")
        await desk.until(lambda: budget(desk, "E2") == 20, "E2 edited")
        await desk.until(lambda: isinstance(desk.app.screen, Dashboard), "the form is gone again")

        await desk.select("E2")
        await desk.press("J")
        await desk.until(lambda: desk.waiting() == ["E3", "E2", "E4"], "E2 moved down")
        await desk.press("space")
        await desk.until(lambda: desk.states()["E2"] == "held", "E2 held")
        await desk.select("E4")
        await desk.press("x")
        await desk.until(lambda: "E4" not in desk.waiting(), "E4 removed")
        await desk.press("u")
        await desk.until(lambda: desk.waiting() == ["E3", "E2", "E4"], "E4 is back")
        assert view.id == "E1", "all of this while E1 runs"

        await desk.until(lambda: view.current_pass is not None and view.current_pass.done > 0, "E1 is measured")
        await desk.until(
            lambda: len(view.gpus) == 8 and max(card["utilization_pct"] for card in view.gpus) > 0, "cards"
        )
        assert "E1 measuring" in desk.text()
        await desk.press("p")
        await desk.until(lambda: view.queue["paused"], "paused")
        await desk.answer("c", "y")
        await desk.until(lambda: desk.states()["E1"] == "cancelled", "E1 cancelled")
        assert desk.states()["E3"] == "queued", "nothing new is started while paused"

        await desk.press("s")
        await desk.until(lambda: desk.states()["E3"] == "running", "E3 started")
        await desk.answer("q", "s")
        await desk.until(lambda: desk.app._exit, "the end")
    assert desk.app.return_value == 0
    assert cli.engine_pids() == [], "the engine was stopped, with all its processes"
    assert cli.states() == {"E1": "cancelled", "E3": "queued", "E2": "held", "E4": "queued"}


def budget(desk: Desk, id_: str) -> int | None:
    """The budget of an experiment in the queue."""
    items = desk.console.feed.view.queue["items"]
    found: int | None = next(item["config"]["budget"] for item in items if item["id"] == id_)
    return found


async def test_an_engine_that_was_kept_is_used_and_said_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave and keep; the next console goes on with the same engine, without a boot."""
    cli.profile(LONG, scale=0.3)
    async with opened(cli, monkeypatch, telemetry=False) as desk:
        view = desk.console.feed.view
        await desk.until(lambda: view.ready is not None, "autostart brought E1 to be ready")
        await desk.answer("q", "k")
        await desk.until(lambda: desk.app._exit, "the end")
    kept = cli.engine_pids()
    assert kept

    async with opened(cli, monkeypatch, telemetry=False) as desk:
        view = desk.console.feed.view
        if not desk.console.owns_run:
            await desk.press("s")
        await desk.until(lambda: view.ready is not None and view.ready.kept and view.passes, "E1 goes on")
        await desk.until(lambda: "kept from before" in desk.text(), "the phase line")
        assert set(cli.engine_pids()) == set(kept)
        await desk.answer("q", "s")
        await desk.until(lambda: desk.app._exit, "the end")
    assert cli.engine_pids() == []


async def test_a_watching_screen_shows_another_process_and_edits(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ddconsole run` works on the queue; the screen shows its run, says whose it is, and its edits count."""
    cli.profile(LONG, "add b=8 B=16 passes=throughput", scale=0.3)
    by_hand(cli)
    with cli.start("run", "e2e") as run:
        async with opened(cli, monkeypatch) as desk:
            view = desk.console.feed.view
            await desk.until(lambda: view.current_pass is not None and view.current_pass.done > 0, "its measuring")
            await desk.until(lambda: f"watching: run by pid {run.pid}" in desk.text(), "the badge")
            await desk.select("E2")
            await desk.press("space")
            await desk.until(lambda: desk.states()["E2"] == "held", "the edit")
            await desk.press("q")
            await desk.until(lambda: desk.app._exit, "it leaves without a question")
        assert run.poll() is None, "whoever only watched ends nothing"
        item = by_id(open_store_queue(), "E2")
        assert item is not None
        assert item.state.name == "held"
        run.terminate()
        run.communicate(timeout=30)


def open_store_queue() -> Any:
    """The queue as it is on disk."""
    store = open_and_seed(load_profile("e2e"))
    try:
        return store.queue("e2e")
    finally:
        store.close()
