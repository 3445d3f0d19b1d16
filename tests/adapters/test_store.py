"""The store's queue and events: what an edit returns is what everybody reads afterwards."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import RefusedError
from ddconsole.core.events import Event, GpuSampled, LogLines, RunFinished, RunStarted, Warned
from ddconsole.core.experiment import Held, Origin, Queued
from ddconsole.core.ports import AttemptKey
from ddconsole.core.queue import Add, Draft, Hold, Move, Redo, Release, Remove, SetPaused, Undo

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048, args=(("page-size", "1"),))
WRITER = Path(__file__).parent / "store_writer.py"


def add(*budgets: int) -> Add:
    """An edit that queues one tree for each budget."""
    drafts = tuple(Draft(Config(Algorithm.TREE, block_size=8, budget=budget)) for budget in budgets)
    return Add(drafts, Origin(text="B=" + ",".join(str(budget) for budget in budgets)))


def reopened(store: SqliteStore) -> SqliteStore:
    """The same file, read by someone who knows nothing yet."""
    store.close()
    return SqliteStore(store.path, now=lambda: NOW)


def begun(store: SqliteStore, profile: str = "p") -> AttemptKey:
    """An attempt at a new experiment."""
    queue = store.edit(profile, add(12))
    return store.begin_attempt(profile, queue.items[-1].id, {"engine": "toy"}, NOW)


def test_a_profile_never_seen_has_an_empty_queue(store: SqliteStore) -> None:
    """Looking makes nothing."""
    assert store.queue("p").items == ()
    assert store.queue("p").revision == 0


def test_what_an_edit_returns_is_what_is_read_afterwards(store: SqliteStore) -> None:
    """All of it: order, ids, revisions, history, and every field of an experiment."""
    draft = Draft(TREE, suite="confirm", passes=("quality",), repeats=3, note="was für ⟨x⟩", requires=None)
    store.edit("p", Add((draft, draft), Origin("sweep", "b=8 B=12", None), author="ana", as_sweep=True, intent="i1"))
    store.edit("p", add(16, 20))
    store.edit("p", Move(("E4",), "top"))
    store.edit("p", Hold(("E1",)))
    store.edit("p", SetPaused(True))
    last = store.edit("p", Remove(("E2",)))
    again = reopened(store)
    assert again.queue("p") == last
    again.close()


def test_undo_and_redo_outlive_the_process(store: SqliteStore) -> None:
    """The history is in the store, and undoing an add leaves no row behind."""
    store.edit("p", add(12))
    first = store.edit("p", Hold(("E1",)))
    again = reopened(store)
    again.edit("p", Undo())
    assert isinstance(again.queue("p").items[0].state, Queued)
    assert again.edit("p", Undo()).items == ()
    again = reopened(again)
    again.edit("p", Redo())
    assert again.edit("p", Redo()).items[0].state == first.items[0].state == Held()
    assert again.edit("p", add(16)).items[-1].id == "E2"
    again.close()


def test_profiles_do_not_see_each_other(store: SqliteStore) -> None:
    """Ids and revisions count for each profile alone."""
    store.edit("p", add(12, 16))
    assert [item.id for item in store.edit("q", add(20)).items] == ["E1"]
    assert len(store.queue("p").items) == 2


def test_a_refused_edit_changes_nothing(store: SqliteStore) -> None:
    """The rules' reason is the error's, with exit code 3."""
    before = store.edit("p", add(12))
    with pytest.raises(RefusedError, match="E9 is not in this queue") as told:
        store.edit("p", Hold(("E1", "E9")))
    assert told.value.exit_code == 3
    assert store.queue("p") == before


def test_an_edit_of_what_changed_meanwhile_is_refused(store: SqliteStore) -> None:
    """Only where it touches the same experiment; what others did elsewhere does not matter."""
    seen = store.edit("p", add(12, 16)).revision
    store.edit("p", Hold(("E1",)))
    with pytest.raises(RefusedError, match=f"changed since you looked .revision {seen}"):
        store.edit("p", Release(("E1",)), seen=seen)
    assert isinstance(store.edit("p", Hold(("E2",)), seen=seen).items[1].state, Held)


def test_the_starting_queue_is_put_in_once_and_never_again(store: SqliteStore) -> None:
    """Also not when all of it was removed."""
    assert store.seed("p", [add(12), add(16, 20)])
    assert [item.id for item in store.queue("p").items] == ["E1", "E2", "E3"]
    store.edit("p", Remove(("E1", "E2", "E3")))
    again = reopened(store)
    assert not again.seed("p", [add(12)])
    assert len(again.queue("p").items) == 3
    again.close()


def test_an_empty_starting_queue_counts_as_put_in(store: SqliteStore) -> None:
    """A later version of the profile does not put its own in."""
    assert store.seed("p", [])
    assert not store.seed("p", [add(12)])


def test_a_starting_queue_that_is_refused_is_not_half_put_in(store: SqliteStore) -> None:
    """All or nothing, and it may be mended and tried again."""
    with pytest.raises(RefusedError):
        store.seed("p", [add(12), Hold(("E9",))])
    assert store.queue("p").items == ()
    assert store.seed("p", [add(12)])


def test_events_are_numbered_by_profile_and_read_from_anywhere(store: SqliteStore) -> None:
    """From 1, without a gap, whatever number they came with."""
    for text in ("a", "b", "c"):
        store.append_event("p", Event(0, NOW, Warned(text), id="E1", attempt=1))
    assert store.append_event("q", Event(77, NOW, Warned("z"))).seq == 1
    events = reopened(store).events("p", after=1, limit=1)
    assert [(event.seq, event.body, event.id) for event in events] == [(2, Warned("b"), "E1")]
    assert [event.seq for event in store.events("p")] == [1, 2, 3]


def test_of_transient_events_only_the_latest_of_each_kind_is_kept(store: SqliteStore) -> None:
    """They have no number and are not in the list."""
    for offset in range(3):
        store.append_event("p", Event(0, NOW, LogLines(["x"], offset)))
    store.append_event("p", Event(0, NOW, GpuSampled(problem="no driver")))
    assert store.events("p") == []
    assert [event.body for event in store.live("p")] == [GpuSampled(problem="no driver"), LogLines(["x"], 2)]


def test_a_kind_that_only_a_newer_program_knows_is_passed_over(store: SqliteStore) -> None:
    """It does not hide the events behind it, even when it fills the whole page."""
    with sqlite3.connect(store.path) as db:
        for seq in (1, 2):
            db.execute("INSERT INTO events VALUES ('p', ?, 'hologram', '{}')", (seq,))
    db.close()
    store.append_event("p", Event(0, NOW, RunFinished("drained")))
    assert [event.seq for event in store.events("p", limit=1)] == [3]


def test_a_run_knows_whether_the_last_one_ended_cleanly(store: SqliteStore) -> None:
    """Of the same profile only."""
    store.begin_run("p", "r1", 10, NOW)
    store.begin_run("q", "r2", 11, NOW)
    assert store.close_unclean_runs("p", NOW)
    assert not store.close_unclean_runs("p", NOW)
    store.end_run("r2", NOW)
    assert not store.close_unclean_runs("q", NOW)


def test_the_newest_run_in_the_events_is_found(store: SqliteStore) -> None:
    """By the number of its `run_started`; 0 before the first."""
    assert store.last_run_seq("p") == 0
    for body in (RunStarted("box", 1), RunFinished("drained"), RunStarted("box", 2), Warned("x")):
        store.append_event("p", Event(0, NOW, body))
    assert (store.last_run_seq("p"), store.last_run_seq("q")) == (3, 0)
