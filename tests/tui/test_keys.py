"""The table of keys: one place, and nothing beside it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ddconsole.tui
from ddconsole.tui import keys
from ddconsole.tui.facts import Moment
from ddconsole.tui.screens.ask import CALL_KEY
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.screens.help import help_lines

ROOM = Path(ddconsole.tui.__file__).parent


def test_ids_and_keys_are_unique() -> None:
    """No two actions share an id, no two a key."""
    ids = [action.id for action in keys.ACTIONS]
    pressed = [key for action in keys.ACTIONS for key in action.keys.split(",")]
    assert len(set(ids)) == len(ids)
    assert len(set(pressed)) == len(pressed)


def test_every_action_is_carried_out_by_the_dashboard() -> None:
    """A row of the table without a method would be a dead key."""
    assert [action.id for action in keys.ACTIONS if not callable(getattr(Dashboard, f"do_{action.id}", None))] == []


def test_every_action_is_in_the_help() -> None:
    """The help is made from the table."""
    shown = "\n".join(line.plain for line in help_lines(Moment(), "", 120))
    assert [action.description for action in keys.ACTIONS if action.description not in shown] == []


def test_the_key_that_answers_ssh_is_in_the_help() -> None:
    """It is the app's, for it works on every screen; the badge names it too."""
    shown = "\n".join(line.plain for line in help_lines(Moment(), "", 120))
    assert f"{CALL_KEY}    answer what ssh asks" in shown


def test_every_key_of_the_queue_is_in_the_documentation() -> None:
    """docs/queue.md has the table's very words."""
    text = (ROOM.parents[1] / "docs" / "queue.md").read_text(encoding="utf-8")
    rows = [
        f"| `{one.shown_key}` | {one.description} | {one.tooltip} |"
        for one in keys.ACTIONS
        if one.group in ("Queue", "Run")
    ]
    assert [row for row in rows if row not in text] == []


def test_the_bar_names_only_actions() -> None:
    """The bar's order is made of ids of the table that have a label."""
    assert all(keys.BY_ID[action_id].label for order in keys.BAR_ORDER.values() for action_id in order)


@pytest.mark.parametrize(
    ("action_id", "now", "reason"),
    [
        ("edit", Moment(), "still being read"),
        ("edit", Moment(revision=3), "the queue is empty"),
        ("edit", Moment(revision=3, queued=2), "up and down go through the queue"),
        ("edit", Moment(selected_id="E1", selected_state="running"), "E1 is running"),
        ("hold", Moment(selected_id="E1", selected_state="idea"), "an idea without a config"),
        ("start", Moment(owns_run=True), "being run already"),
        ("start", Moment(other_pid=7), "process 7"),
        ("pause", Moment(), "nothing runs the queue"),
        ("pause", Moment(paused=True, owns_run=True), "paused already"),
        ("cancel", Moment(), "no experiment is running"),
        ("extend", Moment(), "no experiment is running"),
        ("extend", Moment(running_id="E1"), "E1 has every pass there is"),
        ("undo", Moment(), "nothing to undo"),
        ("redo", Moment(), "nothing was undone"),
        ("order", Moment(queued=1), "fewer than two are queued"),
        ("retry", Moment(selected_id="E1", selected_state="queued"), "choose it among the results"),
        ("retry", Moment(focus="results"), "nothing was measured yet"),
        ("retry", Moment(focus="results", selected_id="E1", selected_state="running"), "it has not ended"),
        ("remove", Moment(focus="results", selected_id="E1", selected_state="done"), "R runs it again"),
        ("line", Moment(selected_id="E1", selected_state="running"), "f gives it further passes"),
    ],
)
def test_why_not(action_id: str, now: Moment, reason: str) -> None:
    """What cannot be done says why."""
    assert reason in str(keys.BY_ID[action_id].why_not(now))


def test_what_can_be_done_has_no_reason() -> None:
    """And what can be done says nothing."""
    now = Moment(
        selected_id="E2", selected_state="queued", queued=2, running_id="E1", passes_left=("quality",), owns_run=True,
        undo="hold E2", redo="hold E3",
    )  # fmt: skip
    free = {action.id for action in keys.ACTIONS if action.why_not(now) is None}
    assert {action.id for action in keys.ACTIONS} - free == {"start", "retry"}
    assert keys.BY_ID["retry"].why_not(Moment(focus="results", selected_id="E1", selected_state="done")) is None


def _sources() -> list[Path]:
    return sorted(ROOM.rglob("*.py"))


def test_colours_have_names_and_stand_in_the_theme_alone() -> None:
    """No hex colour outside the theme, in code or stylesheets."""
    files = [path for path in (*_sources(), *ROOM.rglob("*.tcss")) if path.name != "theme.py"]
    assert [path.name for path in files if re.search(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))] == []


def test_nothing_interprets_markup() -> None:
    """Text of the host can never be markup where nobody reads markup."""
    banned = ("from_markup", "markup=True", "RichLog", "Text.from_")
    assert [(p.name, word) for p in _sources() for word in banned if word in p.read_text(encoding="utf-8")] == []


def test_functions_are_short_and_files_are_small() -> None:
    """No function over 60 lines, no file over 310, the app under 250."""
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        lengths = [
            (node.end_lineno or 0) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        assert max(lengths, default=0) <= 60, path.name
        assert len(text.splitlines()) <= (250 if path.name == "app.py" else 310), path.name


def test_messages_are_small_and_documented() -> None:
    """Every message is a dataclass that says what it means."""
    tree = ast.parse((ROOM / "messages.py").read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert classes
    assert all(ast.get_docstring(node) and node.decorator_list for node in classes)
