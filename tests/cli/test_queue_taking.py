"""How `queue PROFILE add …` takes work: looked at first, with its control, without doubles, once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.profile_file import load_profile
from ddconsole.cli import queue_edit
from ddconsole.core.experiment import Outcome
from ddconsole.core.spec import Command, SpecContext, parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ddconsole.adapters.store import SqliteStore

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
NO_QUEUE = "host: {host}\nengine: {{command: [serve], model: {model}, drafter: d, trained_block_size: 8}}\n"
KNOBS = """knobs:
  algorithm:  {flag: --algorithm, off: null, chain: C, tree: T}
  block_size: {flag: --b, default: 8}
  budget: {flag: --B, default: 12}
  topk: {flag: --K, default: 6}
  window: {flag: --W, default: 2048}
"""


@pytest.fixture
def profiles(home: Path) -> Callable[..., None]:
    """Write profiles into the user's folder."""

    def write(name: str, host: str = "gpu1", model: str = "m") -> None:
        folder = home / "config" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(NO_QUEUE.format(host=host, model=model) + KNOBS, encoding="utf-8")

    return write


def waiting(ddconsole: Callable[..., Any], profile: str = "lab") -> list[str]:
    """Ids of what waits."""
    return [item["id"] for item in ddconsole("queue", profile, "list", "--json").json["items"]]


def test_a_dry_run_shows_grid_size_price_and_doubles_and_changes_nothing(
    ddconsole: Callable[..., Any], profiles: Callable[..., None]
) -> None:
    """With the exit code that the verb itself would have."""
    profiles("lab")
    ddconsole("queue", "lab", "add", "b=16", "B=32")
    document = ddconsole("queue", "lab", "sweep", "b=24", "B=2b,3b", "--dry-run", "--json").json
    assert (document["dry_run"], document["revision"], document["grid"]) == (True, 1, "b 24 × B 2b,3b")
    assert [item["config"]["budget"] for item in document["added"]] == [48, 72]
    assert (document["boots"], document["price_s"]) == (2, sum(item["estimate_s"] for item in document["added"]))
    shown = ddconsole("queue", "lab", "sweep", "b=24", "B=2b,3b", "--dry-run")
    assert "b 24 × B 2b,3b: 2 experiments" in shown.err
    assert "nothing was changed" in shown.err
    double = ddconsole("queue", "lab", "sweep", "b=16", "B=2b,3b", "--dry-run", "--json")
    assert (double.code, double.json["duplicate_of"]) == (4, "E1")
    assert [(each["config"]["budget"], each["duplicate_of"]) for each in double.json["duplicates"]] == [(32, "E1")]
    assert waiting(ddconsole) == ["E1"]


def test_of_a_sweep_what_is_not_there_can_be_added_alone(
    ddconsole: Callable[..., Any], profiles: Callable[..., None]
) -> None:
    """The refusal shows which of the grid are there, and says how many are not."""
    profiles("lab")
    ddconsole("queue", "lab", "add", "b=16", "B=32")
    words = ("queue", "lab", "sweep", "b=16", "B=2b,3b")
    refused = ddconsole(*words)
    assert "tree b 16 B 32 K 6 W 2048  is E1 (queued)" in refused.err
    assert "--new adds the 1 that is not there" in refused.err
    document = ddconsole(*words, "--new", "--json").json
    assert [item["config"]["budget"] for item in document["added"]] == [48]
    assert ddconsole(*words, "--new").code == 4


def test_a_missing_control_is_offered_with_its_price_and_taken_at_once_on_request(
    ddconsole: Callable[..., Any], profiles: Callable[..., None]
) -> None:
    """The command that is offered does what it says; both ways are one step."""
    profiles("lab")
    answer = ddconsole("queue", "lab", "add", "b=16", "B=32", "--json")
    control = answer.json["control_missing"]
    assert control["command"] == "ddconsole queue lab next algorithm=chain b=8 W=2048"
    assert (control["estimate_s"] > 0, control["block_size_assumed"]) == (True, False)
    assert "--with-control" in ddconsole("queue", "lab", "add", "b=16", "B=33").err
    both = ddconsole("queue", "lab", "add", "b=16", "B=34", "--with-control", "--json").json
    assert [item["config"]["algorithm"] for item in both["added"]] == ["chain", "tree"]
    assert (both["control_missing"], waiting(ddconsole)) == (None, ["E3", "E1", "E2", "E4"])
    ddconsole("queue", "lab", "undo")
    assert waiting(ddconsole) == ["E1", "E2"]
    ddconsole(*control["command"].split()[1:])
    assert ddconsole("queue", "lab", "add", "b=16", "B=35", "--json").json["control_missing"] is None


def test_work_of_another_profile_of_the_same_host_and_engine_is_a_double(
    ddconsole: Callable[..., Any], profiles: Callable[..., None], store: SqliteStore
) -> None:
    """Measured there, it is named with its profile; another host or another model is other work."""
    profiles("lab")
    profiles("elsewhere", host="gpu2")
    profiles("bigger", model="m2")
    ddconsole("queue", "lab", "add", "b=8", "B=12")
    key = store.begin_attempt("lab", "E1", {}, NOW)
    store.finish_attempt(key, Outcome.PASSED, {}, None, NOW)
    profiles("night")
    answer = ddconsole("queue", "night", "add", "b=8", "B=12", "--json")
    assert (answer.code, answer.json["duplicate_of"]) == (4, "lab:E1")
    assert "lab:E1 (measured)" in answer.json["error"]["what"]
    for other in ("elsewhere", "bigger"):
        assert ddconsole("queue", other, "add", "b=8", "B=12").code == 0


def test_one_intention_is_taken_once_however_often_it_is_sent(
    ddconsole: Callable[..., Any], profiles: Callable[..., None]
) -> None:
    """The answer to a repeat is what the first one queued; the same work on purpose stays possible."""
    profiles("lab")
    words = ("queue", "lab", "sweep", "b=16", "B=2b,3b", "--with-control", "--json", "--intent", "night-1")
    first, second = ddconsole(*words), ddconsole(*words)
    assert [item["id"] for item in first.json["added"]] == ["E1", "E2", "E3"]
    assert (second.code, second.json["added"]) == (0, [])
    assert [item["id"] for item in second.json["already"]] == ["E1", "E2", "E3"]
    assert second.json["notice"] == "this was taken already, as E1, E2, E3"
    again = ddconsole("queue", "lab", "sweep", "b=16", "B=2b,3b", "--again", "--intent", "night-2", "--json")
    assert len(again.json["added"]) == 2


def test_lines_from_stdin_share_one_intention(ddconsole: Callable[..., Any], profiles: Callable[..., None]) -> None:
    """A script that is run again after a cut line adds nothing twice."""
    profiles("lab")
    for expected in (["E1", "E2"], []):
        answer = ddconsole("queue", "lab", "add", "-", "--intent", "k", "--json", stdin="B=20\nB=24\n")
        assert (answer.code, [item["id"] for item in answer.json["added"]]) == (0, expected)
    assert waiting(ddconsole) == ["E1", "E2"]


def test_the_running_one_is_given_further_passes_and_cannot_be_edited_otherwise(
    ddconsole: Callable[..., Any], profiles: Callable[..., None], store: SqliteStore
) -> None:
    """`edit` with passes alone; its passes so far stay."""
    profiles("lab")
    ddconsole("queue", "lab", "add", "b=8", "B=12", "passes=coding")
    store.begin_attempt("lab", "E1", {}, NOW)
    answer = ddconsole("queue", "lab", "edit", "E1", "passes=quality", "--json")
    assert answer.json["changed"][0]["passes"] == ["coding", "quality"]
    refused = ddconsole("queue", "lab", "edit", "E1", "B=24", "--json")
    assert (refused.code, "clone E1" in refused.json["error"]["what"]) == (3, True)


def test_the_history_is_shown_as_undo_and_redo_walk_it(
    ddconsole: Callable[..., Any], profiles: Callable[..., None], store: SqliteStore
) -> None:
    """What has started since is named, and that undo passes it over."""
    profiles("lab")
    ddconsole("queue", "lab", "add", "b=8", "B=12")
    ddconsole("queue", "lab", "add", "b=8", "B=16")
    ddconsole("queue", "lab", "hold", "E2")
    ddconsole("queue", "lab", "undo")
    store.begin_attempt("lab", "E1", {}, NOW)
    document = ddconsole("queue", "lab", "history", "--json").json
    assert [step["text"] for step in document["undo"]] == ["add E2", "add E1"]
    assert document["undo"][1] == {"text": "add E1", "ids": [], "started": ["E1"]}
    assert [step["text"] for step in document["redo"]] == ["hold E2"]
    assert "E1: passed over" in ddconsole("queue", "lab", "history").out


def test_who_added_it_and_the_note_are_shown_where_somebody_else_did(
    ddconsole: Callable[..., Any], profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One's own name says nothing."""
    profiles("lab")
    ddconsole("queue", "lab", "add", "b=8", "B=12", "note=ask first")
    assert "by ana" not in ddconsole("queue", "lab").out
    monkeypatch.setenv("LOGNAME", "ben")
    assert "“ask first” · by ana" in ddconsole("queue", "lab").out


def test_the_same_work_from_two_terminals_at_the_same_moment_is_added_once(
    ddconsole: Callable[..., Any],
    profiles: Callable[..., None],
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came in between the look and the write is looked at again; other work in between does not hinder."""
    profiles("lab")
    look, others = queue_edit.Editing._foresee, ["B=24", "B=32"]

    def foresee(self: Any, specs: Any, queue: Any, previews: Any) -> None:
        look(self, specs, queue, previews)
        if others:
            context = SpecContext.of(load_profile("lab").profile, queue)
            command = parse(others.pop(0), context)
            assert isinstance(command, Command)
            store.edit("lab", command.edit)

    monkeypatch.setattr(queue_edit.Editing, "_foresee", foresee)
    answer = ddconsole("queue", "lab", "add", "B=32", "--json")
    assert (answer.code, answer.json["duplicate_of"]) == (4, "E2")
    others.append("B=40")
    assert ddconsole("queue", "lab", "add", "B=48", "--json").json["added"][0]["id"] == "E4"
    assert waiting(ddconsole) == ["E1", "E2", "E3", "E4"]
