"""A queue of a thousand: it opens, scrolls, is edited and searched, and draws only what is in sight."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import MouseScrollDown
from textual.pilot import Pilot
from tui.desk import Desk, console, screen_text, until
from tui.story import tree

from ddconsole.core.queue import Hold, Move, Remove, Undo
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.draw import rows
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.widgets.tables import QueueTable

COUNT = 1_000


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Desk, ConsoleApp, Pilot[Any]]]:
    """A thousand experiments of which the first runs."""
    desk = Desk()
    desk.add(*(tree(8, 12 + number) for number in range(COUNT)))
    desk.begin("E1")
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E2", "the first picture")
        yield desk, app, pilot


async def test_it_opens_scrolls_edits_and_finds() -> None:
    """End, a page back, a hold there, an undo, a jump to an id, a move, a removal, a filter."""
    async with opened() as (desk, app, pilot):
        table = app.screen.query_one(QueueTable)
        assert f"QUEUE {COUNT - 1}" in screen_text(app)
        await pilot.press("end")
        await until(pilot, lambda: "▸ E1000" in screen_text(app), "the last one in sight")
        await pilot.press("pageup", "space")
        chosen = table.selected or ""
        await until(pilot, lambda: table.item(chosen).get("state") == "held", "held")
        await pilot.press("u")
        await until(pilot, lambda: table.item(chosen).get("state") == "queued", "undone")
        await pilot.press("slash", *"e500", "enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard) and table.selected == "E500", "found")
        await pilot.press("J")
        await until(pilot, lambda: list(desk.states()).index("E500") == 500, "moved")
        await pilot.press("x")
        await until(pilot, lambda: desk.states()["E500"] == "removed", "removed")
        await until(pilot, lambda: not table.has("E500"), "out of the list")
        await pilot.press("slash", *"b8 B777", "enter")
        await until(pilot, lambda: "▸ E766" in screen_text(app), "the one with that budget")
    assert desk.edits() == [Hold((chosen,)), Undo(), Move(("E500",), "down"), Remove(("E500",))]


async def test_an_edit_makes_only_the_rows_anew_that_say_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold is one row, a move to the other end none: what a thousand rows show has not changed."""
    async with opened() as (desk, app, pilot):
        made: list[str] = []
        real = rows._queue_row

        def counted(item: Any) -> rows.Row:
            made.append(item["id"])
            return real(item)

        monkeypatch.setattr(rows, "_queue_row", counted)
        await pilot.press("space")
        await until(pilot, lambda: app.screen.query_one(QueueTable).item("E2").get("state") == "held", "held")
        assert made == ["E2"]
        made.clear()
        desk.edit_now(Move(("E1000",), "top"))
        await until(pilot, lambda: app.screen.query_one(QueueTable).item("E1000").get("rank") == 1, "moved")
        assert set(made) <= {"E1000", "E2"}


async def test_the_wheel_scrolls_and_a_click_selects_there() -> None:
    """What is below the panel comes into sight under the mouse; the cursor stays until somebody clicks."""
    async with opened() as (_, app, pilot):
        table = app.screen.query_one(QueueTable)
        region = table.region
        x, y = region.x + 6, region.y + 4
        for _ in range(10):
            app.screen._forward_event(MouseScrollDown(table, x, y, 0, 1, 0, False, False, False, x, y))
            await pilot.pause()
        await until(pilot, lambda: table.scroll_offset.y > 5, "it has scrolled")
        assert table.selected == "E2"
        await pilot.click(QueueTable, offset=(6, 4))
        await until(pilot, lambda: table.selected not in (None, "E2"), "the row under the mouse")
        assert int((table.selected or "E0")[1:]) > 5
