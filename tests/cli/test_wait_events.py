"""`wait` and `events`: what scripts and assistants stand on."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.paths import Paths
from ddconsole.adapters.profile_file import load_profile
from ddconsole.adapters.run_lock import run_lock
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli import watching
from ddconsole.cli.events import Tail
from ddconsole.core.errors import Failure
from ddconsole.core.events import BootProgressed, Event, GpuSampled, LogLines, RunStarted, Warned
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import Hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.events import Body

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)


def ended(store: SqliteStore, id_: str, outcome: Outcome) -> None:
    """An attempt from its begin to its end."""
    key = store.begin_attempt("demo", id_, {}, NOW)
    failure = Failure("gpu-oom", "it did not fit") if outcome is Outcome.FAILED else None
    store.finish_attempt(key, outcome, {"verdict": f"{outcome.value}: as told"}, failure, NOW)


@pytest.fixture
def seeded(ddconsole: Callable[..., Any], store: SqliteStore) -> SqliteStore:
    """The demo's queue: E1, E2, E3."""
    ddconsole("queue", "demo", "list")
    return store


# --- wait


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "soon"])
def test_a_time_that_is_no_time_is_refused(ddconsole: Callable[..., Any], seeded: SqliteStore, seconds: str) -> None:
    """`nan` compares with nothing: it would wait for ever, or not at all."""
    refused = ddconsole("wait", "demo", "idle", "--timeout", seconds)
    assert (refused.code, "--timeout" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("outcome", "code"), [(Outcome.PASSED, 0), (Outcome.WRONG, 1), (Outcome.FAILED, 1), (Outcome.CANCELLED, 1)]
)
def test_wait_answers_with_how_it_ended(
    ddconsole: Callable[..., Any], seeded: SqliteStore, outcome: Outcome, code: int
) -> None:
    """At once when that was before; with the verdict, for people and for scripts."""
    ended(seeded, "E1", outcome)
    answer = ddconsole("wait", "demo", "e1", "--json")
    assert (answer.code, answer.json["outcome"]) == (code, outcome.value)
    assert answer.json["items"][0]["verdict"] == f"{outcome.value}: as told"
    assert f"{outcome.value}: as told" in ddconsole("wait", "demo", "E1").out


def test_wait_goes_on_until_another_process_ends_it(ddconsole: Callable[..., Any], seeded: SqliteStore) -> None:
    """It sees the end within a look."""
    key = seeded.begin_attempt("demo", "E1", {}, NOW)
    waiting = threading.Event()
    real = watching.changes

    def changes(*args: Any, **kwargs: Any) -> Any:
        for look in real(*args, **kwargs):
            yield look
            waiting.set()

    def end() -> None:
        assert waiting.wait(10)
        other = SqliteStore(seeded.path)
        other.finish_attempt(key, Outcome.PASSED, {}, None, NOW)
        other.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "changes", changes)
        thread = threading.Thread(target=end)
        thread.start()
        answer = ddconsole("wait", "demo", "E1", "--timeout", "20", "--json")
        thread.join()
    assert (answer.code, answer.json["outcome"]) == (0, "passed")


def test_wait_for_a_sweep_and_for_idle(ddconsole: Callable[..., Any], seeded: SqliteStore) -> None:
    """A sweep passes when all of it does; idle is no verdict."""
    ddconsole("queue", "demo", "remove", "E1", "E2", "E3")
    ddconsole("queue", "demo", "sweep", "b=16", "B=40,44")
    for id_, outcome in (("E4", Outcome.PASSED), ("E5", Outcome.FAILED)):
        assert ddconsole("wait", "demo", "S1", "--timeout", "0", "--json").json["outcome"] == "timeout"
        ended(seeded, id_, outcome)
    assert (ddconsole("wait", "demo", "S1").code, ddconsole("wait", "demo", "idle").code) == (1, 0)


def test_when_the_time_is_up_it_says_so_and_why_it_would_never_end(
    ddconsole: Callable[..., Any], seeded: SqliteStore
) -> None:
    """Exit code 1, with a text that tells it from a failure."""
    seeded.edit("demo", Hold(("E2",)))
    answer = ddconsole("wait", "demo", "E2", "--timeout", "0")
    assert answer.code == 1
    assert "waiting: E2 is held" in answer.err
    assert "E2 has not ended within 0 s; it goes on" in answer.err


def test_a_queue_that_nobody_runs_is_said_once_with_the_remedy(
    ddconsole: Callable[..., Any], seeded: SqliteStore
) -> None:
    """For an experiment and for idle; somebody may start it yet, so it goes on waiting."""
    for what in ("E1", "idle", "IDLE"):
        answer = ddconsole("wait", "demo", what, "--timeout", "0.6")
        assert answer.code == 1
        assert answer.err.count("no ddconsole runs this queue, so nothing of it starts") == 1
        assert "start it with: ddconsole run demo" in answer.err


def test_a_runner_that_is_killed_while_one_waits_is_noticed(ddconsole: Callable[..., Any], seeded: SqliteStore) -> None:
    """It writes nothing when it dies; its lock goes with it."""
    lock = run_lock(Paths.from_environment().state, "demo")
    lock.acquire()
    looks = iter([True, True, False])
    seen = watching.changes(seeded, time.monotonic() + 5, lambda: next(looks), sleep=lambda seconds: None)
    assert [next(seen), next(seen)] == [True, False]
    assert "no ddconsole runs" not in ddconsole("wait", "demo", "idle", "--timeout", "0").err
    lock.release()
    assert "no ddconsole runs" in ddconsole("wait", "demo", "idle", "--timeout", "0").err


def test_there_is_nothing_to_wait_for_under_an_unknown_name(ddconsole: Callable[..., Any]) -> None:
    """Bad usage, not a failure."""
    assert ddconsole("wait", "demo", "E99", "--json").json["error"]["what"].startswith("E99 is not in this queue")
    assert ddconsole("wait", "demo", "S9").code == 2


def test_a_look_costs_nothing_while_nothing_changes_and_ends_at_the_deadline(seeded: SqliteStore) -> None:
    """Also when somebody writes all the time."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        other = SqliteStore(seeded.path)
        other.append_event("demo", Event(0, NOW, Warned("x")))
        other.close()

    looks = sum(1 for _ in watching.changes(seeded, time.monotonic() + 0.02, sleep=sleep))
    assert looks == len(slept) + 1
    assert all(seconds <= 0.02 for seconds in slept)


# --- events


def happened(store: SqliteStore, *bodies: Body) -> None:
    """Written as the runner writes them."""
    for number, body in enumerate(bodies):
        store.append_event("demo", Event(0, NOW + timedelta(seconds=number), body, "E1", 1))


def kinds(answer: Any) -> list[str]:
    """Kinds of the JSON lines."""
    return [json.loads(line)["kind"] for line in answer.out.splitlines()]


def test_events_are_json_lines_since_the_last_run_began(ddconsole: Callable[..., Any], seeded: SqliteStore) -> None:
    """Or behind a number; what replaces itself only on request."""
    happened(seeded, Warned("before"), RunStarted("demo", 1), Warned("in it"), GpuSampled([]), LogLines(["a line"]))
    assert kinds(ddconsole("events", "demo", "--json")) == ["run_started", "warning"]
    assert kinds(ddconsole("events", "demo", "--json", "--after", "0")) == ["warning", "run_started", "warning"]
    assert kinds(ddconsole("events", "demo", "--json", "--after", "3", "--with", "gpu,log")) == ["gpu", "log"]
    (line,) = ddconsole("events", "demo", "--json", "--after", "2").out.splitlines()
    assert {"v": 1, "seq": 3, "kind": "warning", "id": "E1", "attempt": 1, "text": "in it"}.items() <= json.loads(
        line
    ).items()


def test_events_for_people_are_short_lines_without_escapes(ddconsole: Callable[..., Any], seeded: SqliteStore) -> None:
    """Text from the host is data."""
    happened(seeded, Warned("a \x1b[31mred\x1b[0m warning " + "x" * 500))
    (line,) = ddconsole("events", "demo", "--after", "0").out.splitlines()
    assert ("E1" in line, "red" in line, "\x1b" in line, len(line)) == (True, True, False, 160)


def test_an_unknown_kind_is_refused(ddconsole: Callable[..., Any]) -> None:
    """With what there is."""
    answer = ddconsole("events", "demo", "--with", "gpus")
    assert (answer.code, "--with takes gpu, log; not gpus" in answer.err) == (2, True)


def test_following_shows_each_event_once_and_the_queue_after_every_edit(seeded: SqliteStore) -> None:
    """Whichever process wrote it; progress as it comes, gpu and log only on request."""
    other = SqliteStore(seeded.path)
    happened(other, RunStarted("demo", 1))
    turns = iter(
        [
            lambda: happened(other, Warned("new"), BootProgressed("load_target"), GpuSampled([])),
            lambda: other.edit("demo", Hold(("E2",))),
            lambda: happened(other, BootProgressed("load_target")),  # the same time again: nothing new
            lambda: happened(other, Warned("last")),
        ]
    )
    tail = Tail(seeded, load_profile("demo"), None, frozenset())
    seen: list[Event] = []
    for event in tail.follow(sleep=lambda _: next(turns)()):
        seen.append(event)
        if event.body == Warned("last"):
            break
    other.close()
    assert [event.body.kind for event in seen] == [
        "queue_changed", "run_started", "warning", "boot_progress", "queue_changed", "boot_progress", "warning",
    ]  # fmt: skip
    states = {item["id"]: item["state"] for item in seen[4].body.queue["items"]}  # type: ignore[attr-defined]
    assert states["E2"] == "held"
