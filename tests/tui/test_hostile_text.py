"""Text that ended other programs: shown as it is, everywhere, and nothing ends."""

from __future__ import annotations

import itertools

import pytest
from tui.desk import NOW, Desk, console, screen_text, until
from tui.story import queue_item, result, tree

from ddconsole.core import events
from ddconsole.core.errors import RefusedError
from ddconsole.runner.feed import LOG_LINES
from ddconsole.tui.draw.gpus import gpus
from ddconsole.tui.draw.header import Place, header
from ddconsole.tui.draw.rows import queue_rows, result_rows
from ddconsole.tui.draw.running import running
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.log_pane import LogPane
from ddconsole.tui.widgets.tables import QueueTable

HOSTILE = (
    "[TP0] Load weight begin",
    "[ERROR] boom",
    "[Gloo] Rank 0",
    "list[int]",
    "[/] x",
    "exec [/bin/sh]",
    "[type=x, v={'a[0]'}]",
    "CUDA error [/dev/nvidia0]",
    "[bold red]",
    "[@click=app.quit]quit[/]",
    "$error {{braces}} %s \\[",
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;aGk=\x07end",
    "\x9b31m\x00\x7f\r\nend",
    "漢字 table 🧪👩‍🔬 e\u0301 \u202ertl",
    "\ud800 lone",
    "x" * 3_000,
    "",
)

GROUPS = tuple(HOSTILE[start : start + 6] for start in range(0, len(HOSTILE), 6))
"""The words by the handful; each handful comes to every place in turn."""


def hostile_view(*words: str) -> Desk:
    """The words in turn, in every place where text of the host or of a user comes to the screen."""
    turn = itertools.cycle(words)
    desk = Desk(name=f"p {next(turn)}")
    finding = {"level": "warn", "code": "x", "text": next(turn)}
    config = tree(8, 12).to_json() | {"args": {"name": next(turn)}}
    items = [
        queue_item("E1", tree(8, 12), "running"),
        queue_item("E2", tree(16, 26), findings=[finding], note=next(turn)) | {"config": config},
        *(queue_item(f"E{number}", None, "idea", note=word) for number, word in enumerate(words, start=3)),
    ]
    failure = {"cause": next(turn), "what": next(turn), "evidence": list(words), "advice": next(turn), "phase": None}
    desk.tell(events.QueueChanged(5, {"revision": 5, "items": items, "paused": False, "ends_at": None}))
    desk.tell(events.Connection("lost", detail=next(turn)))
    desk.tell(events.RunStarted(next(turn), 1))
    desk.tell(events.ExperimentStarted(next(turn), config, {}, [next(turn)], 10.0), "E1")
    desk.tell(events.FindingSeen("warn", next(turn), next(turn)), "E1")
    desk.tell(events.PhaseChanged(next(turn), "started"), "E1")
    desk.tell(events.Ready(1.0, [next(turn)], [next(turn)], engine_version=next(turn)), "E1")
    desk.tell(events.PassStarted(next(turn), 3), "E1")
    item = result("E0", tree(8, 12), 1.0, 1.0, outcome="failed", failure=failure)
    desk.tell(events.ExperimentFinished("failed", next(turn), failure, item), "E1")
    desk.tell(events.GpuSampled([{"index": 0, "name": next(turn), "uuid": next(turn)}], problem=next(turn)))
    desk.tell(events.LogLines(list(words)))
    return desk


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", [30, 100])
def test_hostile_text_in_every_picture(word: str, width: int) -> None:
    """Each word in each picture: drawn, harmless, and within its room."""
    view = hostile_view(word).feed.view
    lines = running(view, NOW, width, 10) + gpus(view.gpus, view.gpu_history, width, 10)
    lines.append(header(view, Place(word, word), owns_run=False, width=width))
    lines += [cell for row in queue_rows(view) + result_rows(view) for cell in row.cells.values()]
    assert lines
    assert not any("\x1b" in line.plain or "\n" in line.plain for line in lines)


@pytest.mark.parametrize("words", GROUPS, ids=range(len(GROUPS)))
async def test_hostile_text_is_shown_as_it_is(words: tuple[str, ...]) -> None:
    """In the header, panels, tables, log, form, toast and help; at three sizes."""
    desk = hostile_view(*words)
    app = console(desk)
    async with app.run_test(size=(160, 50), notifications=True, tooltips=True) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E2", "the picture")
        text = screen_text(app)
        plain = [word for word in words if word and all(" " <= char <= "~" for char in word)]
        assert [word for word in plain if text.count(word.strip()[:20]) < 2] == []
        assert "\x1b" not in text
        desk.failing = RefusedError(words[0], advice=words[-1])
        await pilot.press("J", "e")
        await until(pilot, lambda: isinstance(app.screen, QueueForm), "the form")
        await pilot.press("enter")
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: len(desk.edits()) == 2, "the refused edit")
        await pilot.press("escape", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, Help), "the help")
        await pilot.press("escape", "l", "l", "g")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "the dashboard")


async def test_every_line_of_the_screen_has_its_width() -> None:
    """Wide and combining characters move no border."""
    app = console(hostile_view("漢字🧪e\u0301"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected == "E2", "the picture")
        strips = app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {120}


async def test_a_flood_is_bounded_and_keys_still_answer() -> None:
    """20,000 lines between two ticks: the ring keeps its size, one repaint, and the next key works."""
    desk = Desk()
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen.query_one(LogPane)
        for start in range(0, 20_000, 500):
            desk.tell(events.LogLines([f"line {number} [/] of a flood" for number in range(start, start + 500)]))
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Help), "the help in the flood")
        await pilot.press("escape")
        await until(pilot, lambda: "line 19999 [/] of a flood" in screen_text(app), "the last line")
        assert len(desk.feed.view.log) == LOG_LINES
        assert desk.feed.view.log_total == 20_000
        assert pane.following


async def test_reading_back_stands_still_while_lines_come() -> None:
    """Scrolled up, the text does not move; the border counts what is below; end follows again."""
    desk = Desk()
    desk.tell(events.LogLines([f"early {number}" for number in range(100)]))
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "early 99" in screen_text(app), "the end")
        await pilot.press("l", "up", "up", "up")
        assert not app.screen.query_one(LogPane).following
        before = [line for line in screen_text(app).splitlines() if "early" in line]
        desk.tell(events.LogLines([f"late {number}" for number in range(1_000)]))
        await until(pilot, lambda: "1,003 more" in screen_text(app), "the count below")
        assert [line for line in screen_text(app).splitlines() if "early" in line] == before
        await pilot.press("end")
        await until(pilot, lambda: "late 999" in screen_text(app), "following again")


async def test_hidden_panels_cost_nothing_and_catch_up() -> None:
    """Behind a zoomed panel the log is not drawn; when it comes back it is up to date."""
    desk = Desk()
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen.query_one(LogPane)
        await pilot.press("g")
        await until(pilot, lambda: not pane.display, "hidden")
        desk.tell(events.LogLines(["behind the curtain"]))
        app.bridge.tick()
        await pilot.pause()
        assert pane._total == 0
        await pilot.press("g")
        await until(pilot, lambda: "behind the curtain" in screen_text(app), "caught up")
