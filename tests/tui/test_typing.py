"""Typing ahead: keys that come at once, as over a slow link, land where they were meant to."""

from __future__ import annotations

import pytest
from textual.events import Key, Paste
from textual.widgets import Input
from tui.desk import full_desk, opened, until

from ddconsole.core.queue import Add
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.find import Find
from ddconsole.tui.screens.queue_form import QueueForm

NAMES = {":": "colon", "/": "slash", " ": "space", "=": "equals_sign", "\n": "enter", "↓": "down", "⌫": "ctrl+u"}


def at_once(app: ConsoleApp, text: str) -> None:
    """All keys in one go, nothing awaited in between."""
    for character in text:
        name = NAMES.get(character, character)
        app.post_message(Key(name, character if len(name) == 1 or name in ("colon", "space", "equals_sign") else None))


async def test_a_command_typed_at_once_is_the_command() -> None:
    """`:` opens the line, the rest stands in it, enter takes it."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        at_once(app, ":add b=16 B=40\n")
        await until(pilot, lambda: "E4" in desk.states(), "queued")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "the line is gone")
    (add,) = [edit for edit in desk.edits() if isinstance(edit, Add)]
    config = add.drafts[0].config
    assert config is not None
    assert (config.block_size, config.budget) == (16, 40)


async def test_a_search_typed_at_once_finds() -> None:
    """`/` and an id."""
    async with opened(full_desk()) as (app, pilot):
        at_once(app, "/e3")
        await until(pilot, lambda: isinstance(app.screen, Find), "the line")
        await until(pilot, lambda: app.screen.query_one(Input).value == "e3", "the whole of it")


async def test_the_form_filled_in_at_once_is_filled_in_field_by_field() -> None:
    """The first field is emptied and typed into, then the next one."""
    async with opened(full_desk()) as (app, pilot):
        at_once(app, "a⌫16↓⌫40")
        await until(pilot, lambda: isinstance(app.screen, QueueForm), "the form")
        await until(pilot, lambda: app.screen.query_one("#budget", Input).value == "40", "the second field")
        assert app.screen.query_one("#block_size", Input).value == "16"


@pytest.mark.parametrize("times", [1, 30])
async def test_keys_behind_a_dialog_that_closes_are_for_what_is_below(times: int) -> None:
    """Escape, and then the next command at once."""
    async with opened(full_desk()) as (app, pilot):
        for _ in range(times):
            app.post_message(Key("colon", ":"))
            app.post_message(Key("escape", None))
        at_once(app, ":hold E2")

        def typed() -> list[str]:
            return [entry.value for entry in app.screen.query(Input)]

        await until(pilot, lambda: isinstance(app.screen, CommandLine) and typed() == ["hold E2"], "the line's text")


async def test_a_paste_behind_a_key_goes_into_what_the_key_opened() -> None:
    """Bracketed, in the same burst."""
    async with opened(full_desk()) as (app, pilot):
        app.post_message(Key("colon", ":"))
        app.post_message(Paste("sweep B=8..32:8"))
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        await until(pilot, lambda: app.screen.query_one("#line", Input).value == "sweep B=8..32:8", "the paste")


async def test_a_widget_that_is_gone_holds_no_key_back() -> None:
    """Keys go on after a moment."""
    async with opened(full_desk()) as (app, pilot):
        at_once(app, ":")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        line = app.screen.query_one("#line", Input)
        app.post_message(Key("x", "x"))
        await line.remove()
        app.post_message(Key("escape", None))
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "escape came through")
