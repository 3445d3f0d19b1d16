"""Edits of other processes come to the screen of the real console over the real store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input
from tui.desk import until

from ddconsole.adapters import queue_file
from ddconsole.cli.common import load_profile, open_store
from ddconsole.cli.wiring import make_bench, parse_edit
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft
from ddconsole.runner.console import Console
from ddconsole.runner.watch import LOOK_EVERY_S
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.bridge import TICKS_PER_S
from ddconsole.tui.facts import ProfileFacts
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.widgets.tables import QueueTable

WITHIN_S = 0.5
"""What is promised: from the other process's commit to the screen."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, with one experiment."""
    monkeypatch.setenv("DDCONSOLE_HOME", str(tmp_path))
    loaded = load_profile("demo")
    store = open_store()
    store.seed(loaded.name, [])
    store.edit(loaded.name, Add((Draft(None, note="an idea"),), Origin()))
    store.close()
    return tmp_path


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console, without a host, for none is needed to edit a queue."""
    loaded = load_profile("demo")
    loaded = replace(loaded, profile=loaded.profile.model_copy(update={"autostart": False}))
    behind = Console(make_bench(loaded), parse_edit(loaded), files=queue_file)
    app = ConsoleApp(
        behind, ProfileFacts.of(loaded.profile), opening=lambda: behind.open(telemetry=False), guarded=False
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).has("E1"), "the queue")
        yield app, pilot
        await behind.close(keep_engine=True)


async def queue(*words: str) -> int:
    """`ddconsole queue demo …` in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ddconsole", "queue", "demo", *words,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return await process.wait()


def test_looks_at_the_store_and_frames_together_are_within_the_promise() -> None:
    """One look of the watch, one tick of the bridge, and room for the frame."""
    assert LOOK_EVERY_S + 1 / TICKS_PER_S <= 0.8 * WITHIN_S


@pytest.mark.usefixtures("home")
async def test_what_a_second_process_adds_and_edits_comes_to_the_screen() -> None:
    """New rows, and other states of rows that are there, without a key."""
    async with opened() as (app, pilot):
        table = app.screen.query_one(QueueTable)
        assert await queue("add", "b=8", "B=20") == 0
        await until(pilot, lambda: table.has("E2"), "the new row")
        assert await queue("hold", "E2") == 0
        await until(pilot, lambda: table.item("E2").get("state") == "held", "the other state")


@pytest.mark.usefixtures("home")
async def test_the_screen_and_other_processes_lose_nothing_of_each_other() -> None:
    """Three lines here, three commands there, at the same time: six experiments, each once."""
    async with opened() as (app, pilot):
        table = app.screen.query_one(QueueTable)
        others = asyncio.gather(*(queue("add", "b=8", f"B={budget}") for budget in (30, 31, 32)))
        for budget in (40, 41, 42):
            await pilot.press("colon")
            await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
            app.screen.query_one("#line", Input).value = f"add b=8 B={budget}"
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        assert await others == [0, 0, 0]
        await until(pilot, lambda: table.has("E7"), "all of them")
        budgets = [(table.item(f"E{number}").get("config") or {}).get("budget") for number in range(2, 8)]
        assert sorted(budgets) == [30, 31, 32, 40, 41, 42]
