"""What the real console says of its store on the screen, and that a read-only one refuses every key that changes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from tui.desk import screen_text, until

from ddconsole.adapters import queue_file
from ddconsole.adapters.paths import READ_ONLY_VARIABLE, Paths
from ddconsole.cli.common import load_profile, open_store
from ddconsole.cli.connect import look_at_store, open_and_say
from ddconsole.cli.wiring import make_bench, parse_edit
from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.queue import Add, Draft, Hold, SetPaused, Undo
from ddconsole.runner.console import Console
from ddconsole.tui import keys
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import ProfileFacts
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.widgets.notice_line import NoticeLine
from ddconsole.tui.widgets.tables import QueueTable

NOW = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own: E1 has ended, E2 runs, E3 to E5 wait; a step to undo and one to do again."""
    monkeypatch.setenv("DDCONSOLE_HOME", str(tmp_path))
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    store = open_store()
    store.seed("demo", [])
    configs = (Config(Algorithm.TREE, 8, budget, 6, 2048) for budget in (12, 16, 20, 24, 28))
    store.edit("demo", Add(tuple(map(Draft, configs)), Origin()))
    key = store.begin_attempt("demo", "E1", {}, NOW)
    store.finish_attempt(key, Outcome.FAILED, {"verdict": "failed"}, None, NOW)
    store.begin_attempt("demo", "E2", {}, NOW)
    for body in (events.RunStarted("desk", 4242), events.ExperimentStarted("tree", {}, {}, ["coding"], 540.0)):
        store.append_event("demo", events.Event(0, NOW, body, id="E2", attempt=1))
    store.edit("demo", Hold(("E5",)))
    store.edit("demo", Hold(("E4",)))
    store.edit("demo", Undo())
    store.edit("demo", SetPaused(True))
    store.close()
    return tmp_path


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console as `connect` puts it together, without a host."""
    loaded = load_profile("demo")
    loaded = replace(loaded, profile=loaded.profile.model_copy(update={"autostart": False}))
    notices = look_at_store(loaded)
    behind = Console(make_bench(loaded), parse_edit(loaded), files=queue_file)
    app = ConsoleApp(
        behind,
        ProfileFacts.of(loaded.profile),
        opening=lambda: open_and_say(behind, notices, telemetry=False),
        guarded=False,
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected is not None, "the queue")
        yield app, pilot
        await behind.close(keep_engine=True)


def said(app: ConsoleApp) -> str:
    """Every notice."""
    return "\n".join(app.screen_stack[0].query_one(NoticeLine).said)


CHANGES: dict[str, tuple[str, ...]] = {
    "move_up": ("down", "K"), "move_down": ("J",), "hold": ("space",), "remove": ("x",), "undo": ("u",),
    "redo": ("ctrl+r",), "start": ("s",), "cancel": ("c",), "retry": ("r", "R"),
    "command": ("colon", *"hold", "space", *"E3", "enter"),
}  # fmt: skip
"""Keys that ask for a change, through the dialog that some of them open."""

LEAD_TO_THE_SAME = {
    "add", "edit", "clone", "line", "editor", "extend", "order",  # their dialogs send the edit that `command` sends
    "pause",  # is dim where nobody runs the queue
}  # fmt: skip
LOOKS = {"mark", "details", "find", "queue", "results", "log", "gpus", "next_panel", "previous_panel", "back", "help",
         "quit"}  # fmt: skip


def test_no_key_is_left_out() -> None:
    """A new action changes something, or it does not."""
    assert set(CHANGES) | LEAD_TO_THE_SAME | LOOKS == set(keys.BY_ID)


@pytest.mark.parametrize("action", CHANGES)
async def test_a_read_only_screen_refuses_every_key_that_changes(
    home: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """With the reason; the queue stays as it was."""
    store = open_store()
    before = store.queue("demo")
    store.close()
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    async with opened() as (app, pilot):
        *way, last = CHANGES[action]
        await pilot.press(*way)
        board = app.screen_stack[0]
        assert isinstance(board, Dashboard)
        await until(pilot, lambda: keys.BY_ID[action].why_not(board.moment) is None, "that it can act")
        await pilot.press(last)
        if action == "cancel":
            await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
            await pilot.press("y")
        await until(pilot, lambda: "read-only" in shown(app), "the reason")
    store = open_store()
    assert store.queue("demo") == before
    store.close()


def shown(app: ConsoleApp) -> str:
    """The notices, and what an open dialog says."""
    return said(app) + screen_text(app)


async def test_a_rescue_is_said_on_the_screen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was kept aside and what was saved: on stderr before the screen is drawn, and on the screen."""
    path = Paths.from_environment().database
    with contextlib.closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'requests_by_attempt'").fetchone()
    data = bytearray(path.read_bytes())
    data[4096 * (page - 1) : 4096 * page] = b"\xa5" * 4096
    path.write_bytes(data)
    async with opened() as (app, pilot):
        await until(pilot, lambda: "the store was damaged" in screen_text(app), "the warning")
        assert "the damaged files are kept in" in screen_text(app)
        assert "saved: 1 queues" in screen_text(app)
    err = capsys.readouterr().err
    assert "the store was damaged; a new one was built from what could be read of it" in err
    assert "the damaged files are kept in" in err
