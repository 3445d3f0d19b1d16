"""A connection's questions on the screen: masked, cancelled by escape, and never twice in the way."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input
from tui.desk import NOW, Desk

from ddconsole.core.events import Connection, Event
from ddconsole.core.ports import Asked, Question
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.ask import AskScreen, ScreenAsker

SECRET = Question(
    Asked.PASSWORD, "ct200", "Password", "Password of me@ct200", ("[b]The host\x1b[31m did not take it.",)
)
KEY = Question(Asked.HOST_KEY, "ct200", "ct200 is not known yet", "Is this its key (yes/no)?", ("SHA256:abc",), False)


def screen_of() -> tuple[ConsoleApp, ScreenAsker]:
    """The console's screen and who asks on it."""
    asker = ScreenAsker()
    return ConsoleApp(Desk(), guarded=False, asker=asker), asker


async def shown(pilot: Pilot[object]) -> AskScreen:
    """The dialog, once it stands."""
    async with asyncio.timeout(5):
        while not isinstance(pilot.app.screen, AskScreen) or not pilot.app.screen.is_mounted:
            await pilot.pause()
    return pilot.app.screen


async def gone(pilot: Pilot[object]) -> None:
    """No dialog any more."""
    async with asyncio.timeout(5):
        while isinstance(pilot.app.screen, AskScreen):
            await pilot.pause()


def picture(app: App[object]) -> str:
    """All text on the screen."""
    return app.export_screenshot(simplify=True)


async def test_a_secret_is_masked_and_handed_over() -> None:
    """Its text is never on the screen, brackets are only brackets, and escape sequences are shown."""
    app, asker = screen_of()
    async with app.run_test() as pilot:
        asking = asyncio.create_task(asker.ask(SECRET))
        screen = await shown(pilot)
        await pilot.press(*"hunter2")
        assert screen.query_one(Input).value == "hunter2"
        assert "hunter2" not in picture(app)
        assert "[b]The" in picture(app).replace("&#160;", " ")
        await pilot.press("enter")
        assert await asking == "hunter2"
        await gone(pilot)


async def test_escape_is_no_answer() -> None:
    """And the next question waits instead of coming up."""
    app, asker = screen_of()
    waiting: list[Question] = []
    asker.on_waiting = waiting.append
    async with app.run_test() as pilot:
        asking = asyncio.create_task(asker.ask(SECRET))
        await shown(pilot)
        await pilot.press(*"hun", "escape")
        assert await asking is None
        await gone(pilot)
        again = asyncio.create_task(asker.ask(SECRET))
        await pilot.pause()
        assert waiting == [SECRET]
        assert not isinstance(app.screen, AskScreen)
        await pilot.press("ctrl+o")
        await shown(pilot)
        await pilot.press(*"x", "enter")
        assert await again == "x"


async def test_a_reconnect_asks_only_when_it_is_called() -> None:
    """The badge says that an answer is wanted."""
    app, asker = screen_of()
    waiting: list[Question] = []
    asker.on_waiting = waiting.append
    asker.settled()
    async with app.run_test() as pilot:
        assert not asker.call()
        asking = asyncio.create_task(asker.ask(KEY))
        await pilot.pause()
        assert waiting == [KEY]
        assert not isinstance(app.screen, AskScreen)
        assert asker.call()
        await shown(pilot)
        await pilot.press("down", "enter")
        assert await asking == "yes"


async def test_the_badge_says_that_an_answer_is_wanted() -> None:
    """And with which key it is given."""
    desk = Desk()
    app = ConsoleApp(desk, guarded=False)
    async with app.run_test(size=(120, 30)) as pilot:
        desk.feed.publish(Event(0, NOW, Connection("waiting", detail="waits for an answer: Password", advice="ctrl+o")))
        app.bridge.tick()
        await pilot.pause()
        text = picture(app).replace("&#160;", " ")
        assert "needs an answer: ctrl+o" in text
        assert "waits for an answer: Password" in text


@pytest.mark.parametrize("keys", [["enter"], ["escape"]])
async def test_a_host_key_is_not_taken_by_a_stray_key(keys: list[str]) -> None:
    """The first answer is no."""
    app, asker = screen_of()
    async with app.run_test() as pilot:
        asking = asyncio.create_task(asker.ask(KEY))
        await shown(pilot)
        assert "SHA256:abc" in picture(app)
        await pilot.press(*keys)
        assert await asking is None


async def test_a_question_whose_connection_ended_disappears() -> None:
    """Nobody waits for its answer any more."""
    app, asker = screen_of()
    async with app.run_test() as pilot:
        asking = asyncio.create_task(asker.ask(SECRET))
        await shown(pilot)
        asking.cancel()
        await gone(pilot)


async def test_a_small_terminal_shows_the_whole_question() -> None:
    """At 40 by 12."""
    app, asker = screen_of()
    async with app.run_test(size=(40, 12)) as pilot:
        asking = asyncio.create_task(asker.ask(SECRET))
        screen = await shown(pilot)
        assert screen.query_one(Input).region.bottom <= 12
        await pilot.press("escape")
        await asking
