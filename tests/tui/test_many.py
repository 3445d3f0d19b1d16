"""Many at once, and finding one among many: marks, the filter, the jump to an id, the details."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from tui.desk import Desk, console, full_desk, screen_text, until
from tui.story import tree

from ddconsole.core.queue import Hold, Move, Release, Remove, Undo
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.find import Find
from ddconsole.tui.widgets.tables import QueueTable


@asynccontextmanager
async def opened(desk: Desk, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[QueueTable, Pilot[Any]]]:
    """The console on a desk, its first picture drawn."""
    app = console(desk)
    async with app.run_test(size=size, notifications=True) as pilot:
        table = app.screen.query_one(QueueTable)
        await until(pilot, lambda: table.selected is not None, "the first picture")
        yield table, pilot


def text(pilot: Pilot[Any]) -> str:
    """What is on the screen."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    return screen_text(app)


def long_desk() -> Desk:
    """E1 runs; E2 to E5 wait."""
    desk = full_desk()
    desk.add(tree(8, 24), tree(8, 32))
    return desk


async def test_marked_ones_are_moved_held_and_removed_as_one_step() -> None:
    """m marks and goes on; J, space and x act on all that are marked; u takes one step back for all of them."""
    desk = long_desk()
    async with opened(desk) as (table, pilot):
        await pilot.press("m", "m")
        assert table.marked == ("E2", "E3")
        assert table.selected == "E4"
        assert " •E2" in text(pilot)
        await pilot.press("J")
        await until(pilot, lambda: list(desk.states()) == ["E1", "E4", "E2", "E3", "E5"], "both moved")
        await until(pilot, lambda: table.marked == ("E2", "E3"), "the marks stay")
        await pilot.press("space")
        await until(pilot, lambda: desk.states()["E2"] == desk.states()["E3"] == "held", "both held")
        await until(pilot, lambda: table.item("E3").get("state") == "held", "seen to be held")
        await pilot.press("space")
        await until(pilot, lambda: desk.states()["E2"] == desk.states()["E3"] == "queued", "both released")
        await until(pilot, lambda: table.item("E3").get("state") == "queued", "seen to be released")
        await pilot.press("x")
        await until(pilot, lambda: desk.states()["E2"] == desk.states()["E3"] == "removed", "both removed")
        await pilot.press("u")
        await until(pilot, lambda: desk.states()["E2"] == desk.states()["E3"] == "queued", "both are back")
    both = ("E2", "E3")
    assert desk.edits() == [Move(both, "down"), Hold(both), Release(both), Remove(both), Undo()]


async def test_of_marked_ones_only_those_that_are_not_held_are_held() -> None:
    """A mixed handful is held first; the key acts the other way only when all are held."""
    desk = long_desk()
    desk.edit_now(Hold(("E2",)))
    async with opened(desk) as (_, pilot):
        await pilot.press("m", "m", "space")
        await until(pilot, lambda: desk.states()["E3"] == "held", "held")
    assert desk.edits() == [Hold(("E3",))]


async def test_escape_takes_the_marks_back_and_the_running_one_takes_none() -> None:
    """What cannot be edited cannot be marked."""
    desk = long_desk()
    async with opened(desk) as (table, pilot):
        await pilot.press("m", "escape")
        assert table.marked == ()
        await pilot.press("home", "m")
        assert table.marked == ()


async def test_a_mark_goes_when_its_experiment_starts() -> None:
    """The others stay marked."""
    desk = Desk()
    desk.add(tree(8, 12), tree(8, 16))
    async with opened(desk) as (table, pilot):
        await pilot.press("m", "m")
        desk.begin("E1")
        await until(pilot, lambda: table.marked == ("E2",), "the mark of E1 is gone")


async def test_slash_narrows_and_escape_shows_all_again() -> None:
    """Words may stand anywhere in a row; the border says what it is narrowed to."""
    desk = long_desk()
    async with opened(desk) as (table, pilot):
        await pilot.press("slash", *"tree b16")
        await until(pilot, lambda: "QUEUE 4 · /tree b16" in text(pilot), "the border")
        assert [table.selected, "E2" in text(pilot), "E3" in text(pilot)] == ["E3", False, True]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Dashboard), "kept")
        await pilot.press("escape")
        await until(pilot, lambda: "E2" in text(pilot), "all of them")


async def test_slash_with_an_id_jumps_to_it() -> None:
    """In a queue of a thousand, at once; the rest of the queue is there again."""
    desk = Desk()
    desk.add(*(tree(8, 12 + number) for number in range(1_000)))
    async with opened(desk) as (table, pilot):
        await pilot.press("slash", *"e777", "enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Find), "found")
        assert table.selected == "E777"
        assert "/e777" not in text(pilot)
        await pilot.press("J")
        await until(pilot, lambda: desk.edits() == [Move(("E777",), "down")], "it moves among all of them")
