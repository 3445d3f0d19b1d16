"""Every key of the dashboard while an experiment runs, against the real rules of the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input
from tui.desk import NOW, Desk, console, full_desk, screen_text, until
from tui.scenes import app_at
from tui.story import chain, tree

from ddconsole.core import events
from ddconsole.core.errors import StoreError
from ddconsole.core.queue import Begin, Hold, Move, Redo, Release, Remove, SetPaused, Undo, by_id
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import DEMO_REMARK, DEMO_REMARK_SHORT
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.help import Help
from ddconsole.tui.widgets.log_pane import LogPane
from ddconsole.tui.widgets.notice_line import NoticeLine
from ddconsole.tui.widgets.tables import QueueTable, ResultTable

SIZE = (120, 40)


@asynccontextmanager
async def opened(desk: Desk, size: tuple[int, int] = SIZE) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console on a desk, its first picture drawn."""
    app = console(desk)
    async with app.run_test(size=size, notifications=True) as pilot:
        table = app.screen.query_one(QueueTable)
        await until(pilot, lambda: not desk.queue.items or table.selected is not None, "the first picture")
        yield app, pilot


def said(app: ConsoleApp) -> str:
    """Every message that was shown."""
    return "\n".join(app.screen_stack[0].query_one(NoticeLine).said)


async def test_the_cursor_begins_at_what_can_be_edited() -> None:
    """The running one is above, but keys are for the waiting ones."""
    async with opened(full_desk()) as (app, _):
        assert app.screen.query_one(QueueTable).selected == "E2"


async def test_j_and_k_move_by_id_and_the_cursor_stays_with_it() -> None:
    """J and K move the selected one; pressed fast, none of them is stale."""
    desk = full_desk()
    desk.add(tree(8, 24))
    async with opened(desk) as (app, pilot):
        await pilot.press("J", "J", "K")
        await until(pilot, lambda: len(desk.edits()) == 3, "three moves")
        assert desk.edits() == [Move(("E2",), "down"), Move(("E2",), "down"), Move(("E2",), "up")]
        await until(pilot, lambda: list(desk.states()) == ["E1", "E3", "E2", "E4"], "the new order")
        assert app.screen.query_one(QueueTable).selected == "E2"
        assert said(app) == ""


async def test_space_holds_and_releases() -> None:
    """One key for both; the word in the bar follows."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("space")
        await until(pilot, lambda: desk.states()["E2"] == "held", "held")
        await until(pilot, lambda: "space release" in screen_text(app), "the word for the way back")
        await pilot.press("space")
        await until(pilot, lambda: desk.states()["E2"] == "queued", "released")
        assert desk.edits() == [Hold(("E2",)), Release(("E2",))]


async def test_a_queue_of_which_all_is_held_is_not_called_empty() -> None:
    """The header counts what is held, and the panel names the key that releases it."""
    desk = Desk()
    desk.add(tree(8, 12), chain(8))
    async with opened(desk) as (app, pilot):
        assert "queue 2" in screen_text(app)
        await pilot.press("space", "down", "space")
        await until(pilot, lambda: "queue: all 2 held" in screen_text(app), "the header")
        assert "space releases it" in screen_text(app)
        assert "queue empty" not in screen_text(app)


async def test_x_removes_u_brings_back_and_ctrl_r_removes_again() -> None:
    """Removing asks nothing, for it can be undone."""
    desk = full_desk()
    async with opened(desk) as (_, pilot):
        await pilot.press("x")
        await until(pilot, lambda: desk.states()["E2"] == "removed", "removed")
        await pilot.press("u")
        await until(pilot, lambda: desk.states()["E2"] == "queued", "back")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: desk.states()["E2"] == "removed", "removed again")
        assert desk.edits() == [Remove(("E2",)), Undo(), Redo()]


@pytest.mark.parametrize("key", ["e", "J", "K", "space", "x"])
async def test_the_running_one_is_never_edited(key: str) -> None:
    """A key that cannot act says why, and nothing is asked of the controller."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("home", key)
        await until(pilot, lambda: "E1 is running" in said(app), "the reason")
        assert desk.edits() == []


async def test_start_and_pause() -> None:
    """s takes the queue, p stops starting, s goes on; each is dim when it cannot act."""
    desk = Desk()
    desk.add(tree(8, 12))
    async with opened(desk) as (app, pilot):
        assert "nothing runs: press s to start the queue" in screen_text(app)
        await pilot.press("p")
        await until(pilot, lambda: "nothing runs the queue" in said(app), "why not")
        await pilot.press("s")
        await until(pilot, lambda: desk.owns_run, "started")
        await pilot.press("p")
        await until(pilot, lambda: desk.queue.paused, "paused")
        await until(pilot, lambda: "paused: s goes on" in screen_text(app), "the word")
        await pilot.press("s")
        await until(pilot, lambda: not desk.queue.paused, "going on")
        assert [call for call in desk.calls if isinstance(call, str)] == ["start", "pause", "start"]


@pytest.mark.parametrize(("key", "cancelled"), [("y", True), ("b", False), ("escape", False), ("enter", False)])
async def test_cancel_asks_first(key: str, cancelled: bool) -> None:
    """Only the answer's own key cancels; enter, the stray one, goes back."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "the answer")
        await until(pilot, lambda: ("cancel" in desk.calls) is cancelled, "what follows")


@pytest.mark.parametrize(("key", "keep"), [("k", True), ("s", False)])
async def test_quit_asks_whether_the_engine_stays(key: str, keep: bool) -> None:
    """Keep or stop; the controller is closed either way before the app ends."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press(key)
        await until(pilot, lambda: ("close", keep) in desk.calls, "closed")
    assert app.return_value == 0


async def test_quit_can_go_back() -> None:
    """Escape leaves everything as it was."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "back")
        assert desk.calls == []


async def test_quit_of_a_watching_console_asks_nothing() -> None:
    """Who does not run the queue just leaves."""
    desk = Desk()
    desk.add(tree(8, 12))
    async with opened(desk) as (_, pilot):
        await pilot.press("q")
        await until(pilot, lambda: ("close", True) in desk.calls, "closed")


async def test_autostart_starts_behind_the_first_frame() -> None:
    """A profile that says so starts by itself."""
    desk = Desk(autostart=True)
    async with opened(desk) as (_, pilot):
        await until(pilot, lambda: desk.owns_run, "started")


async def test_another_process_runs_the_queue() -> None:
    """The badge says who; edits still go through."""
    desk = Desk()
    desk.add(tree(8, 12), tree(8, 16))
    desk.tell(events.RunStarted("desk", 777))
    async with opened(desk) as (app, pilot):
        await until(pilot, lambda: "watching: run by pid 777" in screen_text(app), "the badge")
        await pilot.press("s")
        await until(pilot, lambda: "process 777 runs the queue already" in said(app), "why not")
        await pilot.press("J")
        await until(pilot, lambda: list(desk.states()) == ["E2", "E1"], "the move")


async def test_a_refusal_is_shown_and_said_once() -> None:
    """The reason comes up, and a key held down does not flood the screen."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        desk.failing = StoreError("the disk is full", advice="Make room and press again.")
        await pilot.press("J", "J", "J", "J")
        await until(pilot, lambda: len(desk.edits()) == 4, "all tried")
        await until(pilot, lambda: "the disk is full" in said(app), "the reason")
        assert said(app).count("the disk is full") == 1
        desk.failing = None
        await pilot.press("J")
        await until(pilot, lambda: list(desk.states())[1:] == ["E3", "E2"], "it works again")


async def test_a_bug_in_a_worker_is_shown_and_ends_nothing() -> None:
    """Any other exception is a message, and the next key works."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        desk.failing = RuntimeError("[/] boom")
        await pilot.press("J")
        await until(pilot, lambda: "RuntimeError: [/] boom" in said(app), "the message")
        desk.failing = None
        await pilot.press("J")
        await until(pilot, lambda: list(desk.states())[1:] == ["E3", "E2"], "the next key")


async def test_no_key_waits_for_the_controller() -> None:
    """While an edit hangs, every other key still answers."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        desk.gate.clear()
        await pilot.press("J")
        await until(pilot, lambda: len(desk.edits()) == 1, "an edit that hangs")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Help), "the help")
        await pilot.press("escape")
        desk.gate.set()
        await until(pilot, lambda: list(desk.states())[1:] == ["E3", "E2"], "and then it is done")


async def test_edits_of_another_console_appear_and_a_stale_one_is_refused() -> None:
    """The cursor stays with its id; what the other one changed is not overwritten."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        table = app.screen.query_one(QueueTable)
        await pilot.press("end")
        assert table.selected == "E3"
        desk.edit_now(Move(("E3",), "up"), unseen=True)
        await pilot.press("x")
        await until(pilot, lambda: len(desk.edits()) == 1, "the edit")
        await until(pilot, lambda: "has changed since you looked" in said(app), "the refusal")
        assert desk.states()["E3"] == "queued"
        assert table.selected == "E3"


async def test_colon_takes_a_command() -> None:
    """A line of the language becomes an edit."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("colon")
        app.screen.query_one("#line", Input).value = "add b=16 B=40"
        await pilot.press("enter")
        await until(pilot, lambda: "E4" in desk.states(), "the new experiment")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "the line is gone")
        item = by_id(desk.queue, "E4")
        assert item is not None
        assert item.config is not None
        assert (item.config.block_size, item.config.budget) == (16, 40)


async def test_a_refused_command_keeps_its_text_and_points_at_the_column() -> None:
    """The caret stands under the word that cannot be read; mending it is enough."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("colon")
        app.screen.query_one("#line", Input).value = "add b=16 B=oops"
        await pilot.press("end", "enter")
        await until(pilot, lambda: "✘" in screen_text(app) and "^" in screen_text(app), "the refusal")
        lines = screen_text(app).splitlines()
        below = next(index for index, line in enumerate(lines) if "add b=16 B=oops" in line)
        assert lines[below + 1].index("^") == lines[below].index("oops") or (
            lines[below + 1].index("^") == lines[below].index("B=oops")
        )
        await pilot.press(*["backspace"] * 4, *"40", "enter")
        await until(pilot, lambda: "E4" in desk.states(), "the mended command")


async def test_enter_five_times_is_one_command() -> None:
    """While the answer is awaited, further presses do nothing."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        desk.gate.clear()
        await pilot.press("colon")
        app.screen.query_one("#line", Input).value = "add b=16 B=40"
        await pilot.press("enter", "enter", "enter", "enter", "enter")
        await until(pilot, lambda: len(desk.edits()) == 1, "the edit")
        desk.gate.set()
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done")
        assert len(desk.edits()) == 1
        assert len(desk.states()) == 4


async def test_a_paste_onto_the_dashboard_becomes_a_command_to_look_at() -> None:
    """Pasted text is never keys; what was left out is said."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        app.screen.post_message(Paste("x\nq\ns\nadd b=16"))
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        await until(pilot, lambda: "3 more lines were left out" in screen_text(app), "what was left out")
        assert desk.calls == []


async def test_keys_faster_than_fingers_remove_nothing() -> None:
    """A paste that arrives as keys (tmux) does not start, stop or remove."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        for letter in "xpxpwww":
            app.post_message(Key(letter, letter))
        await until(pilot, lambda: "faster than fingers" in said(app), "the message")
        assert desk.calls == []


async def test_panels_are_focused_zoomed_and_left() -> None:
    """r and l focus and, pressed again, take the whole screen; escape gives it back; g zooms at once."""
    async with opened(full_desk()) as (app, pilot):
        screen = app.screen
        await pilot.press("r")
        assert screen.query_one(ResultTable).has_focus
        await pilot.press("l")
        assert screen.query_one(LogPane).has_focus
        await pilot.press("l")
        await until(pilot, lambda: screen.query_one(LogPane).size.height > 30, "the whole screen")
        await pilot.press("escape")
        await until(pilot, lambda: screen.query_one(LogPane).size.height < 12, "back")
        await pilot.press("g")
        await until(pilot, lambda: not screen.query_one(LogPane).display, "the cards alone")
        await pilot.press("g", "tab")
        await until(pilot, lambda: screen.query_one(LogPane).display, "back again")


async def test_a_narrow_screen_shows_one_panel_at_a_time() -> None:
    """tab goes round all four."""
    async with opened(full_desk(), (40, 20)) as (app, pilot):
        shown = []
        for _ in range(4):
            shown.append(
                [one for one in ("queue", "results", "log", "gpus") if app.screen.query_one(f"#{one}").display]
            )
            await pilot.press("tab")
            await pilot.pause()
        assert shown == [["queue"], ["results"], ["log"], ["gpus"]]


async def test_a_click_selects_and_presses() -> None:
    """The mouse works on rows and on the bar of keys."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        table = app.screen.query_one(QueueTable)
        await pilot.click(QueueTable, offset=(6, 4))
        await until(pilot, lambda: table.selected == "E3", "the third row")
        await pilot.click("#keys", offset=(2, 0))
        await until(pilot, lambda: not isinstance(app.screen, Dashboard), "the form")


async def test_resize_while_events_come() -> None:
    """From wide to narrow and back, with events between, nothing breaks."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        for width, height in ((40, 15), (200, 60), (59, 20), (100, 32), (45, 30), (20, 6), (120, 40)):
            await pilot.resize_terminal(width, height)
            desk.tell(events.LogLines([f"line at {width}x{height}"]))
            await until(pilot, lambda: app.size.width == width, "the new size")  # noqa: B023
        await until(pilot, lambda: "line at 120x40" in screen_text(app), "the last line")


async def test_the_palette_has_every_action() -> None:
    """ctrl+p, a few letters, enter."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("ctrl+p")
        app.screen.query_one(Input).value = "hold or release"
        await until(pilot, lambda: "Queue: hold or release it" in screen_text(app), "the hit")
        await pilot.press("down", "enter")
        await until(pilot, lambda: desk.states()["E2"] == "held", "held")


async def test_begin_while_the_confirm_is_open_does_not_hurt() -> None:
    """The dashboard behind a dialog goes on."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("c")
        desk.edit_now(SetPaused(True))
        await until(pilot, lambda: "paused" in screen_text(app), "the dashboard behind")


async def test_undo_says_what_it_could_not_bring_back() -> None:
    """What has started meanwhile drops out, with a reason."""
    desk = Desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("a", "enter")
        await until(pilot, lambda: "E1" in desk.states(), "the new one")
        desk.edit_now(Begin("E1", 1, NOW))
        await pilot.press("u")
        await until(pilot, lambda: "what has started stays as it is" in said(app), "why nothing is undone")


async def test_closing_that_hangs_can_be_left_at_once() -> None:
    """A second quit does not wait for the host."""
    desk = Desk()

    async def never(*, keep_engine: bool) -> None:
        await asyncio.Event().wait()

    desk.close = never  # type: ignore[method-assign]
    app = console(desk)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.press("q")
        await until(pilot, lambda: "closing" in said(app), "the message")
        await pilot.press("q")
        await until(pilot, lambda: app._exit, "the end")


async def test_the_remark_stands_beside_the_results() -> None:
    """The demo's numbers are never shown without saying what they are; the short form where there is less room."""
    for size, remark in (((120, 40), DEMO_REMARK), ((80, 24), DEMO_REMARK_SHORT)):
        app = app_at("measuring")
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: remark in screen_text(app), "the remark")  # noqa: B023


async def test_a_lost_line_says_why() -> None:
    """The reason and what is being done about it stand in the panel, not only a mark in the header."""
    for size in ((120, 40), (40, 20)):
        app = app_at("disconnected")
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "no answer for 45 s" in screen_text(app), "the reason")  # noqa: B023
            assert "line lost" in screen_text(app)


async def test_a_recording_refuses_edits_and_says_why() -> None:
    """Replayed deterministically, and nothing in it can be changed."""
    app = app_at("measuring")
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E4", "the picture")
        await pilot.press("J")
        await until(pilot, lambda: "nothing can be changed in it" in said(app), "the reason")
