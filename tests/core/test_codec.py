"""The queue as JSON: what is written down is what comes back."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from fakes.queues import NOW, TREE, applied, queue_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.codec import (
    experiment_from_json,
    experiment_to_json,
    mended,
    queue_from_json,
    queue_to_json,
    state_from_json,
)
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import (
    Cancelled,
    Done,
    Experiment,
    Failed,
    Held,
    Idea,
    Origin,
    Outcome,
    Queued,
    Removed,
    Running,
)
from ddconsole.core.queue import Add, Draft, Hold, Queue, Undo

TEXT = st.text(max_size=12)
NUMBER = st.integers(1, 5000)
TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)).map(lambda t: t.replace(tzinfo=UTC))
ARGS = st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True), TEXT, max_size=3)
CONFIGS = st.one_of(
    st.builds(lambda args: Config(Algorithm.OFF, args=tuple(sorted(args.items()))), ARGS),
    st.builds(Config, st.just(Algorithm.CHAIN), block_size=NUMBER, window=st.none() | NUMBER),
    st.builds(
        Config,
        st.just(Algorithm.TREE),
        block_size=NUMBER,
        budget=NUMBER,
        topk=st.none() | NUMBER,
        window=st.none() | NUMBER,
        args=ARGS.map(lambda args: tuple(sorted(args.items()))),
    ),
)
FAILURES = st.builds(Failure, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple), TEXT, st.none() | TEXT)
STATES = st.one_of(
    st.sampled_from([Idea(), Held(), Queued(), Removed()]),
    st.builds(Running, NUMBER, TIMES),
    st.builds(Done, NUMBER, st.sampled_from([Outcome.PASSED, Outcome.WRONG])),
    st.builds(Failed, NUMBER, FAILURES),
    st.builds(Cancelled, NUMBER),
)
EXPERIMENTS = st.builds(
    Experiment,
    id=st.just("E1"),
    config=st.none() | CONFIGS,
    state=STATES,
    created_at=TIMES,
    suite=st.sampled_from(["quick", "confirm"]),
    passes=st.lists(TEXT, max_size=3).map(tuple),
    repeats=NUMBER,
    sweep=st.none() | st.just("S1"),
    origin=st.builds(Origin, TEXT, TEXT, st.none() | TEXT),
    note=TEXT,
    author=TEXT,
    requires=st.none() | st.just("E7"),
    base_best=st.booleans(),
    revision=NUMBER,
    pinned=st.lists(TEXT, max_size=2).map(tuple),
    intent=TEXT,
)


@given(EXPERIMENTS)
@settings(max_examples=120, deadline=None)
def test_an_experiment_survives_being_written_down(experiment: Experiment) -> None:
    assert experiment_from_json(json.loads(json.dumps(experiment_to_json(experiment)))) == experiment


def test_every_field_of_an_experiment_is_generated_above() -> None:
    """A field that is added later has to be added to the codec and to the property."""
    fields = set(Experiment.__dataclass_fields__)
    assert fields == {
        *("id", "config", "state", "created_at", "suite", "passes", "repeats", "sweep", "origin", "note", "author"),
        *("requires", "base_best", "revision", "pinned", "intent"),
    }


def test_a_queue_survives_with_its_history_notice_and_counters() -> None:
    queue = applied(queue_of(3, sweep=True), Hold(("E1",)), Add((Draft(TREE),), Origin()), Undo())
    again = queue_from_json(json.loads(json.dumps(queue_to_json(queue))))
    assert again == queue
    assert applied(again, Undo()) == applied(queue, Undo())


def test_the_history_can_be_kept_elsewhere() -> None:
    queue = queue_of(2)
    data = queue_to_json(queue, with_history=False)
    assert "history" not in data
    assert queue_from_json(data) == replace(queue, history=Queue().history)


def test_fields_that_an_older_version_did_not_write_come_back_as_defaults() -> None:
    data = {"id": "E1", "state": {"name": "queued"}, "created_at": NOW.isoformat()}
    assert experiment_from_json(data) == Experiment("E1", None, Queued(), NOW)


def test_times_keep_their_offset() -> None:
    local = NOW.astimezone() + timedelta(microseconds=5)
    experiment = Experiment("E1", TREE, Queued(), local)
    assert experiment_from_json(experiment_to_json(experiment)).created_at.isoformat() == local.isoformat()


@pytest.mark.parametrize("data", [{"name": "asleep", "attempt": 1}, {"name": "done", "attempt": 1, "outcome": "odd"}])
def test_a_state_that_there_is_not_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"asleep|odd"):
        state_from_json(data)


def test_an_entry_copied_by_hand_gets_an_id_of_its_own_and_the_notice_says_so() -> None:
    queue = queue_of(2)
    copied = replace(queue, items=(*queue.items, queue.items[0]), next_experiment=1)
    fixed = mended(copied)
    assert [item.id for item in fixed.items] == ["E1", "E2", "E3"]
    assert fixed.next_experiment == 4
    assert fixed.notice == "E1 was there twice; the second is E3 now"
    assert mended(fixed) == fixed
