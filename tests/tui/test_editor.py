"""`E`: the marked ones in an editor that is a process of its own; nothing changes before the whole text is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from tui import scripted_editor
from tui.desk import Desk, full_desk, opened, screen_text, until
from tui.story import tree

from ddconsole.core.queue import Batch, Change, Hold, by_id
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.handoff import EditorFailedError, editor_command
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.widgets.notice_line import NoticeLine


class Editor:
    """Steps for the scripted editor, and what it has seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def will(self, *steps: dict[str, Any]) -> None:
        """One step for each start."""
        (self.folder / "steps.json").write_text(json.dumps(steps), encoding="utf-8")

    @property
    def seen(self) -> list[str]:
        """The text at each start."""
        path = self.folder / "seen.txt"
        return path.read_text(encoding="utf-8").split("=====\n")[:-1] if path.exists() else []

    @property
    def is_open(self) -> bool:
        """A step with `waits` is under way."""
        return (self.folder / "open").exists()

    def go(self) -> None:
        """Let it go on."""
        (self.folder / "go").touch()


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """The scripted editor as $VISUAL."""
    monkeypatch.setenv("VISUAL", f"'{sys.executable}' '{scripted_editor.__file__}' '{tmp_path}'")
    return Editor(tmp_path)


def said(app: ConsoleApp) -> str:
    """Every notice."""
    return "\n".join(app.screen_stack[0].query_one(NoticeLine).said)


async def asked(pilot: Pilot[Any], words: str) -> None:
    """Wait for a question with these words."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await until(pilot, lambda: isinstance(app.screen, Confirm) and words in screen_text(app), words)


async def test_marked_ones_are_edited_as_one_document_and_one_step(editor: Editor) -> None:
    """Two in the file, one changed, one new: one edit, which names the revision that was seen; the marks stay."""
    desk = full_desk()
    editor.will({"replace": ["B=26", "B=40", "- id: E3\n", "- id: E3\n  note: wide\n"]})
    seen = desk.queue.revision
    async with opened(desk) as (app, pilot):
        await pilot.press("m", "m", "E")
        await until(pilot, lambda: bool(desk.edits()), "the edit")
        await until(pilot, lambda: "taken: edit E3" in said(app), "the notice")
    assert [id_ in editor.seen[0] for id_ in ("id: E2", "id: E3", "id: E1")] == [True, True, False]
    assert f"revision: {seen}" in editor.seen[0]
    (edit, at), item = desk.calls[0], by_id(desk.queue, "E3")
    assert isinstance(edit, Batch | Change)
    assert at == seen
    assert len(desk.queue.history.undo) == 2
    assert item is not None
    assert (item.config, item.note) == (tree(16, 40), "wide")


async def test_the_selected_one_is_edited_where_none_is_marked_and_an_unchanged_text_is_nothing(
    editor: Editor,
) -> None:
    """A file that comes back as it was asks nothing of the queue."""
    desk = full_desk()
    editor.will({})
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: "nothing is changed" in said(app), "the notice")
    assert "of: E2\n" in editor.seen[0]
    assert desk.edits() == []


async def test_a_mistake_names_line_and_column_and_the_text_is_offered_again(editor: Editor) -> None:
    """As often as it takes; until then the queue stands as it stood."""
    desk = full_desk()
    editor.will({"replace": ["b=8", "b=oops"]}, {"replace": ["b=oops", "b=12"]})
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await asked(pilot, "queue.yaml:9:3")
        assert "`oops` is no value" in screen_text(app)
        assert desk.edits() == []
        await pilot.press("e")
        await until(pilot, lambda: bool(desk.edits()), "the edit")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done: its key means nothing else")
    assert "b=oops" in editor.seen[1]
    item = by_id(desk.queue, "E2")
    assert item is not None
    assert item.config is not None
    assert item.config.block_size == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "queue.yaml:"),
        ("", "queue.yaml is empty"),
        ("hello", "expected keys with values"),
        ("x: 1", "unknown key"),
    ],
)
async def test_whatever_comes_back_is_refused_whole_and_kept(editor: Editor, text: str, words: str) -> None:
    """Left for now, it is there again at the next E; begun anew it is gone."""
    desk = full_desk()
    editor.will({"write": text}, {}, {})
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await asked(pilot, words)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "left")
        await pilot.press("E")
        await asked(pilot, "A text that was not taken is still here")
        await pilot.press("e")
        await asked(pilot, words)
        await pilot.press("escape", "E")
        await asked(pilot, "A text that was not taken is still here")
        await pilot.press("n")
        await until(pilot, lambda: "nothing is changed" in said(app), "begun anew, and unchanged")
    assert [seen.split("\n", 1)[1].rstrip("\n") == text for seen in editor.seen] == [False, True, False]
    assert desk.edits() == []


async def test_what_started_meanwhile_is_named_and_the_rest_is_offered(editor: Editor) -> None:
    """The run goes on while the editor is open; nothing of the text is taken before the answer."""
    desk = Desk()
    desk.add(tree(8, 12), tree(8, 16), tree(8, 24))
    editor.will({"waits": True, "replace": ["b=8", "b=12"]})
    async with opened(desk) as (app, pilot):
        await pilot.press("m", "m", "E")
        await until(pilot, lambda: editor.is_open, "the open editor")
        desk.begin("E1")
        editor.go()
        await asked(pilot, "E1 cannot be edited any more")
        assert "E1 is running and stays as it is" in screen_text(app)
        assert desk.edits() == []
        await pilot.press("r")
        await until(pilot, lambda: bool(desk.edits()), "the rest")
        await until(pilot, lambda: isinstance(app.screen, Dashboard), "done")
    sizes = {item.id: item.config.block_size for item in desk.queue.items if item.config is not None}
    assert sizes == {"E1": 8, "E2": 12, "E3": 8}


async def test_what_another_has_changed_meanwhile_is_not_overwritten(editor: Editor) -> None:
    """It is named like what has started."""
    desk = full_desk()
    editor.will({"waits": True, "replace": ["b=8", "b=12"]})
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: editor.is_open, "the open editor")
        desk.edit_now(Hold(("E2",)), unseen=True)
        editor.go()
        await asked(pilot, "E2 was changed by somebody else")
        assert "take the rest" not in screen_text(app)
    assert desk.states()["E2"] == "held"


async def test_work_that_is_there_already_is_asked_about(editor: Editor) -> None:
    """The same question as elsewhere; all the same means taken."""
    desk = full_desk()
    editor.will({"replace": ["experiments:\n", "experiments:\n- spec: b=16 B=26\n"]})
    async with opened(desk) as (_, pilot):
        await pilot.press("E")
        await asked(pilot, "E3 queued")
        await pilot.press("y")
        await until(pilot, lambda: "E4" in desk.states(), "taken all the same")


async def test_an_editor_that_fails_changes_nothing_and_loses_nothing(editor: Editor) -> None:
    """`:cq`, a crash: what was typed is offered again."""
    desk = full_desk()
    editor.will({"exit": 1, "replace": ["b=8", "b=12"]}, {})
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: "ended with 1: nothing was taken; E offers your text again" in said(app), "why")
        assert desk.edits() == []
        await pilot.press("E")
        await asked(pilot, "A text that was not taken is still here")
        await pilot.press("e")
        await until(pilot, lambda: bool(desk.edits()), "taken after all")
    assert "b=12" in editor.seen[1]


async def test_an_editor_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name, and the screen goes on."""
    monkeypatch.setenv("VISUAL", "no-such-editor-at-all")
    desk = full_desk()
    async with opened(desk) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: "no-such-editor-at-all cannot be run" in said(app), "the reason")
        await pilot.press("space")
        await until(pilot, lambda: desk.states()["E2"] == "held", "the next key")


def test_the_editor_is_the_users() -> None:
    """$VISUAL before $EDITOR, with arguments; what cannot be split is said."""
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_command({"EDITOR": "vi"}) == ["vi"]
    with pytest.raises(EditorFailedError, match="cannot be read"):
        editor_command({"EDITOR": "vi 'x"})
