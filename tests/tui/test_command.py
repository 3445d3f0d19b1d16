"""`:`, the queue's language on the screen: preview, refusal, doubles, ideas, the missing control, earlier lines."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, Static
from tui.desk import Desk, console, full_desk, screen_text, until
from tui.story import chain, tree

from ddconsole.core.queue import Add, Hold
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.help import Help

GARBAGE = "qwertyuiopasdfghjklzxcvbnmqwertyuiopasdf"
SENTENCE = "after block_size=16 budget=match"


@asynccontextmanager
async def opened(desk: Desk, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console on a desk, with the line open."""
    app = console(desk)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: bool(app.screen.query("#queue")), "the first picture")
        app.bridge.tick()
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        yield app, pilot


def write(app: ConsoleApp, text: str) -> None:
    """What stands in the line, as if it had been typed."""
    app.screen.query_one("#line", Input).value = text


def said(app: ConsoleApp) -> str:
    """What the line has to say, on the screen."""
    return screen_text(app)


def sweeping() -> Desk:
    """A sweep of three, whose first member runs; the chain that it is compared with waits behind."""
    desk = Desk()
    desk.run_line("sweep b=8 B=12,16,24")
    desk.add(chain(8))
    desk.begin("E1")
    return desk


async def test_what_it_would_come_to_is_shown_before_it_is_taken() -> None:
    """Ids, the engine's own config, how values came about, price and findings; the queue is as it was."""
    desk = sweeping()
    async with opened(desk) as (app, pilot):
        write(app, "after E1 b=16 B=match")
        await until(pilot, lambda: "→ 1 experiment behind it" in said(app), "the headline")
        text = said(app)
        assert "E5    tree b 16 B 26 K 2 (cap 6) W 2048" in text
        assert "B 12 → 26" in text
        assert "match" in text
        assert "N 13 → 27" in text
        assert "⚠ trained at 8" in text
        assert "1 engine start" in text
        assert list(desk.states()) == ["E1", "E2", "E3", "E4"]
        assert desk.edits() == []
        await pilot.press("enter")
        await until(pilot, lambda: list(desk.states())[:2] == ["E1", "E5"], "taken, right behind")


async def test_a_sweep_shows_its_grid_and_its_size() -> None:
    """And of many experiments the first ones, with how many more there are."""
    async with opened(full_desk(), (80, 24)) as (app, pilot):
        write(app, "sweep b=8..32:8 B=match,2b,3b W=512,1024")
        await until(
            pilot, lambda: "→ 24 experiments · b 8,16,24,32 × B match,2b,3b × W 512,1024" in said(app), "the grid"
        )
        assert "… and " in said(app)
        assert "24 engine starts" in said(app)


async def test_doubles_are_marked_where_only_the_first_lines_fit() -> None:
    """On a small screen too, for they are what the user has to know before enter."""
    desk = Desk()
    desk.run_line("sweep b=16 B=26,32,48")
    async with opened(desk, (80, 24)) as (app, pilot):
        write(app, "sweep b=16,24 B=match,2b,3b W=1024,2048")
        await until(pilot, lambda: "→ 12 experiments" in said(app), "the headline")
        assert "= E1 queued" in said(app)
        assert "= E2 queued" in said(app)
        write(app, "sweep b=8..32:8 B=match,2b,3b W=512,1024,2048")
        await until(pilot, lambda: "→ 36 experiments" in said(app), "the headline")
        assert "2 of them there already" in said(app)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (45, 30)])
async def test_nothing_of_a_preview_leaves_its_indent(size: tuple[int, int]) -> None:
    """How a value came about is broken at words, below the experiment that it is of."""
    async with opened(sweeping(), size) as (app, pilot):
        write(app, SENTENCE)
        await until(pilot, lambda: "→ 3 experiments" in said(app), "the headline")
        answer = app.screen.query_one("#said", Static)
        assert answer.content_size.height == len(str(answer.content).splitlines())


async def test_what_an_edit_changes_is_in_its_preview() -> None:
    """Its note, and what it makes longer or shorter; further passes for the running one cost something too."""
    async with opened(full_desk()) as (app, pilot):
        write(app, 'edit E3 note="the wide one"')
        await until(pilot, lambda: "“the wide one”" in said(app), "the note")
        write(app, "edit E3 repeats=3")
        await until(pilot, lambda: re.search(r"edit E3 repeats=3 · \S+ min more", said(app)) is not None, "its price")
        write(app, "edit E1 passes=quality")
        await until(pilot, lambda: re.search(r"passes=quality · \S+ s more", said(app)) is not None, "a pass's price")


async def test_a_refusal_while_typing_is_quiet_and_enter_makes_it_loud() -> None:
    """The caret stands under the column of the text as typed; nothing is lost."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        write(app, "add   b=16 B=oops")
        await until(pilot, lambda: "…" in said(app) and "^" in said(app), "the quiet refusal")
        lines = said(app).splitlines()
        typed = next(index for index, line in enumerate(lines) if "add   b=16 B=oops" in line)
        assert lines[typed + 1].index("^") == lines[typed].index("oops")
        assert "✘" not in lines[typed + 2]
        await pilot.press("enter")
        await until(pilot, lambda: "✘" in said(app), "the refusal")
        assert app.screen.query_one("#line", Input).value == "add   b=16 B=oops"
        assert desk.edits() == []


@pytest.mark.parametrize(
    ("garbage", "kept"),
    [
        (GARBAGE, GARBAGE),
        ("one line of five\nsecond\nthird\n\nfifth", "one line of five"),
        ("😀 🎉", "😀 🎉"),
        ("", ""),
        ("   ", "   "),
    ],
    ids=["letters", "lines", "emoji", "empty", "blank"],
)
async def test_the_story_of_the_seed(garbage: str, kept: str) -> None:
    """While a sweep runs: garbage is refused, the sentence makes one sweep, the same sentence again is pointed out."""
    desk = sweeping()
    async with opened(desk) as (app, pilot):
        app.screen.query_one("#line").post_message(Paste(garbage))
        await until(pilot, lambda: app.screen.query_one("#line", Input).value == kept, "the garbage in the line")
        await pilot.press("enter")
        await until(pilot, lambda: "✘" in said(app) and "^" in said(app), "the refusal, with its column")
        assert app.screen.query_one("#line", Input).value == kept
        assert desk.edits() == []

        write(app, SENTENCE)
        await until(pilot, lambda: "→ 3 experiments behind it" in said(app), "member by member")
        assert all(words in said(app) for words in ("B 12 → 26", "B 16 → 34", "B 24 → 51"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        sweeps = {item.sweep for item in desk.queue.items}
        assert sweeps == {"S1", "S2", None}

        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line again")
        write(app, SENTENCE)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        assert "E5 queued" in said(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "a stray enter goes back")
        assert app.screen.query_one("#line", Input).value == SENTENCE
        assert "= E5 queued" in said(app)
    assert {item.sweep for item in desk.queue.items} == {"S1", "S2", None}
    assert len([edit for edit in desk.edits() if isinstance(edit, Add)]) == 1


async def test_a_double_can_be_queued_all_the_same_or_only_what_is_new() -> None:
    """The question has a key for each."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        write(app, "sweep b=8 B=12,20")
        await pilot.press("enter")
        await until(pilot, lambda: "only what is new (1 of 2)" in said(app), "the question")
        await pilot.press("n")
        await until(pilot, lambda: "E4" in desk.states(), "the new one")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done")
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line again")
        write(app, "add b=8 B=20")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question again")
        await pilot.press("y")
        await until(pilot, lambda: "E5" in desk.states(), "all the same")
    assert [item.config for item in desk.queue.items][-2:] == [tree(8, 20), tree(8, 20)]


async def test_words_are_kept_as_an_idea_with_one_key() -> None:
    """A sentence is no spec, but it is not lost."""
    desk = full_desk()
    words = "we should also try it's smaller drafter"
    async with opened(desk) as (app, pilot):
        write(app, words)
        await pilot.press("enter")
        await until(pilot, lambda: "^o keeps it as an idea" in said(app), "the offer")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: desk.states().get("E4") == "idea", "kept")
    assert desk.queue.items[-1].note == words


async def test_the_missing_control_is_offered_and_queued_in_front() -> None:
    """A tree without its chain says so, with the price; one key takes both as one step."""
    desk = Desk()
    async with opened(desk) as (app, pilot):
        write(app, "add b=8 B=40")
        await until(pilot, lambda: "^o queues it in front as well" in said(app), "the offer")
        assert "never measured here: chain b 8 W 2048" in said(app)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: len(desk.states()) == 2, "both")
    assert [item.config for item in desk.queue.items] == [chain(8), tree(8, 40)]
    assert len(desk.queue.history.undo) == 1


async def test_earlier_lines_come_back() -> None:
    """Up and down, and what was being typed stands below them."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        write(app, "hold E2")
        await pilot.press("enter")
        await until(pilot, lambda: desk.states()["E2"] == "held", "held")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done")
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line again")
        write(app, "rel")
        line = app.screen.query_one("#line", Input)
        await pilot.press("up")
        assert line.value == "hold E2"
        await pilot.press("up")
        assert line.value == "hold E2"
        await pilot.press("down")
        assert line.value == "rel"
    assert desk.edits() == [Hold(("E2",))]


@pytest.mark.parametrize("line", ["foo E3", "foo b=16", "explode"])
async def test_an_unknown_verb_lists_the_verbs_and_is_no_idea(line: str) -> None:
    """A slip is mended, not kept."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        write(app, line)
        await pilot.press("enter")
        await until(pilot, lambda: f"✘ unknown verb `{line.split()[0]}`" in said(app), "the refusal")
        assert "verbs are add, next, after" in said(app)
        assert "keeps it as an idea" not in said(app)
        await pilot.press("ctrl+o")
        await pilot.pause()
    assert desk.edits() == []


@pytest.mark.parametrize("word", ["q", "quit", "q!", "exit"])
async def test_q_leaves(word: str) -> None:
    """As it does in every program with such a line; the question about the engine comes first."""
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        write(app, word)
        await until(pilot, lambda: "→ leave the console" in said(app), "what it would do")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
    assert desk.edits() == []


@pytest.mark.parametrize("word", ["help", "h", "?", "help add"])
async def test_help_helps(word: str) -> None:
    """The keys, and the language."""
    async with opened(full_desk()) as (app, pilot):
        write(app, word)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Help), "the help")


async def test_tab_completes_verbs_ids_and_knobs() -> None:
    """As far as it is clear; then it shows what there is and goes round."""
    async with opened(full_desk()) as (app, pilot):
        line = app.screen.query_one("#line", Input)
        write(app, "ed")
        await pilot.press("end", "tab")
        assert line.value == "edit "
        await pilot.press("tab")
        assert line.value == "edit E"
        await until(pilot, lambda: "E1  E2  E3" in said(app), "what there is")
        await pilot.press("tab", "tab")
        assert line.value == "edit E2"
        await pilot.press("tab", "tab")
        assert line.value == "edit E1"
        await pilot.press("space", "b", "l", "tab")
        assert line.value == "edit E1 block_size="
        await pilot.press("1", "6", "space", "a", "l", "tab", "c", "h", "tab")
        assert line.value == "edit E1 block_size=16 algorithm=chain "


async def test_equals_edits_the_selected_one_as_a_line() -> None:
    """With its values; of marked ones all at once."""
    desk = full_desk()
    desk.add(tree(8, 40))
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(app.screen.query("#queue")), "the first picture")
        app.bridge.tick()
        await pilot.press("end", "equals_sign")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        line = app.screen.query_one("#line", Input)
        assert line.value == "edit E4 algorithm=tree b=8 B=40 K=6 W=2048"
        line.value = line.value.replace("B=40", "B=2b")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "taken")
        assert desk.queue.items[-1].config == tree(8, 16)
        await pilot.press("up", "up", "m", "m", "equals_sign")
        await until(pilot, lambda: isinstance(app.screen, CommandLine), "the line")
        assert app.screen.query_one("#line", Input).value == "edit E2 E3 "


async def test_an_undo_says_what_it_takes_back() -> None:
    """Before it is taken."""
    desk = full_desk()
    desk.edit_now(Hold(("E2",)))
    async with opened(desk) as (app, pilot):
        write(app, "undo")
        await until(pilot, lambda: "→ undo: hold E2" in said(app), "the step")


async def test_new_work_is_looked_for_again_when_another_process_edits_meanwhile() -> None:
    """What came in between the look and the edit is not queued twice."""
    desk = Desk()
    async with opened(desk) as (app, pilot):
        desk.gate.clear()
        write(app, "add b=8 B=40")
        await pilot.press("enter")
        await until(pilot, lambda: len(desk.edits()) == 1, "the edit on its way")
        desk.add(tree(8, 40))
        desk.gate.set()
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        assert "E1 queued" in said(app)
    assert len(desk.queue.items) == 1


async def test_a_line_that_is_longer_than_the_screen_still_answers() -> None:
    """At 40 columns the preview keeps to its room."""
    async with opened(full_desk(), (40, 20)) as (app, pilot):
        write(app, "sweep b=8..32:8 B=match,2b,3b")
        await until(pilot, lambda: "→ 12 experiments" in said(app), "the headline")
        assert "… and" in said(app)
