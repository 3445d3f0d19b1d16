"""The form: add, copy, edit, and what happens when the answer is no."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input
from tui.desk import NOW, Desk, console, full_desk, screen_text, until
from tui.story import chain, tree

from ddconsole.core.config import Algorithm
from ddconsole.core.errors import StoreError
from ddconsole.core.queue import Add, Begin, Change, by_id
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.choice import Choice
from ddconsole.tui.widgets.tables import QueueTable


@asynccontextmanager
async def form_on(
    desk: Desk, key: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console with the form open."""
    app = console(desk)
    async with app.run_test(size=size, notifications=True) as pilot:
        table = app.screen.query_one(QueueTable)
        await until(pilot, lambda: table.selected is not None, "the first picture")
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, QueueForm), "the form")
        yield app, pilot


async def type_over(pilot: Pilot[Any], field: str, text: str) -> None:
    """Put the cursor into a field and write it anew."""
    widget = pilot.app.screen.query_one(f"#{field}", Input)
    widget.focus()
    widget.value = ""
    await pilot.press(*text)


async def test_add_while_one_runs() -> None:
    """a, two numbers, enter: one experiment more at the end."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await type_over(pilot, "block_size", "16")
        await type_over(pilot, "budget", "40")
        assert "b 16" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        item = by_id(desk.queue, "E4")
        assert item is not None
        assert item.config is not None
        assert (item.config.block_size, item.config.budget) == (16, 40)
        await until(pilot, lambda: "E4" in screen_text(app), "the new row")


async def test_enter_five_times_adds_one() -> None:
    """One form is one intention."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await type_over(pilot, "budget", "99")
        desk.gate.clear()
        await pilot.press(*["enter"] * 5)
        await until(pilot, lambda: len(desk.edits()) == 1, "the edit")
        desk.gate.set()
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        assert len(desk.states()) == 4


async def test_a_bad_field_shows_its_reason_and_nothing_is_sent() -> None:
    """The reason stands beside the field, the focus goes there, the text stays."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await type_over(pilot, "block_size", "1")
        await until(pilot, lambda: "must be 2 to 64" in screen_text(app), "the reason")
        app.screen.query_one("#note").focus()
        await pilot.press("enter")
        assert app.screen.query_one("#block_size").has_focus
        assert desk.edits() == []
        assert app.screen.query_one("#block_size", Input).value == "1"


async def test_edit_changes_the_selected_one() -> None:
    """e opens it with its values."""
    desk = full_desk()
    async with form_on(desk, "e") as (app, pilot):
        assert app.screen.query_one("#block_size", Input).value == "8"
        assert not app.screen.query_one("#row-budget").display
        await type_over(pilot, "block_size", "12")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        item = by_id(desk.queue, "E2")
        assert item is not None
        assert item.config is not None
        assert item.config.block_size == 12
        assert isinstance(desk.edits()[0], Change)


async def test_an_edit_of_what_has_started_keeps_the_text_and_offers_a_copy() -> None:
    """Refused with the reason in place; ctrl+n queues the same as a new one."""
    desk = Desk()
    desk.add(chain(8), tree(16, 26))
    async with form_on(desk, "e") as (app, pilot):
        await type_over(pilot, "block_size", "12")
        await type_over(pilot, "note", "keep me")
        desk.edit_now(Begin("E1", 1, NOW))
        await pilot.press("enter")
        await until(pilot, lambda: "ctrl+n queues this as a new experiment" in screen_text(app), "the refusal")
        assert app.screen.query_one("#block_size", Input).value == "12"
        assert app.screen.query_one("#note", Input).value == "keep me"
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        item = by_id(desk.queue, "E3")
        assert item is not None
        assert (item.note, item.origin.after) == ("keep me", "E1")
        assert isinstance(desk.edits()[-1], Add)


async def test_the_form_begins_at_the_first_knob_and_up_and_down_move() -> None:
    """Digits go where they are wanted at once; the focused field says what it means and what it costs."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        assert app.screen.query_one("#block_size").has_focus
        await until(pilot, lambda: "positions of one draft pass" in screen_text(app), "what it means")
        assert "Cost: another one starts the engine anew" in " ".join(screen_text(app).split())
        await pilot.press("down")
        assert app.screen.query_one("#budget").has_focus
        await until(pilot, lambda: "most tree nodes verified a step" in screen_text(app), "the next field")
        await pilot.press("up", "up")
        assert app.screen.query_one("#algorithm").has_focus
        await pilot.press("right", "down", "down")
        await until(pilot, lambda: app.screen.query_one("#window").has_focus, "a chain has no budget and no topk")


async def test_doubles_are_pointed_out_before_enter_and_asked_about_on_enter() -> None:
    """The same question as behind `:`; going back keeps the form."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await until(pilot, lambda: "= E1 running" in screen_text(app), "the double, before enter")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        assert "E1 running" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QueueForm), "the form again")
        assert desk.edits() == []
        await type_over(pilot, "budget", "99")
        await pilot.press("enter")
        await until(pilot, lambda: "E4" in desk.states(), "what is no double is not asked about")


async def test_an_edit_that_makes_a_double_is_asked_about() -> None:
    """Another note alone makes none."""
    desk = full_desk()
    desk.add(chain(12))
    async with form_on(desk, "e") as (app, pilot):
        await type_over(pilot, "block_size", "12")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, QueueForm), "the form")
        await type_over(pilot, "note", "again")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken at once")
    assert by_id(desk.queue, "E2") is not None
    assert [item.note for item in desk.queue.items if item.id == "E2"] == ["again"]


async def test_a_stale_edit_shows_what_stands_now_and_can_be_put_over_it() -> None:
    """What somebody else has changed meanwhile is never overwritten unseen."""
    desk = full_desk()
    async with form_on(desk, "e") as (app, pilot):
        await type_over(pilot, "block_size", "12")
        desk.edit_now(Change("E2", chain(16)))
        await pilot.press("enter")
        await until(pilot, lambda: "has changed since you looked" in screen_text(app), "the refusal")
        assert "now it is chain b 16 W 2048; enter again puts yours in its place" in screen_text(app)
        assert "ctrl+n queues this as a new experiment" in screen_text(app)
        assert app.screen.query_one("#block_size", Input).value == "12"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
    assert [item.config for item in desk.queue.items if item.id == "E2"] == [chain(12)]


async def test_that_it_has_started_is_said_at_the_next_key_and_a_full_disk_offers_no_copy() -> None:
    """A copy answers only what a copy can get around."""
    desk = Desk()
    desk.add(chain(8), tree(16, 26))
    async with form_on(desk, "e") as (app, pilot):
        desk.edit_now(Begin("E1", 1, NOW))
        await type_over(pilot, "block_size", "12")
        await until(pilot, lambda: "E1 is running and stays as it is" in screen_text(app), "before enter")
        desk.failing = StoreError("the disk is full")
        await pilot.press("enter")
        await until(pilot, lambda: "the disk is full" in screen_text(app), "the refusal")
        assert "ctrl+n queues this" not in screen_text(app)


async def test_a_new_one_is_selected() -> None:
    """So that J and K move it at once."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await type_over(pilot, "budget", "99")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E4", "the new one")


async def test_a_copy_begins_with_the_values_of_the_selected_one() -> None:
    """d opens the form of the running one too."""
    desk = full_desk()
    async with form_on(desk, "d") as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question about doubles")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        copy, original = by_id(desk.queue, "E4"), by_id(desk.queue, "E2")
        assert copy is not None
        assert original is not None
        assert copy.config == original.config
        assert copy.origin.verb == "clone"


async def test_the_algorithm_decides_which_fields_there_are() -> None:
    """A chain has no budget; right and left choose."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        app.screen.query_one("#algorithm").focus()
        await pilot.press("right")
        await until(pilot, lambda: not app.screen.query_one("#row-budget").display, "no budget")
        await type_over(pilot, "block_size", "16")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        item = by_id(desk.queue, "E4")
        assert item is not None
        assert item.config is not None
        assert item.config.algorithm is Algorithm.CHAIN


async def test_passes_are_chosen_one_by_one() -> None:
    """Space takes one out; none at all is a problem."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        app.screen.query_one("#passes").focus()
        await pilot.press("space")
        assert app.screen.query_one("#passes", Choice).chosen == ("throughput",)
        await pilot.press("right", "space")
        await until(pilot, lambda: "choose at least one" in screen_text(app), "the problem")


async def test_escape_changes_nothing() -> None:
    """Back is back."""
    desk = full_desk()
    async with form_on(desk, "a") as (app, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "back")
        assert desk.calls == []


@pytest.mark.parametrize("size", [(40, 20), (80, 24)])
async def test_a_paste_of_many_lines_says_what_was_left_out(size: tuple[int, int]) -> None:
    """A one-line field takes the first line and says so."""
    desk = full_desk()
    async with form_on(desk, "a", size) as (app, pilot):
        note = app.screen.query_one("#note", Input)
        note.focus()
        note.post_message(Paste("first \x1b[31mline\nsecond\nthird"))
        await until(pilot, lambda: note.value == "first line", "the first line, cleaned")
        await until(pilot, lambda: "2 more lines were left out" in screen_text(app), "the word")
