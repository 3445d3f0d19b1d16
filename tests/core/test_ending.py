"""What `wait` waits for: how it ended, that it goes on, or why it never will."""

import pytest
from fakes.queues import applied, begun, ended, queue_of, refused

from ddconsole.core.ending import Ending, ending
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import End, Hold, Queue, Refusal, Remove, SetPaused


def how(queue: Queue, what: str) -> Ending:
    """How it stands."""
    found = ending(queue, what)
    assert isinstance(found, Ending), found
    return found


@pytest.mark.parametrize("outcome", ["passed", "wrong", "failed", "cancelled"])
def test_an_experiment_that_ended_has_its_outcome_and_only_passed_is_good(outcome: str) -> None:
    found = how(ended(queue_of(1), "E1", outcome), "E1")
    assert (found.outcome, found.good) == (outcome, outcome == "passed")


def test_a_removed_one_has_ended_and_a_running_or_interrupted_one_has_not() -> None:
    queue = begun(queue_of(2), "E1")
    assert how(applied(queue, Remove(("E2",))), "E2").outcome == "removed"
    assert how(queue, "E1").outcome is None
    assert how(applied(queue, End("E1", 1, Outcome.INTERRUPTED)), "E1").outcome is None


def test_a_sweep_ends_with_its_last_member_and_is_as_good_as_its_worst() -> None:
    queue = ended(queue_of(3, sweep=True), "E1")
    assert how(queue, "S1").outcome is None
    queue = applied(ended(queue, "E2", "wrong"), Remove(("E3",)))
    assert (how(queue, "S1").outcome, [item.id for item in how(queue, "S1").items]) == ("wrong", ["E1", "E2"])
    assert how(applied(queue_of(2, sweep=True), Remove(("S1",))), "S1").outcome == "removed"


def test_idle_is_when_nothing_runs_and_nothing_is_going_to_start() -> None:
    queue = queue_of(2)
    assert how(queue, "idle").outcome is None
    assert how(applied(queue, Hold(("E1", "E2"))), "idle").good
    assert how(applied(queue, SetPaused(True)), "idle").good
    assert how(applied(begun(queue, "E1"), SetPaused(True)), "idle").outcome is None
    assert how(Queue(), "idle").good


def test_what_will_not_start_by_itself_is_said() -> None:
    held = how(applied(queue_of(1), Hold(("E1",))), "E1")
    assert "E1 is held" in held.stuck
    assert "paused" in how(applied(queue_of(1), SetPaused(True)), "E1").stuck
    assert how(queue_of(1), "E1").stuck == ""


def test_a_name_that_was_never_given_is_refused_as_everywhere() -> None:
    found = ending(queue_of(1), "E9")
    assert isinstance(found, Refusal)
    assert found.reason == refused(queue_of(1), Hold(("E9",))).reason
