"""The corpus of hostile text through every widget and screen there is; a widget that no scene shows fails the test."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Awaitable, Callable, Iterator

import pytest
from fakes.hostile import HOSTILE, harmful
from textual.events import Paste
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from tui.desk import Desk, console, until
from tui.story import chain, result, tree

import ddconsole.tui
from ddconsole.core import events
from ddconsole.core.experiment import Origin
from ddconsole.core.ports import Asked, Question
from ddconsole.core.queue import Add, Draft
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.ask import AskScreen
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.details import Details
from ddconsole.tui.screens.find import Find
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.order import OrderScreen
from ddconsole.tui.screens.queue_form import QueueForm

SIZE = 8
WORDS = tuple(HOSTILE.values())
HANDFULS = tuple(WORDS[start : start + SIZE] for start in range(0, len(WORDS), SIZE))


def own_widgets() -> set[type[Widget]]:
    """Every class of a widget or screen under ddconsole.tui."""
    found: set[type[Widget]] = set()
    for module in pkgutil.walk_packages(ddconsole.tui.__path__, "ddconsole.tui."):
        for thing in vars(importlib.import_module(module.name)).values():
            if isinstance(thing, type) and issubclass(thing, Widget) and thing.__module__.startswith("ddconsole.tui"):
                found.add(thing)
    return found


def desk_of(words: tuple[str, ...]) -> Desk:
    """A queue under the real rules and events of a run; each text that others write is one of `words` in turn."""
    turn = itertools.cycle(words)
    desk = Desk(name=next(turn))
    drafts = tuple(Draft(config, note=next(turn)) for config in (tree(8, 12), chain(8), tree(16, 26), tree(8, 12)))
    desk.edit_now(Add(drafts, Origin(text=next(turn)), author=next(turn)))
    desk.edit_now(Add(tuple(Draft(None, note=word or "idea") for word in words), Origin(text=next(turn))))
    failure = {"cause": next(turn), "what": next(turn), "evidence": list(words), "advice": next(turn), "phase": None}
    item = result("E0", tree(8, 12), 1.0, 1.0, outcome="failed", failure=failure, verdict=next(turn),
                  engine_version=next(turn), measured_on=next(turn))  # fmt: skip
    desk.tell(events.ExperimentFinished("failed", next(turn), failure, item), "E0")
    desk.begin("E1")
    desk.tell(events.RunStarted(next(turn), 1))
    desk.tell(events.Connection("lost", detail=next(turn), advice=next(turn)))
    for level in ("block", "warn", "note"):
        desk.tell(events.FindingSeen(level, next(turn), next(turn), next(turn), [next(turn)]), "E1")
    desk.tell(events.Warned(next(turn)), "E1")
    desk.tell(events.PhaseChanged(next(turn), "started"), "E1")
    desk.tell(events.PassStarted(next(turn), 3), "E1")
    desk.tell(events.GpuSampled([{"index": 0, "name": next(turn), "uuid": next(turn)}], problem=next(turn)))
    desk.tell(events.LogLines(list(words)))
    return desk


class Looker:
    """Looks at what is drawn, and remembers which widgets it has seen."""

    def __init__(self, app: ConsoleApp) -> None:
        self.app = app
        self.seen: set[type[Widget]] = set()

    def look(self, where: str) -> None:
        """Nothing harmful in a cell, no link, no action that text brought."""
        screen: Screen[object] = self.app.screen
        self.seen |= {base for widget in (screen, *screen.walk_children()) for base in type(widget).__mro__}
        for strip in screen._compositor.render_strips():
            for segment in strip:
                assert harmful(segment.text) == [], (where, segment.text)
                assert segment.style is None or not segment.style.link, where
                assert "evil" not in str(segment.style.meta if segment.style else ""), where
        for widget in (screen, *screen.walk_children()):
            for text in (widget.border_title, widget.border_subtitle, widget.tooltip):
                assert harmful(str(text or ""), lines=True) == [], (where, type(widget).__name__, text)
        assert harmful(f"{self.app.title}{self.app.sub_title}") == [], where


Step = Callable[[Pilot[object], str], Awaitable[None]]


def reached(screen: type[Screen[object]], *keys: str) -> Step:
    """Press keys until that screen is there."""

    async def step(pilot: Pilot[object], word: str) -> None:
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(pilot.app.screen, screen), screen.__name__)

    return step


async def typed(pilot: Pilot[object], word: str) -> None:
    """The word pasted into the command line, as a note and as a verb, and what the line says of it."""
    await reached(CommandLine, "colon")(pilot, word)  # type: ignore[arg-type]
    for text in (word, f"note E3 {word}", f"add b=8 B={word}"):
        line = pilot.app.screen.query_one("#line", Input)
        line.value = ""
        line.post_message(Paste(text))
        await pilot.pause()


async def asked(pilot: Pilot[object], word: str) -> None:
    """A question of the connection, with the host's words in it."""
    for kind in (Asked.PASSWORD, Asked.HOST_KEY):
        await pilot.app.push_screen(AskScreen(Question(kind, word, word, word, (word, word))))
        await pilot.pause()
        if kind is Asked.PASSWORD:
            await pilot.press("escape")


async def told(pilot: Pilot[object], word: str) -> None:
    """A notice."""
    for severity in ("information", "warning", "error"):
        pilot.app.notify(word, title=word, severity=severity)  # type: ignore[arg-type]
        await pilot.pause()


async def zoomed(pilot: Pilot[object], word: str) -> None:
    """Each panel alone, on a small screen and a large one."""
    for key in ("l", "g", "w", "r"):
        await pilot.press(key)
        await pilot.pause()


STEPS: dict[str, Step] = {
    "dashboard": reached(Dashboard),
    "notice": told,
    "panels": zoomed,
    "command line": typed,
    "help": reached(Help, "question_mark"),
    "details": reached(Details, "w", "home", "j", "i"),
    "form": reached(QueueForm, "w", "home", "j", "e"),
    "find": reached(Find, "w", "slash"),
    "order": reached(OrderScreen, "o"),
    "confirm": reached(Confirm, "c"),
    "question": asked,
}
"""Scenes by name. A new screen needs one, or `test_every_widget_is_in_a_scene` fails."""


async def scenes(words: tuple[str, ...], size: tuple[int, int]) -> set[type[Widget]]:
    """Play them all; the classes that were seen."""
    app = console(desk_of(words))
    turn: Iterator[str] = itertools.cycle(words)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        looker = Looker(app)
        await until(pilot, lambda: bool(app.screen.query("#queue")), "the dashboard")
        for name, step in STEPS.items():
            await step(pilot, next(turn))  # type: ignore[arg-type]
            await pilot.pause()
            looker.look(name)
            while not isinstance(app.screen, Dashboard):
                await pilot.press("escape")
                await pilot.pause()
        assert app.is_running
    return looker.seen


@pytest.mark.parametrize("size", [(160, 50), (60, 20)], ids=["large", "small"])
@pytest.mark.parametrize("words", HANDFULS, ids=range(len(HANDFULS)))
async def test_no_widget_passes_hostile_text_on(words: tuple[str, ...], size: tuple[int, int]) -> None:
    """Every cell drawn, every title, border and tooltip; and nothing ends the app."""
    await scenes(words, size)


async def test_every_widget_is_in_a_scene() -> None:
    """A widget or screen that is added without a scene is found here, not by a user."""
    seen = await scenes(HANDFULS[0], (160, 50))
    missing = sorted(widget.__name__ for widget in own_widgets() - seen)
    assert missing == []
