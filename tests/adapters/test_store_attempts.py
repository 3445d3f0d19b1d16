"""What is measured, in the store: attempts, passes, requests, results, engines."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure, RefusedError
from ddconsole.core.events import Event, Warned
from ddconsole.core.experiment import Done, Failed, Origin, Outcome, Running
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import AttemptKey, Launched
from ddconsole.core.queue import Add, Draft, Hold

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


def test_an_attempt_takes_its_experiment_through_its_states(store: SqliteStore) -> None:
    """Running while it is open, done with its outcome when it is finished; a retry is the next attempt."""
    key = begun(store)
    assert key == AttemptKey("p", "E1", 1)
    assert store.queue("p").items[0].state == Running(1, NOW)
    assert store.open_attempts("p") == [key]
    store.finish_attempt(key, Outcome.PASSED, {"verdict": "coding 5/5"}, None, NOW)
    assert store.queue("p").items[0].state == Done(1, Outcome.PASSED)
    assert store.open_attempts("p") == []


def test_only_a_queued_experiment_is_begun(store: SqliteStore) -> None:
    """A held one, a running one and one that is not there are refused, and no attempt is left behind."""
    key = begun(store)
    store.edit("p", add(16))
    store.edit("p", Hold(("E2",)))
    for experiment in ("E1", "E2", "E7"):
        with pytest.raises(RefusedError):
            store.begin_attempt("p", experiment, {}, NOW)
    assert store.open_attempts("p") == [key]


def test_a_finished_attempt_stays_finished(store: SqliteStore) -> None:
    """No second result, whatever the clock says."""
    key = begun(store)
    store.finish_attempt(key, Outcome.PASSED, {}, None, NOW)
    with pytest.raises(RefusedError, match="finished already"):
        store.finish_attempt(key, Outcome.FAILED, {}, None, NOW)
    assert [item["outcome"] for item in store.results("p")] == ["passed"]


def test_a_failure_is_kept_with_its_evidence(store: SqliteStore) -> None:
    """In the experiment's state and in the result."""
    key = begun(store)
    failure = Failure("gpu-oom", "out of memory", ("CUDA out of memory",), "lower the budget", "graphs")
    store.finish_attempt(key, Outcome.FAILED, {}, failure, NOW)
    again = reopened(store)
    assert again.queue("p").items[0].state == Failed(1, failure)
    assert again.results("p")[0]["failure"] == failure.to_json()
    again.close()


def test_an_interrupted_attempt_is_recorded_and_its_experiment_waits_in_front(store: SqliteStore) -> None:
    """The next try is attempt 2 of the same id."""
    key = begun(store)
    store.edit("p", add(16))
    store.finish_attempt(key, Outcome.INTERRUPTED, {}, None, NOW)
    assert [item.id for item in store.queue("p").items] == ["E1", "E2"]
    assert store.begin_attempt("p", "E1", {}, NOW).attempt == 2
    assert [item["outcome"] for item in store.results("p")] == ["interrupted"]


def test_a_result_has_what_the_store_knows_and_what_the_runner_measured(store: SqliteStore) -> None:
    """Results come in the order in which they were finished, also when a clock was set back."""
    key = begun(store)
    store.finish_attempt(key, Outcome.WRONG, {"tau": 4.81, "tok_s_e2e": None}, None, NOW)
    other = begun(store)
    store.finish_attempt(other, Outcome.PASSED, {}, None, NOW.replace(year=2020))
    first, second = store.results("p")
    assert first == {
        "id": "E1", "attempt": 1, "outcome": "wrong", "tau": 4.81, "tok_s_e2e": None, "failure": None,
        "started_at": "2026-12-02T14:02:11.000Z", "finished_at": "2026-12-02T14:02:11.000Z",
    }  # fmt: skip
    assert (second["id"], second["finished_at"]) == ("E2", "2020-12-02T14:02:11.000Z")


def test_requests_come_back_whole_and_in_order(store: SqliteStore) -> None:
    """Text, chunk times and counts; of one pass or of all."""
    key = begun(store)
    records = [
        RequestRecord(
            prompt_id=f"q{i}", chunks=((0.5, 1), (0.75, 4)), completion_tokens=5, histogram=(0, 2), text="é\n"
        )
        for i in range(3)
    ]
    store.save_request(key, "coding", 1, records[0])
    store.save_request(key, "throughput", 1, records[1])
    store.save_request(key, "coding", 2, records[2])
    again = reopened(store)
    assert again.records(key) == records
    assert again.records(key, "coding") == [records[0], records[2]]
    again.close()


def test_finished_passes_are_known_by_name_and_repeat(store: SqliteStore) -> None:
    """A pass that is measured again after an interruption replaces its summary."""
    key = begun(store)
    store.save_pass(key, "coding", 2, {"passed": 4})
    store.save_pass(key, "coding", 1, {"passed": 5})
    store.save_pass(key, "coding", 2, {"passed": 3})
    assert store.finished_passes(key) == {"coding": [{"passed": 5}, {"passed": 3}]}


def test_what_is_not_a_number_is_never_written(store: SqliteStore) -> None:
    """A NaN is a bug of ours; the store says so instead of keeping it."""
    key = begun(store)
    with pytest.raises(ValueError, match="Out of range"):
        store.save_pass(key, "coding", 1, {"tau": float("nan")})
    assert store.finished_passes(key) == {}


def test_phase_history_is_of_finished_attempts_newest_first(store: SqliteStore) -> None:
    """At most twenty, and an open one does not count."""
    for number in range(23):
        key = begun(store)
        store.save_phase(key, "init", float(number))
        store.finish_attempt(key, Outcome.PASSED, {}, None, NOW)
    store.save_phase(begun(store), "init", 99.0)
    history = store.phase_history("p")
    assert [phases["init"] for phases in history] == [float(number) for number in range(22, 2, -1)]


def test_a_recipe_grows(store: SqliteStore) -> None:
    """Later facts are added to what was known at the start."""
    key = begun(store)
    store.update_recipe(key, {"version": "0.5.23"})
    with sqlite3.connect(store.path) as db:
        (recipe,) = db.execute("SELECT recipe FROM attempts").fetchone()
    db.close()
    assert json.loads(recipe) == {"engine": "toy", "version": "0.5.23"}


def test_an_engine_is_on_record_from_before_its_launch_until_it_is_proved_gone(store: SqliteStore) -> None:
    """A console that dies in launching leaves the name under which the host knows it."""
    key = begun(store)
    store.plan_engine(key, "p-E1-1-abcd", {"budget": 12})
    (planned,) = store.engines("p")
    assert (planned.name, planned.launched) == ("p-E1-1-abcd", None)
    launched = Launched("process", 7, 7, 1234, "boot", "token-1", "/x/engine.log", "/x", 30000)
    store.remember_engine("p-E1-1-abcd", launched)
    again = reopened(store)
    (kept,) = again.engines("p")
    assert (kept.key, kept.launched, kept.effective) == (key, launched, {"budget": 12})
    again.forget_engine("p-E1-1-abcd")
    assert again.engines("p") == []
    again.close()


def test_what_base_best_was_bound_to_is_what_runs(store: SqliteStore) -> None:
    """The experiment keeps the config that was measured."""
    store.edit("p", add(12))
    store.begin_attempt("p", "E1", {}, NOW, TREE)
    assert reopened(store).queue("p").items[0].config == TREE


def test_the_newest_events_are_kept_and_their_numbers_go_on(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A console that runs for months does not grow for ever; nobody's place in the stream is given twice."""
    monkeypatch.setattr("ddconsole.adapters.store.events.EVENTS_KEPT", 10)
    for number in range(30):
        store.append_event("p", Event(0, NOW, Warned(str(number))))
    store.append_event("q", Event(0, NOW, Warned("another profile's")))
    store.begin_run("p", "r1", 1, NOW)
    kept = store.events("p")
    assert [event.body.text for event in kept] == [str(number) for number in range(20, 30)]
    assert store.append_event("p", Event(0, NOW, Warned("next"))).seq == 31
    assert len(store.events("q")) == 1
