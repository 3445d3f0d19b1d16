"""`ddconsole queue PROFILE VERB …`: what is typed, what it does, what it says, and its exit code."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.cli import common
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import Hold

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ddconsole.adapters.store import SqliteStore

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)


def ids(answer: Any, *states: str) -> list[str]:
    """Ids of a queue document's items, of some states or of all."""
    return [item["id"] for item in answer.json["items"] if not states or item["state"] in states]


def test_the_first_look_puts_the_starting_queue_in_once(ddconsole: Callable[..., Any]) -> None:
    """From the profile, with the profile as its origin; removed, it does not come back."""
    first = ddconsole("queue", "demo", "list", "--json")
    assert ids(first) == ["E1", "E2", "E3"]
    assert first.json["items"][1]["origin"] == {
        "verb": "profile",
        "text": "add algorithm=chain b=8 W=2048",
        "after": None,
    }
    assert ddconsole("queue", "demo", "remove", "E1", "E2", "E3").code == 0
    assert ids(ddconsole("queue", "demo", "list", "--json")) == []


def test_the_document_has_what_scripts_need(ddconsole: Callable[..., Any]) -> None:
    """Keys and units as documented; what is not known is null."""
    document = ddconsole("queue", "ct200", "list", "--json").json
    assert {
        "schema": 1,
        "profile": "ct200",
        "revision": 2,
        "paused": False,
        "running": None,
    }.items() <= document.items()
    item = document["items"][0]
    assert item["config"] == {
        "algorithm": "tree", "block_size": 8, "budget": 12, "topk": 6, "window": 2048, "args": {},
    }  # fmt: skip
    assert (item["effective"]["topk"], item["effective"]["verify_width"]) == (2, 13)
    assert item["workload"] == {"prompts": "code", "temperature": 0.0, "thinking": False}
    assert (item["estimate_s"], item["estimate_source"]) == (540.0, "profile")
    assert [finding["code"] for finding in item["findings"]] == ["topk-not-reached"]
    assert item.keys() >= {
        "id",
        "rank",
        "sweep",
        "state",
        "passes",
        "repeats",
        "base",
        "note",
        "author",
        "created_at",
        "revision",
    }


def test_add_answers_with_what_it_added(ddconsole: Callable[..., Any]) -> None:
    """Signed by who typed, started from the profile's default config, behind all others."""
    document = ddconsole("queue", "demo", "add", "b=16", "B=40", "note=wide one", "--json").json
    (added,) = document["added"]
    assert (added["id"], added["rank"], added["author"], added["note"]) == ("E4", 4, "ana", "wide one")
    assert (added["config"]["budget"], added["config"]["window"]) == (40, 2048)
    assert (document["duplicate_of"], document["refused"], document["changed"]) == (None, None, [])


@pytest.mark.parametrize("words", [("b=16", "B=40,48"), ("b=16 B=40,48",)])
def test_a_spec_may_come_as_words_or_as_one_string(ddconsole: Callable[..., Any], words: tuple[str, ...]) -> None:
    """A sweep gets a common id; how its values came about is said on stderr."""
    answer = ddconsole("queue", "demo", "sweep", *words, "--json")
    assert [(item["id"], item["sweep"]) for item in answer.json["added"]] == [("E4", "S1"), ("E5", "S1")]


def test_after_inherits_and_takes_its_place(ddconsole: Callable[..., Any]) -> None:
    """Right behind the one it names, its budget matched, and the derivation said."""
    answer = ddconsole("queue", "demo", "after", "E1", "b=16", "B=match", "W=1024")
    assert answer.code == 0
    assert "12 → 26" in answer.err
    assert ids(ddconsole("queue", "demo", "list", "--json")) == ["E1", "E4", "E2", "E3"]


def test_every_editing_verb_reaches_the_queue(ddconsole: Callable[..., Any]) -> None:
    """Each shows the items it changed and exits with 0."""
    for words, expected in [
        (("hold", "E2"), {"E2": "held"}),
        (("release", "E2"), {"E2": "queued"}),
        (("move", "E3", "top"), {"E3": "queued"}),
        (("edit", "E1", "B=24"), {"E1": "queued"}),
        (("remove", "E2"), {"E2": "removed"}),
        (("undo",), {"E2": "queued"}),
        (("redo",), {"E2": "removed"}),
        (("idea", "try", "the", "small", "drafter"), {"E4": "idea"}),
        (("next", "b=8", "B=30"), {"E5": "queued"}),
        (("clone", "E1", "K=3"), {"E6": "queued"}),
    ]:
        document = ddconsole("queue", "demo", *words, "--json").json
        told = {item["id"]: item["state"] for item in document["added"] + document["changed"]}
        assert told.items() >= expected.items(), words
    assert ids(ddconsole("queue", "demo", "list", "--json")) == ["E5", "E3", "E1", "E4", "E6"]
    assert "E2" in ids(ddconsole("queue", "demo", "list", "--json", "--all"), "removed")


def test_pause_and_start(ddconsole: Callable[..., Any]) -> None:
    """A paused queue has no end time."""
    assert "the queue is paused" in ddconsole("queue", "demo", "pause").err
    document = ddconsole("queue", "demo", "list", "--json").json
    assert (document["paused"], document["ends_at"]) == (True, None)
    assert "the queue goes on" in ddconsole("queue", "demo", "start").err
    assert ddconsole("queue", "demo", "list", "--json").json["ends_at"] is not None


# --- refusals


def test_a_spec_that_cannot_be_read_is_exit_code_2_with_its_column(ddconsole: Callable[..., Any]) -> None:
    """Three lines for people with a mark under the place, the same as JSON for scripts; nothing was added."""
    for_people = ddconsole("queue", "demo", "add", "b=16", "B=banana")
    assert (for_people.code, for_people.out) == (2, "")
    lines = for_people.err.splitlines()
    assert lines[0] == "ddconsole: `banana` is no value for budget"
    assert lines[1].index("banana") == lines[2].index("^")
    for_scripts = ddconsole("queue", "demo", "add", "b=16", "B=banana", "--json")
    assert for_scripts.code == 2
    assert for_scripts.json["refused"] == {"column": 8, "reason": "`banana` is no value for budget"}
    assert (for_scripts.json["error"]["kind"], for_scripts.json["added"]) == ("spec", [])
    assert len(ids(ddconsole("queue", "demo", "list", "--json"))) == 3


def test_the_same_work_is_pointed_out_and_only_added_on_request(ddconsole: Callable[..., Any]) -> None:
    """Exit code 4 with the id of the work that is there; `--again` adds it."""
    words = ("queue", "demo", "add", "b=8", "B=12", "K=6", "W=2048", "--json")
    refused = ddconsole(*words)
    assert (refused.code, refused.json["duplicate_of"], refused.json["error"]["kind"]) == (4, "E1", "duplicate")
    assert "--again" in refused.json["error"]["advice"]
    assert ddconsole(*words, "--again").json["added"][0]["id"] == "E4"


def test_two_configs_that_are_the_same_engine_are_the_same_work(ddconsole: Callable[..., Any]) -> None:
    """On this fork K is derived: a cap of 5 and one of 6 are never reached."""
    answer = ddconsole("queue", "ct200", "add", "b=8", "B=12", "K=5", "--json")
    assert (answer.code, answer.json["duplicate_of"]) == (4, "E1")


def test_what_is_not_allowed_now_is_exit_code_3(ddconsole: Callable[..., Any], store: SqliteStore) -> None:
    """A running experiment cannot be edited; the reason says what can be done."""
    ddconsole("queue", "demo", "list")
    store.begin_attempt("demo", "E1", {}, NOW)
    answer = ddconsole("queue", "demo", "hold", "E1", "--json")
    assert (answer.code, answer.json["error"]["kind"]) == (3, "refused")
    assert "running" in answer.json["error"]["what"]
    assert ddconsole("queue", "demo", "list", "--json").json["running"] == "E1"


def test_a_failed_experiment_can_be_retried(ddconsole: Callable[..., Any], store: SqliteStore) -> None:
    """It keeps its id; the next attempt is its second."""
    ddconsole("queue", "demo", "list")
    key = store.begin_attempt("demo", "E1", {}, NOW)
    store.finish_attempt(key, Outcome.WRONG, {}, None, NOW)
    assert ddconsole("queue", "demo", "retry", "E1").code == 0
    assert store.begin_attempt("demo", "E1", {}, NOW).attempt == 2


def test_an_unknown_profile_is_exit_code_2(ddconsole: Callable[..., Any]) -> None:
    """With the nearest name; and where the profile was forgotten, with the right order."""
    answer = ddconsole("queue", "dem", "list")
    assert (answer.code, "did you mean demo?" in answer.err) == (2, True)
    assert "`ddconsole queue PROFILE list`" in ddconsole("queue", "list").err


def test_a_broken_profile_is_told_with_its_place(ddconsole: Callable[..., Any], home: Path) -> None:
    """As JSON too."""
    path = home.parent / "here" / "x.yaml"
    path.write_text("host: a\nhost: b\n", encoding="utf-8")
    answer = ddconsole("queue", "x.yaml", "list", "--json")
    assert answer.code == 2
    assert answer.json["error"]["kind"] == "profile"
    assert answer.json["error"]["what"].startswith("x.yaml:2:1: the key host is given twice")


def test_a_starting_queue_that_cannot_be_read_names_the_line_of_the_profile(
    ddconsole: Callable[..., Any], home: Path
) -> None:
    """And nothing of it is put in."""
    path = home.parent / "here" / "x.yaml"
    path.write_text(
        "host: local\nengine: {command: [a], model: m, drafter: d}\nqueue:\n  - add B=20\n  - add B=nonsense\n",
        encoding="utf-8",
    )
    answer = ddconsole("queue", "./x.yaml", "list")
    assert answer.code == 2
    assert "x.yaml:5:5: queue[1]: column 7 of 'add B=nonsense'" in answer.err
    path.write_text(path.read_text(encoding="utf-8").replace("nonsense", "24"), encoding="utf-8")
    assert len(ids(ddconsole("queue", "./x.yaml", "list", "--json"))) == 2


# --- several lines, several writers


def test_lines_from_stdin_are_added_together_or_not_at_all(ddconsole: Callable[..., Any]) -> None:
    """One spec a line; a bad line is named and nothing is added; undo takes all of them back."""
    bad = ddconsole("queue", "demo", "add", "-", stdin="b=8 B=30\nb=8 B=x\n")
    assert (bad.code, "line 2: `x` is no value for budget" in bad.err) == (2, True)
    assert len(ids(ddconsole("queue", "demo", "list", "--json"))) == 3
    good = ddconsole("queue", "demo", "add", "-", "--json", stdin="# wider\nb=8 B=30\n\n  b=8 B=31\n")
    assert [item["id"] for item in good.json["added"]] == ["E4", "E5"]
    ddconsole("queue", "demo", "undo")
    assert ids(ddconsole("queue", "demo", "list", "--json")) == ["E1", "E2", "E3"]


def test_an_edit_of_what_another_process_changed_meanwhile_is_refused(
    ddconsole: Callable[..., Any], store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit names the revision that was read when its words were."""
    ddconsole("queue", "demo", "list")
    from ddconsole.cli import queue_edit

    read = queue_edit.Editing._foresee

    def read_then_other(self: Any, specs: Any, queue: Any, previews: Any) -> None:
        read(self, specs, queue, previews)
        store.edit("demo", Hold(("E1",)))

    monkeypatch.setattr(queue_edit.Editing, "_foresee", read_then_other)
    answer = ddconsole("queue", "demo", "edit", "E1", "B=24")
    assert (answer.code, "changed since you looked" in answer.err) == (3, True)


# --- what people see


def test_the_plain_list_is_aligned_and_says_when_it_will_be_done(ddconsole: Callable[..., Any]) -> None:
    """Not on a terminal: no colour, no frame."""
    answer = ddconsole("queue", "ct200")
    headline, header, first, _ = answer.out.splitlines()
    assert headline.startswith("queue of ct200 · 2 queued · done ")
    assert header.index("config") == first.index("tree b 8")
    assert "runs K 2, 6 is only a cap" in first
    assert "\x1b" not in answer.out


def test_an_empty_list_says_what_to_do(ddconsole: Callable[..., Any]) -> None:
    """With a command that can be copied."""
    ddconsole("queue", "demo", "remove", "E1", "E2", "E3")
    assert "`ddconsole queue demo add" in ddconsole("queue", "demo").out


def test_a_drafter_at_another_block_size_is_warned_of(ddconsole: Callable[..., Any]) -> None:
    """In the list and in the document."""
    ddconsole("queue", "ct200", "add", "b=16", "B=26")
    assert "⚠ trained at 8" in ddconsole("queue", "ct200", "list").out


def test_specs_from_a_standard_input_that_is_closed_or_no_text(
    ddconsole: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad usage with a sentence; nothing is queued."""
    refused = ddconsole("queue", "demo", "add", "-", stdin=b"b=8 B=30\n\xff\xfe\n")
    assert refused.code == 2
    assert "standard input is no UTF-8 at byte 9" in refused.err
    monkeypatch.setattr(common, "sys", SimpleNamespace(stdin=None))
    refused = ddconsole("queue", "demo", "add", "-")
    assert refused.code == 2
    assert "`-` reads standard input, and that is closed" in refused.err
    assert len(ddconsole("queue", "demo", "list", "--json").json["items"]) == 3


def test_what_is_bound_at_the_start_is_told_from_a_fixed_config(ddconsole: Callable[..., Any]) -> None:
    """In the table and as JSON; others are `default`."""
    answer = ddconsole("queue", "demo", "add", "base=best", "B=52")
    assert "base=best: what is not named comes from the best when it starts" in answer.out
    items = ddconsole("queue", "demo", "list", "--json").json["items"]
    assert [item["base"] for item in items] == ["default"] * 3 + ["best"]


def test_doubles_within_one_edit_are_named(ddconsole: Callable[..., Any]) -> None:
    """Two experiments that an edit makes the same work: each later one says which."""
    ddconsole("queue", "demo", "sweep", "b=8", "B=20,24", "K=6")
    answer = ddconsole("queue", "demo", "edit", "S1", "B=40")
    assert answer.code == 0
    assert "this is the same work as E4 (this spec)" in answer.out + answer.err
    ddconsole("queue", "demo", "undo")
    document = ddconsole("queue", "demo", "edit", "E4", "E5", "B=44", "--json").json
    assert [each["duplicate_of"] for each in document["duplicates"]] == ["E4"]


def test_of_a_refused_line_only_what_is_near_the_column_is_shown_again(ddconsole: Callable[..., Any]) -> None:
    """A paste of a megabyte stays a line on the screen, with the caret below the word that is wrong."""
    refused = ddconsole("queue", "demo", "add", "note=" + "a" * 900, "b=wide", "arg.x=" + "y" * 900)
    line, caret = refused.err.splitlines()[1:3]
    assert len(line) < 180
    column = caret.index("^")
    assert line[column:].startswith("wide")


def test_an_edit_that_takes_longer_says_by_how_much(ddconsole: Callable[..., Any]) -> None:
    """And what changes no time says nothing of it."""
    assert "more than before" in ddconsole("queue", "demo", "edit", "E2", "repeats=3").err
    assert "than before" not in ddconsole("queue", "demo", "edit", "E2", "note=again").err


def test_what_an_empty_queue_advises_can_be_typed(ddconsole: Callable[..., Any]) -> None:
    """The command that it names is taken as it stands."""
    ddconsole("queue", "demo", "remove", "E1", "E2", "E3")
    advised = re.search(r"`ddconsole (queue demo [^`]+)`", ddconsole("queue", "demo", "list").out)
    assert advised is not None
    assert ddconsole(*advised[1].split()).code == 0
