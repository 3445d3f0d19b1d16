"""Every key of the table, once where it can act and once where it cannot: nothing is a dead key, nothing is silent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from tui.desk import Desk, console, screen_text, until
from tui.story import chain, result, tree

from ddconsole.core import events
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import End, Extend, Hold, Retry, by_id
from ddconsole.tui import keys
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import Moment
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.details import Details
from ddconsole.tui.screens.find import Find
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.order import OrderScreen
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.notice_line import NoticeLine
from ddconsole.tui.widgets.tables import QueueTable


def busy_desk() -> Desk:
    """E1 has ended, E2 runs, E3 to E5 wait; one step can be undone and one done again."""
    desk = Desk()
    desk.add(tree(8, 12), tree(8, 12, window=1024), chain(8), tree(16, 26), tree(8, 12, window=1024))
    desk.begin("E1")
    desk.edit_now(End("E1", 1, Outcome.FAILED))
    item = result("E1", tree(8, 12), 131.2, 4.6)
    desk.tell(events.ExperimentFinished("failed", "failed", None, item), "E1")
    desk.begin("E2")
    desk.edit_now(Hold(("E5",)))
    desk.run_line("hold E4")
    desk.run_line("undo")
    return desk


@asynccontextmanager
async def opened(desk: Desk, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console on a desk, its first picture drawn."""
    app = console(desk)
    async with app.run_test(size=size) as pilot:
        table = app.screen.query_one(QueueTable)
        await until(pilot, lambda: not desk.queue.items or table.selected is not None, "the first picture")
        yield app, pilot


def said(app: ConsoleApp) -> str:
    """Every notice."""
    return "\n".join(app.screen_stack[0].query_one(NoticeLine).said)


def board(app: ConsoleApp) -> Dashboard:
    """The dashboard."""
    screen = app.screen_stack[0]
    assert isinstance(screen, Dashboard)
    return screen


def opens(kind: type) -> Callable[[ConsoleApp, Desk], bool]:
    """A dialog comes up."""
    return lambda app, _: isinstance(app.screen, kind)


def first_waiting(*ids: str) -> Callable[[ConsoleApp, Desk], bool]:
    """The waiting ones stand in this order at first."""
    return lambda _, desk: [id_ for id_ in desk.states() if id_ in ("E3", "E4", "E5")][: len(ids)] == list(ids)


def state(id_: str, name: str) -> Callable[[ConsoleApp, Desk], bool]:
    """It comes to be in this state."""
    return lambda _, desk: desk.states().get(id_) == name


def panel(name: str) -> Callable[[ConsoleApp, Desk], bool]:
    """That panel has the keys."""
    return lambda app, _: board(app).panel == name


EFFECTS: dict[str, tuple[tuple[str, ...], Callable[[ConsoleApp, Desk], bool]]] = {
    "add": ((), opens(QueueForm)),
    "edit": ((), opens(QueueForm)),
    "line": ((), opens(CommandLine)),
    "editor": ((), lambda app, _: "no-editor-here cannot be run" in said(app)),
    "move_up": (("down",), first_waiting("E4", "E3")),
    "move_down": ((), first_waiting("E4", "E3")),
    "hold": ((), state("E3", "held")),
    "clone": ((), opens(QueueForm)),
    "remove": ((), state("E3", "removed")),
    "mark": ((), lambda app, _: board(app)._table.marked == ("E3",)),
    "undo": ((), state("E5", "queued")),
    "redo": ((), state("E4", "held")),
    "order": ((), opens(OrderScreen)),
    "command": ((), opens(CommandLine)),
    "start": (("p",), lambda _, desk: "start" in desk.calls),
    "pause": ((), lambda _, desk: "pause" in desk.calls),
    "extend": ((), opens(CommandLine)),
    "cancel": ((), opens(Confirm)),
    "retry": (("r",), state("E1", "queued")),
    "details": ((), opens(Details)),
    "find": ((), opens(Find)),
    "queue": (("r",), panel("queue")),
    "results": ((), panel("results")),
    "log": ((), panel("log")),
    "gpus": ((), panel("gpus")),
    "next_panel": ((), panel("results")),
    "previous_panel": ((), panel("log")),
    "back": (("m",), lambda app, _: board(app)._table.marked == ()),
    "help": ((), opens(Help)),
    "quit": ((), opens(Confirm)),
}
"""What each action does here, and the keys that come before it."""


def presses() -> list[tuple[str, str]]:
    """Every key of every action."""
    return [(action.id, key) for action in keys.ACTIONS for key in action.keys.split(",")]


def test_no_action_is_left_out() -> None:
    """A new action needs its line here."""
    assert set(EFFECTS) == set(keys.BY_ID)


@pytest.mark.parametrize(("action_id", "key"), presses())
async def test_a_key_that_can_act_acts(action_id: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its keys, while one runs."""
    monkeypatch.setenv("VISUAL", "no-editor-here")
    desk, (before, reached) = busy_desk(), EFFECTS[action_id]
    async with opened(desk) as (app, pilot):
        assert app.screen.query_one(QueueTable).selected == "E3"
        await pilot.press(*before)
        await until(pilot, lambda: keys.BY_ID[action_id].why_not(board(app).moment) is None, "that it can act")
        await pilot.press(key)
        await until(pilot, lambda: reached(app, desk), f"what {key} does")


DIM = [action.id for action in keys.ACTIONS if action.why_not(Moment()) is not None]


@pytest.mark.parametrize("action_id", DIM)
async def test_a_key_that_cannot_act_is_dim_and_says_why(action_id: str) -> None:
    """On an empty queue: the reason comes up, the key is behind those that can be used, nothing is asked."""
    desk = Desk()
    async with opened(desk) as (app, pilot):
        reason = keys.BY_ID[action_id].why_not(board(app).moment)
        assert reason is not None
        await pilot.press(keys.BY_ID[action_id].keys.split(",")[0])
        await until(pilot, lambda: str(reason) in said(app), "the reason")
        assert desk.calls == []


async def test_an_order_is_taken_only_by_enter() -> None:
    """Both proposals with what they save; escape changes nothing; enter applies the one that is shown."""
    desk = busy_desk()
    desk.run_line("release E5")
    async with opened(desk) as (app, pilot):
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, OrderScreen), "the proposal")
        await until(pilot, lambda: "engine starts become" in screen_text(app), "what it saves")
        assert "saves 7 min" in screen_text(app)
        await pilot.press("right")
        await until(pilot, lambda: "● most telling first" in screen_text(app), "the other one")
        await pilot.press("right")
        await until(pilot, lambda: "● an anchor between" in screen_text(app), "the third one")
        await until(pilot, lambda: "of the anchor" in screen_text(app), "what it adds")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "back")
        assert desk.edits() == []
        await pilot.press("o")
        await until(pilot, lambda: "saves 7 min" in screen_text(app), "the first one again")
        await pilot.press("enter")
        await until(pilot, lambda: bool(desk.edits()), "taken")
        await until(pilot, lambda: next(i for i in desk.states() if i not in ("E1", "E2")) == "E5", "beside its like")
        await pilot.press("u")
        await until(pilot, lambda: first_waiting("E3", "E4", "E5")(app, desk), "and back")


async def test_colon_order_shows_the_way_that_is_asked_for() -> None:
    """As on the command line, but nothing is taken yet."""
    desk = busy_desk()
    desk.run_line("release E5")
    async with opened(desk) as (app, pilot):
        await pilot.press("colon", *"order information", "enter")
        await until(pilot, lambda: "● most telling first" in screen_text(app), "the proposal")
        assert desk.edits() == []


async def test_the_running_one_gets_further_passes() -> None:
    """f offers what it lacks; enter gives it."""
    desk = busy_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: "edit E2 passes=quality" in screen_text(app), "the line")
        await pilot.press("enter")
        await until(pilot, lambda: bool(desk.edits()), "given")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done")
        await until(pilot, lambda: keys.BY_ID["extend"].why_not(board(app).moment) is not None, "it has all of them")
    item = by_id(desk.queue, "E2")
    assert item is not None
    assert item.passes == ("coding", "throughput", "quality")
    assert desk.edits() == [Extend("E2", ("quality",))]


async def test_undo_says_what_it_took_back_and_selects_it() -> None:
    """x, then u: the row is there again, under the cursor, and the notice names it."""
    desk = busy_desk()
    async with opened(desk) as (app, pilot):
        table = app.screen.query_one(QueueTable)
        await pilot.press("down", "x")
        await until(pilot, lambda: desk.states()["E4"] == "removed" and table.selected == "E5", "removed")
        await pilot.press("up", "u")
        await until(pilot, lambda: "undone: remove E4" in said(app), "the notice")
        await until(pilot, lambda: table.selected == "E4", "the cursor on it")
        assert "undone: remove E4" in screen_text(app).splitlines()[-1]
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "done again: remove E4" in said(app), "and again")


async def test_results_have_keys_of_their_own() -> None:
    """Retry and copy mean the result under the cursor there, and nothing of the queue is touched by mistake."""
    desk = busy_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("r", "x")
        await until(pilot, lambda: "E1 has ended: d queues a copy, R runs it again" in said(app), "why not")
        await pilot.press("d")
        await until(pilot, lambda: "ADD A COPY OF E1" in screen_text(app), "a copy of the result")
        await pilot.press("escape", "R")
        await until(pilot, lambda: desk.edits() == [Retry("E1")], "again")
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E1", "the cursor on it")


async def test_the_cursor_goes_along_with_what_can_be_edited_until_somebody_moves_it() -> None:
    """When the first one starts, keys are for the next; after a key they are for what was chosen."""
    desk = Desk()
    desk.add(tree(8, 12), tree(8, 16), tree(8, 24))
    async with opened(desk) as (app, pilot):
        table = app.screen.query_one(QueueTable)
        assert table.selected == "E1"
        desk.begin("E1")
        await until(pilot, lambda: table.selected == "E2", "the first that waits")
        await pilot.press("down", "up")
        desk.edit_now(End("E1", 1, Outcome.PASSED))
        desk.begin("E2")
        await until(pilot, lambda: table.item("E2").get("state") == "running", "E2 runs")
        assert table.selected == "E2"


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (45, 30), (40, 20)])
async def test_the_bar_shows_what_can_be_done_here(size: tuple[int, int]) -> None:
    """The useful keys of the panel with the focus first, and the help always."""
    desk = busy_desk()
    async with opened(desk, size) as (app, pilot):
        app.bridge.tick()
        await pilot.pause()
        bar = "\n".join(screen_text(app).splitlines()[-2:])
        assert [word in bar for word in ("a add", "e edit", ": c", "space hold", "? help")] == [True] * 5
        await pilot.press("r")
        await pilot.pause()
        bar = "\n".join(screen_text(app).splitlines()[-2:])
        assert [word in bar for word in ("R retry", "i details", "w queue", "? help")] == [True] * 4
        assert "a add" not in bar


async def test_a_notice_hides_no_panel() -> None:
    """It stands in place of the keys, with a hanging indent, and the panels keep their rows."""
    desk = busy_desk()
    async with opened(desk, (80, 24)) as (app, pilot):
        before = screen_text(app).splitlines()[:-2]
        app.notify("word " * 30, severity="error")
        await until(pilot, lambda: "✘ word" in screen_text(app), "the notice")
        lines = screen_text(app).splitlines()
        assert lines[-1].startswith("   word")
        assert [line for line in before if "E3" in line] == [line for line in lines if "E3" in line]
        app.notify("short")
        await until(pilot, lambda: "✔ short" in screen_text(app).splitlines()[-1], "the newer one in its place")
