"""Undo and redo: one linear history a queue."""

from typing import Any

import pytest
from fakes.queues import CHAIN, NOW, TREE, applied, bare, begun, ended, line, queue_of, refused, state

from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.queue import (
    Add,
    Begin,
    Change,
    Draft,
    End,
    Extend,
    Hold,
    Move,
    Place,
    Queue,
    Redo,
    Refusal,
    Remove,
    Retry,
    SetPaused,
    Undo,
    apply,
)

EDITS = [
    Add((Draft(TREE), Draft(CHAIN)), Origin(), Place("front"), as_sweep=True),
    Change("E3", config=CHAIN),
    Move(("E4", "E2"), "up"),
    Move(("E5",), 2),
    Remove(("E2", "E4")),
    Remove(("S1",)),
    Hold(("E2", "E5")),
    Retry("E1"),
]


@pytest.mark.parametrize("edit", EDITS)
def test_undo_brings_back_what_was_and_redo_what_was_done(edit: Hold) -> None:
    before = ended(queue_of(5, sweep=True), "E1", "failed")
    after = applied(before, edit)
    back = applied(after, Undo())
    assert bare(back) == bare(before)
    assert bare(applied(back, Redo())) == bare(after)


def test_undo_goes_back_without_limit_and_redo_forth_again() -> None:
    stages = [Queue()]
    for number in range(60):
        edit = Add((Draft(TREE),), Origin()) if number % 2 else Add((Draft(CHAIN),), Origin(), Place("front"))
        stages.append(applied(stages[-1], edit))
    queue = stages[-1]
    for stage in reversed(stages[:-1]):
        queue = applied(queue, Undo())
        assert bare(queue) == bare(stage)
    assert refused(queue, Undo()).code == "nothing-to-undo"
    for stage in stages[1:]:
        queue = applied(queue, Redo())
        assert bare(queue) == bare(stage)
    assert refused(queue, Redo()).code == "nothing-to-redo"


def test_a_new_edit_ends_what_could_be_done_again() -> None:
    queue = applied(queue_of(2), Hold(("E1",)), Undo(), Hold(("E2",)))
    assert refused(queue, Redo()).code == "nothing-to-redo"


def test_the_notice_says_what_was_undone_and_the_next_edit_clears_it() -> None:
    queue = applied(queue_of(2), Hold(("E1",)), Undo())
    assert queue.notice == "undone: hold E1"
    assert applied(queue, Hold(("E2",))).notice == ""


def test_what_has_started_meanwhile_drops_out_with_the_reason() -> None:
    queue = applied(begun(applied(queue_of(3), Move(("E3", "E2"), "top")), "E2"), Undo())
    assert state(queue, "E2") == "running"
    assert line(queue) == ["E1", "E3"]
    assert "E2 has started since" in queue.notice


def test_an_edit_whose_experiments_have_all_started_is_passed_over_and_said() -> None:
    queue = applied(queue_of(2), Hold(("E1",)), Add((Draft(TREE),), Origin()))
    queue = applied(ended(queue, "E3"), Undo())
    assert state(queue, "E1") == "queued"
    assert queue.notice == "undone: hold E1 (E3 has started since and stays as it is)"


def test_when_all_have_started_there_is_nothing_to_undo() -> None:
    against = refused(begun(queue_of(1), "E1"), Undo())
    assert (against.code, against.ids) == ("nothing-to-undo", ("E1",))
    assert "E1 has started since" in against.reason


def test_an_interrupted_experiment_stays_out_of_the_history() -> None:
    queue = applied(begun(queue_of(1), "E1"), End("E1", 1, Outcome.INTERRUPTED))
    assert refused(queue, Undo()).code == "nothing-to-undo"
    assert line(queue) == ["E1"]


def test_further_passes_of_the_running_one_are_not_undone_into_a_running_state() -> None:
    queue = applied(begun(queue_of(2), "E1"), Extend("E1", ("quality",)), End("E1", 1, Outcome.PASSED), Undo())
    assert [(item.id, item.state.name) for item in queue.items] == [("E1", "done")]


def test_undo_never_starts_a_paused_queue() -> None:
    queue = applied(queue_of(2), Hold(("E1",)), SetPaused(True), Undo())
    assert queue.paused
    assert state(queue, "E1") == "queued"


def test_what_is_begun_between_undo_and_redo_stays_as_it_is() -> None:
    queue = applied(queue_of(2), Hold(("E1", "E2")), Undo(), Begin("E1", 1, NOW), Redo())
    assert [item.state.name for item in queue.items] == ["running", "held"]
    assert "E1 has started since" in queue.notice


def test_the_history_does_not_grow_with_what_has_started() -> None:
    queue = Queue()
    for number in range(1, 40):
        queue = ended(applied(queue, Add((Draft(TREE),), Origin())), f"E{number}")
    assert len(queue.history.undo) == 1


def test_an_undone_removal_keeps_its_rank_when_the_one_before_it_has_started() -> None:
    queue = applied(queue_of(4), Hold(("E1",)), Remove(("E3",)))
    assert line(applied(begun(queue, "E2"), Undo())) == ["E1", "E3", "E4"]


@pytest.mark.parametrize("place", ["top", "up", "down", "bottom", 2])
@pytest.mark.parametrize("moved", [("E1",), ("E2",), ("E4",), ("E2", "E3"), ("E1", "E4")])
@pytest.mark.parametrize("started", ["E1", "E2", "E3", "E4"])
def test_an_undone_move_keeps_its_rank_whoever_has_started(moved: tuple[str, ...], place: Any, started: str) -> None:
    """Also when the one that it had stood behind has started from behind it: a held one was moved ahead of its turn."""
    before = queue_of(4)
    found = apply(before, Move(moved, place), now=NOW)
    if isinstance(found, Refusal) or started in moved:
        return  # it stands there already, or what was moved runs
    after = applied(begun(found, started), Undo())
    assert [id_ for id_ in line(after) if id_ != started] == [id_ for id_ in line(before) if id_ != started]
