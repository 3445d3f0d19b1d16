"""The rules of the queue, by table."""

from dataclasses import replace

import pytest
from fakes.queues import CHAIN, NOW, TREE, applied, begun, ended, line, queue_of, refused, state

from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Done, Failed, Idea, Origin, Outcome, Queued
from ddconsole.core.queue import (
    Add,
    Arrange,
    Batch,
    Begin,
    Cancel,
    Change,
    Draft,
    End,
    Extend,
    Hold,
    Move,
    Place,
    Queue,
    Refusal,
    Release,
    Remove,
    Retry,
    SetPaused,
    Undo,
    apply,
    blocked,
    by_id,
    members,
    next_to_run,
    ranks,
    running,
    stale,
    sweep_ids,
)


def test_ids_are_given_once_even_after_an_add_was_undone() -> None:
    queue = applied(queue_of(2), Undo(), Add((Draft(TREE),), Origin()))
    assert line(queue) == ["E3"]


def test_a_sweep_gets_a_common_id() -> None:
    queue = applied(queue_of(2, sweep=True), Add((Draft(TREE), Draft(CHAIN)), Origin(), as_sweep=True))
    assert [item.id for item in members(queue, "S2")] == ["E3", "E4"]
    assert sweep_ids(queue) == ("S1", "S2")


def test_ranks_are_dense_and_count_only_those_that_wait() -> None:
    queue = applied(begun(queue_of(5), "E3"), Remove(("E1",)), Hold(("E2",)))
    assert ranks(queue) == {"E2": 1, "E4": 2, "E5": 3}


@pytest.mark.parametrize(
    ("place", "order"),
    [
        (Place(), ["E2", "E3", "E4", "E5"]),
        (Place("front"), ["E4", "E5", "E2", "E3"]),
        (Place("after", "E2"), ["E2", "E4", "E5", "E3"]),
        (Place("after", "E1"), ["E4", "E5", "E2", "E3"]),
        (Place("after", "S1"), ["E2", "E3", "E4", "E5"]),
    ],
)
def test_new_ones_go_where_they_are_placed(place: Place, order: list[str]) -> None:
    queue = begun(queue_of(3, sweep=True), "E1")
    assert line(applied(queue, Add((Draft(TREE), Draft(TREE)), Origin(), place))) == order


def test_two_adds_after_the_same_experiment_run_in_the_order_in_which_they_were_given() -> None:
    after = Origin("after", "", "E1")
    queue = applied(
        queue_of(2),
        Add((Draft(TREE),), after, Place("after", "E1")),
        Add((Draft(CHAIN),), after, Place("after", "E1")),
    )
    assert line(queue) == ["E1", "E3", "E4", "E2"]


def test_the_order_holds_behind_one_that_ended_long_ago_too() -> None:
    after = Origin("after", "", "E1")
    queue = applied(
        ended(ended(queue_of(3), "E1"), "E2"),
        Add((Draft(TREE),), after, Place("after", "E1")),
        Add((Draft(CHAIN),), after, Place("after", "E1")),
    )
    assert line(queue) == ["E4", "E5", "E3"]


@pytest.mark.parametrize(("anchor", "code"), [("E9", "unknown-id"), ("S9", "unknown-id"), ("E1", "removed")])
def test_nothing_is_placed_after_what_is_not_there(anchor: str, code: str) -> None:
    queue = applied(queue_of(2), Remove(("E1",)))
    assert refused(queue, Add((Draft(TREE),), Origin(), Place("after", anchor))).code == code


def test_one_intent_is_taken_once_and_the_same_experiment_twice_on_purpose_is_possible() -> None:
    add = Add((Draft(TREE),), Origin(), intent="form-1")
    queue = applied(Queue(), add)
    again = refused(queue, add)
    assert (again.code, again.ids) == ("repeated", ("E1",))
    assert line(applied(queue, replace(add, intent="form-2"))) == ["E1", "E2"]


@pytest.mark.parametrize("drafts", [(), (Draft(None, note="  "),)])
def test_nothing_and_an_idea_without_words_are_refused(drafts: tuple[Draft, ...]) -> None:
    assert refused(Queue(), Add(drafts, Origin())).code == "empty"


@pytest.mark.parametrize(
    ("ids", "to", "order"),
    [
        (("E4",), "top", "E4 E1 E2 E3 E5"),
        (("E2", "E4"), "top", "E2 E4 E1 E3 E5"),
        (("E4", "E2"), "bottom", "E1 E3 E5 E2 E4"),
        (("E3",), "up", "E1 E3 E2 E4 E5"),
        (("E1", "E2", "E4"), "up", "E1 E2 E4 E3 E5"),
        (("E3",), "down", "E1 E2 E4 E3 E5"),
        (("E3", "E5"), "down", "E1 E2 E4 E3 E5"),
        (("E1",), 3, "E2 E3 E1 E4 E5"),
        (("E5",), 1, "E5 E1 E2 E3 E4"),
        (("E1",), 99, "E2 E3 E4 E5 E1"),
    ],
)
def test_moves(ids: tuple[str, ...], to: str | int, order: str) -> None:
    assert line(applied(queue_of(5), Move(ids, to))) == order.split()  # type: ignore[arg-type]


def test_top_is_never_ahead_of_the_one_that_runs() -> None:
    queue = applied(begun(queue_of(3), "E2"), Move(("E3",), "top"))
    assert [item.id for item in queue.items] == ["E2", "E3", "E1"]


def test_a_sweep_moves_as_one() -> None:
    queue = applied(queue_of(2, sweep=True), Add((Draft(CHAIN),), Origin(), Place("after", "E1")))
    assert line(applied(queue, Move(("S1",), "bottom"))) == ["E3", "E1", "E2"]


def test_an_order_is_put_into_the_places_that_the_named_ones_hold() -> None:
    assert line(applied(queue_of(5), Arrange(("E5", "E1", "E3")))) == ["E5", "E2", "E1", "E4", "E3"]
    assert refused(queue_of(2), Arrange(("E1", "E1"))).code == "empty"


@pytest.mark.parametrize(
    "edit",
    [
        Change("E1", repeats=2),
        Move(("E1",), "top"),
        Move(("E2", "E1"), "bottom"),
        Remove(("E1",)),
        Remove(("E2", "E1")),
        Hold(("E3", "E1")),
        Release(("E1",)),
        Arrange(("E2", "E1")),
    ],
)
@pytest.mark.parametrize(
    ("how", "code", "offer"),
    [("running", "running", "clone E1"), ("passed", "ended", "retry E1"), ("failed", "ended", "retry E1")],
)
def test_running_and_ended_ones_are_never_edited_and_the_refusal_offers_what_can_be_done(
    edit: Hold, how: str, code: str, offer: str
) -> None:
    queue = begun(queue_of(3), "E1") if how == "running" else ended(queue_of(3), "E1", how)
    against = refused(queue, edit)
    assert (against.code, against.ids) == (code, ("E1",))
    assert offer in against.reason
    assert "clone E1" in against.reason


def test_edits_of_several_are_all_or_nothing() -> None:
    queue = queue_of(2)
    assert refused(queue, Hold(("E1", "E9"))).code == "unknown-id"
    batch = Batch((Hold(("E1",)), Change("E2", repeats=3), Remove(("E7",))))
    assert refused(queue, batch).ids == ("E7",)
    assert state(queue, "E1") == "queued"


def test_a_batch_is_one_revision_and_one_step_of_the_history() -> None:
    queue = queue_of(3)
    batched = applied(queue, Batch((Hold(("E1",)), Change("E2", repeats=3), Move(("E3",), "top"))))
    assert batched.revision == queue.revision + 1
    assert {item.revision for item in batched.items} == {batched.revision}
    assert [(item.id, item.state.name, item.repeats) for item in applied(batched, Undo()).items] == [
        ("E1", "queued", 1),
        ("E2", "queued", 1),
        ("E3", "queued", 1),
    ]


def test_each_edit_of_a_batch_sees_what_the_ones_before_it_left() -> None:
    batch = Batch((Remove(("E2",)), Add((Draft(TREE),), Origin(), Place("front")), Hold(("E4",))))
    queue = applied(queue_of(3), batch)
    assert line(queue) == ["E4", "E1", "E3"]
    assert state(queue, "E4") == "held"


def test_a_sweep_stands_for_those_of_its_members_that_can_take_the_edit() -> None:
    queue = applied(begun(queue_of(3, sweep=True), "E1"), Hold(("S1",)))
    assert [item.state.name for item in queue.items] == ["running", "held", "held"]
    assert refused(queue, Hold(("S1",))).code == "no-change"
    assert [item.state.name for item in applied(queue, Remove(("S1",))).items] == ["running", "removed", "removed"]


@pytest.mark.parametrize(
    "edit", [Hold(("E1",)), Release(("E2",)), Change("E2", repeats=1), Move(("E1",), "top"), Extend("E2", ("coding",))]
)
def test_an_edit_without_effect_says_so_and_makes_no_step(edit: Hold) -> None:
    assert refused(applied(queue_of(2), Hold(("E1",))), edit).code == "no-change"


def test_an_idea_waits_without_running_and_becomes_queued_with_a_config() -> None:
    queue = applied(Queue(), Add((Draft(None, note="b 16 with more budget"),), Origin("idea")))
    assert isinstance(queue.items[0].state, Idea)
    assert next_to_run(queue) is None
    assert refused(queue, Release(("E1",))).code == "idea"
    assert refused(queue, Hold(("E1",))).code == "idea"
    assert refused(queue, Begin("E1", 1, NOW)).code == "idea"
    queue = applied(queue, Change("E1", config=TREE))
    assert isinstance(queue.items[0].state, Queued)
    assert queue.items[0].note == "b 16 with more budget"


def test_held_ones_are_passed_over_until_released() -> None:
    queue = applied(queue_of(2), Hold(("E1",)))
    first = next_to_run(queue)
    assert first is not None
    assert first.id == "E2"
    assert refused(queue, Begin("E1", 1, NOW)).code == "not-queued"
    assert next_to_run(applied(queue, Release(("E1",)))) == replace(queue_of(2).items[0], revision=3)


def test_a_paused_queue_starts_nothing() -> None:
    queue = applied(queue_of(1), SetPaused(True))
    assert next_to_run(queue) is None
    assert next_to_run(applied(queue, SetPaused(False))) is not None


def test_one_runs_at_a_time() -> None:
    assert refused(begun(queue_of(2), "E1"), Begin("E2", 1, NOW)).code == "busy"


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        ("passed", "done"),
        ("wrong", "done"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("interrupted", "queued"),
    ],
)
def test_how_an_attempt_ends(outcome: str, name: str) -> None:
    assert state(ended(queue_of(1), "E1", outcome), "E1") == name


def test_the_interrupted_one_waits_again_ahead_of_all() -> None:
    assert line(ended(queue_of(3), "E3", "interrupted")) == ["E3", "E1", "E2"]


def test_only_the_running_attempt_can_end() -> None:
    queue = begun(queue_of(2), "E1", attempt=2)
    assert refused(queue, End("E1", 1, Outcome.PASSED)).code == "not-running"
    assert refused(queue, End("E2", 1, Outcome.PASSED)).code == "not-running"
    assert refused(queue, End("E9", 1, Outcome.PASSED)).code == "unknown-id"


def test_a_failure_is_kept_and_one_without_a_cause_gets_a_name() -> None:
    oom = Failure("gpu-oom", "out of memory at load")
    told = applied(begun(queue_of(1), "E1"), End("E1", 1, Outcome.FAILED, oom))
    assert told.items[0].state == Failed(1, oom)
    untold = ended(queue_of(1), "E1", "failed").items[0].state
    assert isinstance(untold, Failed)
    assert untold.failure.cause == "unknown"


def test_retry_keeps_the_id_and_goes_behind_all() -> None:
    assert line(applied(ended(queue_of(3), "E1", "failed"), Retry("E1"))) == ["E2", "E3", "E1"]


def test_retry_of_a_sweep_takes_those_that_failed() -> None:
    queue = ended(ended(queue_of(3, sweep=True), "E1", "failed"), "E2", "passed")
    assert line(applied(queue, Retry("S1"))) == ["E3", "E1"]


@pytest.mark.parametrize(("how", "code"), [("queued", "no-change"), ("running", "running"), ("removed", "removed")])
def test_only_what_has_ended_can_be_retried(how: str, code: str) -> None:
    queue = queue_of(1)
    queue = {"queued": queue, "running": begun(queue, "E1"), "removed": applied(queue, Remove(("E1",)))}[how]
    assert refused(queue, Retry("E1")).code == code


def test_removed_ones_stay_as_tombstones() -> None:
    queue = applied(queue_of(2), Remove(("E1",)))
    assert state(queue, "E1") == "removed"
    assert refused(queue, Hold(("E1",))).code == "removed"


def test_the_running_one_can_be_given_further_passes_and_nothing_else() -> None:
    queue = applied(begun(queue_of(1), "E1"), Extend("E1", ("coding", "quality")))
    now = running(queue)
    assert now is not None
    assert now.passes == ("coding", "throughput", "quality")
    assert refused(ended(queue_of(1), "E1"), Extend("E1", ("quality",))).code == "ended"


def test_begin_records_what_the_best_so_far_came_to() -> None:
    queue = applied(queue_of(1), Begin("E1", 1, NOW, config=CHAIN))
    assert queue.items[0].config == CHAIN


def required(queue: Queue, by: str) -> Queue:
    """A queue with one more experiment that starts only if `by` passes."""
    return applied(queue, Add((Draft(CHAIN, requires=by),), Origin("after!", after=by), Place("after", by)))


def test_after_with_a_condition_starts_only_when_the_named_one_has_passed() -> None:
    queue = required(applied(queue_of(1), Hold(("E1",))), "E1")
    assert next_to_run(queue) is None
    assert refused(queue, Begin("E2", 1, NOW)).code == "blocked"
    assert next_to_run(queue, passed={"E1"}) == by_id(queue, "E2")
    passed = ended(applied(queue, Release(("E1",))), "E1")
    assert next_to_run(passed) == by_id(passed, "E2")
    assert applied(passed, Begin("E2", 1, NOW)).items[-1].state.name == "running"


@pytest.mark.parametrize(
    ("outcome", "says"),
    [("failed", "E1 failed: retry E1"), ("wrong", "E1 was wrong"), ("cancelled", "E1 was cancelled")],
)
def test_a_condition_that_cannot_come_true_any_more_says_what_to_do(outcome: str, says: str) -> None:
    queue = ended(required(queue_of(1), "E1"), "E1", outcome)
    waits = blocked(queue, queue.items[-1])
    assert next_to_run(queue) is None
    assert waits is not None
    assert says in waits
    assert "clone E2" in waits


def test_a_condition_on_a_sweep_waits_for_every_member() -> None:
    queue = required(queue_of(2, sweep=True), "S1")
    one = ended(queue, "E1")
    assert next_to_run(applied(one, Hold(("E2",)))) is None
    both = ended(one, "E2")
    assert next_to_run(both) == by_id(both, "E3")
    gone = applied(queue, Remove(("S1",)))
    assert "not there any more" in (blocked(gone, gone.items[-1]) or "")


def test_nothing_can_wait_for_what_is_not_there() -> None:
    assert refused(Queue(), Add((Draft(TREE, requires="E5"),), Origin())).code == "unknown-id"


def test_each_touched_experiment_carries_the_new_revision_and_no_other() -> None:
    queue = applied(queue_of(3), Hold(("E2",)))
    assert {item.id: item.revision for item in queue.items} == {"E1": 1, "E2": 2, "E3": 1}


@pytest.mark.parametrize(
    ("edit", "refuses"),
    [
        (Change("E2", repeats=3), True),
        (Move(("E1", "E2"), "top"), True),
        (Remove(("S1",)), True),
        (Batch((Hold(("E1",)), Release(("E2",)))), True),
        (Undo(), True),
        (Change("E1", repeats=3), False),
        (Add((Draft(TREE),), Origin(), Place("after", "E2")), False),
        (SetPaused(True), False),
    ],
)
def test_an_edit_is_stale_only_when_what_it_touches_has_changed(edit: Change, refuses: bool) -> None:
    queue = queue_of(3, sweep=True)
    seen = queue.revision
    queue = applied(queue, Hold(("E2",)))
    against = stale(queue, edit, seen)
    assert (against is not None and against.code == "stale" and against.ids == ("E2",)) is refuses
    assert stale(queue, edit, queue.revision) is None


def test_what_started_while_its_form_was_open_is_stale_and_running() -> None:
    queue = queue_of(1)
    later = begun(queue, "E1")
    assert isinstance(stale(later, Change("E1", repeats=2), queue.revision), Refusal)


def test_a_done_experiment_keeps_its_outcome_through_other_edits() -> None:
    queue = ended(queue_of(2), "E1", "wrong")
    queue = applied(queue, Hold(("E2",)), Undo(), Hold(("E2",)))
    assert by_id(queue, "E1") is not None
    assert queue.items[0].state == Done(1, Outcome.WRONG)


def test_undo_and_redo_cannot_be_part_of_a_batch() -> None:
    assert isinstance(apply(queue_of(1), Batch((Undo(),)), now=NOW), Refusal)
    assert isinstance(apply(queue_of(1), Batch((Begin("E1", 1, NOW),)), now=NOW), Refusal)
    assert isinstance(apply(queue_of(1), Batch(()), now=NOW), Refusal)


def test_new_work_that_was_looked_for_at_one_revision_is_taken_at_that_one_alone() -> None:
    """What came in since may be the same work; several Adds of one batch are of one look."""
    queue = queue_of(1)
    seen = Add((Draft(TREE),), Origin(), at=queue.revision)
    assert line(applied(queue, Batch((seen, seen)))) == ["E1", "E2", "E3"]
    assert refused(applied(queue, Hold(("E1",))), seen).code == "stale"


def test_behind_is_right_behind_where_after_keeps_the_order_of_asking() -> None:
    """An editor puts an entry where its author sees it."""
    queue = applied(queue_of(1), Add((Draft(TREE),), Origin(after="E1"), Place("after", "E1")))
    assert line(applied(queue, Add((Draft(TREE),), Origin(), Place("after", "E1")))) == ["E1", "E2", "E3"]
    assert line(applied(queue, Add((Draft(TREE),), Origin(), Place("behind", "E1")))) == ["E1", "E3", "E2"]


def test_cancel_marks_the_running_one_and_nothing_else() -> None:
    """It is a wish that the runner fulfils; asking twice changes nothing more, and undo does not take it back."""
    queue = begun(queue_of(2), "E1")
    asked = applied(queue, Cancel("E1"), Cancel("E1"))
    now = running(asked)
    assert now is not None
    assert now.state == replace(now.state, cancelling=True)
    assert asked.history == queue.history
    assert refused(queue, Cancel("E2")).code == "not-running"
    assert refused(queue, Cancel("E9")).code == "unknown-id"
