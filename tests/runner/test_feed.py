"""The feed keeps the latest of everything in bounded memory, and says what changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ddconsole.core import events
from ddconsole.runner.feed import GPU_TICKS, LOG_LINES, Feed, Topic

T0 = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)


def event(body: events.Body, seconds: float = 0.0) -> events.Event:
    return events.Event(1, T0 + timedelta(seconds=seconds), body, "E1", 1)


def started() -> events.ExperimentStarted:
    return events.ExperimentStarted("tree b 8 B 12", {}, {}, ["coding"], 480.0)


def request(done: int, tokens: int, steps: int, seconds: float, error: str | None = None) -> events.RequestDone:
    record = {"completion_tokens": tokens, "verify_steps": steps, "end_s": seconds, "error": error}
    return events.RequestDone("coding", done, 5, record)


def test_everything_is_dirty_at_first_and_nothing_after_it_was_taken() -> None:
    """A screen that opens draws all of itself once."""
    feed = Feed()
    assert feed.take_dirty() == set(Topic)
    assert feed.take_dirty() == set()


def test_an_event_dirties_its_topics_only() -> None:
    """A GPU sample does not repaint the queue."""
    feed = Feed()
    feed.take_dirty()
    feed.publish(event(events.GpuSampled([{"index": 0, "utilization_pct": 92.0}])))
    assert feed.take_dirty() == {Topic.GPU}


def test_a_flood_of_lines_stays_bounded() -> None:
    """The feed never grows, and still knows how many lines there were."""
    feed = Feed()
    for n in range(50):
        feed.publish(event(events.LogLines([f"line {n}-{i}" for i in range(1000)])))
    assert len(feed.view.log) == LOG_LINES
    assert feed.view.log_total == 50_000
    assert feed.view.log[-1] == "line 49-999"


def test_gpu_history_is_bounded_and_keeps_unknowns() -> None:
    """A reading that is missing is a gap in the sparkline, not a zero."""
    feed = Feed()
    for n in range(GPU_TICKS + 10):
        feed.publish(event(events.GpuSampled([{"index": 3, "utilization_pct": None if n % 2 else 50.0}])))
    history = feed.view.gpu_history[3]
    assert len(history) == GPU_TICKS
    assert set(history) == {None, 50.0}


def test_a_problem_keeps_the_last_samples() -> None:
    """Cards that were seen are shown stale beside the reason, not wiped."""
    feed = Feed()
    feed.publish(event(events.GpuSampled([{"index": 0, "utilization_pct": 1.0}])))
    feed.publish(event(events.GpuSampled([], "driver mismatch"), 5))
    assert feed.view.gpus
    assert feed.view.gpu_problem == "driver mismatch"
    assert feed.view.gpu_at == T0


def test_a_pass_shows_its_pooled_tau_and_skips_failed_requests() -> None:
    """τ is ΣC/ΣV of the requests that count, never a mean of means."""
    feed = Feed()
    feed.publish(event(started()))
    feed.publish(event(events.PassStarted("coding", 5)))
    feed.publish(event(request(1, 481, 100, 3.2)))
    feed.publish(event(request(2, 100, 50, 1.0)))
    feed.publish(event(request(3, 999, 1, 9.0, error="cut")))
    state = feed.view.current_pass
    assert state is not None
    assert state.tau == pytest.approx(581 / 150)
    assert state.tok_s_e2e == pytest.approx(581 / 4.2)
    assert (state.done, state.failed) == (3, 1)


def test_a_new_experiment_clears_what_belonged_to_the_last() -> None:
    """No number of the last config stands beside the next one."""
    feed = Feed()
    feed.publish(event(started()))
    feed.publish(event(events.PhaseChanged("load_target", "done", 361.0)))
    feed.publish(event(events.PassStarted("coding", 5)))
    feed.publish(event(events.Ready(400.0, ["port"], [])))
    feed.publish(event(started()))
    view = feed.view
    assert (view.phases, view.passes, view.ready, view.boot, view.finished) == ({}, {}, None, None, None)


def test_a_phase_keeps_when_it_began() -> None:
    """Its end carries the measured seconds; its beginning stays."""
    feed = Feed()
    feed.publish(event(events.PhaseChanged("graphs", "started"), 10))
    feed.publish(event(events.PhaseChanged("graphs", "done", 40.0), 50))
    phase = feed.view.phases["graphs"]
    assert (phase.state, phase.seconds, phase.since) == ("done", 40.0, T0 + timedelta(seconds=10))


def test_a_result_replaces_the_one_of_the_same_attempt() -> None:
    """Events read twice, from the store and from this process, make one row."""
    feed = Feed()
    feed.load_results([{"id": "E1", "attempt": 1, "tau": 4.0}])
    feed.publish(event(events.ExperimentFinished("passed", "…", None, {"id": "E1", "attempt": 1, "tau": 4.81})))
    feed.publish(event(events.ExperimentFinished("passed", "…", None, {"id": "E1", "attempt": 2, "tau": 4.7})))
    assert [(r["attempt"], r["tau"]) for r in feed.view.results] == [(1, 4.81), (2, 4.7)]


def test_an_older_queue_never_replaces_a_newer_one() -> None:
    """Two sources may tell of the queue; the higher revision stands."""
    feed = Feed()
    feed.publish(event(events.QueueChanged(5, {"revision": 5})))
    feed.publish(event(events.QueueChanged(4, {"revision": 4})))
    assert feed.view.queue == {"revision": 5}


def test_listeners_hear_every_event_until_they_leave() -> None:
    """Command lines get the whole stream."""
    feed, heard = Feed(), []
    leave = feed.subscribe(heard.append)
    feed.publish(event(events.Warned("one")))
    leave()
    feed.publish(event(events.Warned("two")))
    assert [e.body for e in heard] == [events.Warned("one")]
