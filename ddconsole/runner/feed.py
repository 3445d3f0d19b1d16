"""The feed: the latest value of everything that a screen may show, in bounded memory, with dirty flags.

Events go in, whoever makes them: a session in this process, the store that another process writes, or a recording.
A screen takes what is dirty a few times a second and reads the view; it never sees a queue that grows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ddconsole.core import events
from ddconsole.core.compare import compared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

LOG_LINES = 5_000
"""Lines of the engine's log kept for the screen; the whole log stays on the host."""

GPU_TICKS = 240
"""Samples a card kept for its sparkline: four minutes at one a second."""

NOTICES = 50
"""Warnings and findings kept."""


class Topic(StrEnum):
    """What can be dirty."""

    RUN = "run"
    CONNECTION = "connection"
    EXPERIMENT = "experiment"
    PHASES = "phases"
    BOOT = "boot"
    PASS = "pass"
    NOTICES = "notices"
    QUEUE = "queue"
    RESULTS = "results"
    GPU = "gpu"
    LOG = "log"


@dataclass(slots=True)
class PhaseView:
    """A phase of the running attempt. state: started, done, failed. `since` is when it began."""

    state: str
    since: datetime
    seconds: float | None = None


@dataclass(slots=True)
class PassView:
    """A pass of the running attempt: requests done of total, and the sums that its live figures come from."""

    name: str
    total: int
    repeat: int = 1
    done: int = 0
    failed: int = 0
    completion_tokens: int = 0
    verify_steps: int = 0
    e2e_s: float = 0.0
    seconds: float | None = None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def tau(self) -> float | None:
        """ΣC/ΣV so far."""
        return self.completion_tokens / self.verify_steps if self.verify_steps else None

    @property
    def tok_s_e2e(self) -> float | None:
        """ΣC/ΣE2E so far; means something at concurrency 1 alone."""
        return self.completion_tokens / self.e2e_s if self.e2e_s > 0 else None


@dataclass(slots=True)
class View:
    """What a screen may show. Read it; only the feed writes it.

    Attributes:
        running: the process that works on the queue, or None when nobody does.
        experiment: the attempt that runs, or ran last; `finished` says that it has ended, and how.
        gpu_at: when the cards were last seen; the screen says so when that is long ago.
        log_total: lines ever seen, so that a pane knows what it has missed.
    """

    running: events.RunStarted | None = None
    finished_run: events.RunFinished | None = None
    connection: events.Connection | None = None
    id: str | None = None
    attempt: int | None = None
    experiment: events.ExperimentStarted | None = None
    started_at: datetime | None = None
    phases: dict[str, PhaseView] = field(default_factory=dict)
    boot: events.BootProgressed | None = None
    ready: events.Ready | None = None
    passes: dict[str, PassView] = field(default_factory=dict)
    finished: events.ExperimentFinished | None = None
    notices: deque[tuple[datetime, events.FindingSeen | events.Warned]] = field(
        default_factory=lambda: deque(maxlen=NOTICES)
    )
    queue: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    gpu_problem: str | None = None
    gpu_at: datetime | None = None
    gpu_history: dict[int, deque[float | None]] = field(default_factory=dict)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    log_total: int = 0
    now: datetime | None = None

    @property
    def current_pass(self) -> PassView | None:
        """The pass that is being measured, or the last one."""
        return next(reversed(self.passes.values()), None)


class Feed:
    """Takes events, keeps the view, and remembers what has changed since it was last asked."""

    def __init__(self) -> None:
        self.view = View()
        self._dirty: set[Topic] = set(Topic)
        self._listeners: list[Callable[[events.Event], None]] = []

    def subscribe(self, listener: Callable[[events.Event], None]) -> Callable[[], None]:
        """Call `listener` with each event; returns what ends that. For command lines; screens poll `take_dirty`."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def take_dirty(self) -> set[Topic]:
        """The topics that changed since the last call."""
        dirty, self._dirty = self._dirty, set()
        return dirty

    def load_results(self, results: Iterable[dict[str, Any]]) -> None:
        """Set the results measured before this process began, each beside the chain that it has to beat."""
        self.view.results = compared(list(results))
        self._dirty.add(Topic.RESULTS)

    def withdraw(self, text: str) -> None:
        """Take a warning of these words back: what it said holds no longer."""
        gone = [notice for notice in self.view.notices if getattr(notice[1], "text", "") == text]
        for notice in gone:
            self.view.notices.remove(notice)
        self._dirty |= {Topic.NOTICES} if gone else set()

    def publish(self, event: events.Event) -> None:
        """Take one event into the view."""
        self.view.now = event.t
        handler = _HANDLERS.get(type(event.body))
        if handler is not None:
            self._dirty |= handler(self.view, event)
        for listener in tuple(self._listeners):
            listener(event)


def _run_started(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.RunStarted)
    view.running, view.finished_run = event.body, None
    return {Topic.RUN}


def _run_finished(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.RunFinished)
    view.running, view.finished_run = None, event.body
    return {Topic.RUN, Topic.EXPERIMENT}


def _connection(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.Connection)
    view.connection = event.body
    return {Topic.CONNECTION}


def _experiment_started(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.ExperimentStarted)
    view.id, view.attempt, view.experiment, view.started_at = event.id, event.attempt, event.body, event.t
    view.phases, view.passes = {}, {}
    view.boot = view.ready = view.finished = None
    view.notices.clear()
    return {Topic.EXPERIMENT, Topic.PHASES, Topic.BOOT, Topic.PASS, Topic.NOTICES}


def _phase(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.PhaseChanged)
    body, known = event.body, view.phases.get(event.body.phase)
    since = known.since if known is not None and body.state != "started" else event.t
    view.phases[body.phase] = PhaseView(state=body.state, since=since, seconds=body.seconds)
    return {Topic.PHASES}


def _boot(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.BootProgressed)
    view.boot = event.body
    return {Topic.BOOT}


def _ready(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.Ready)
    view.ready = event.body
    return {Topic.PHASES, Topic.BOOT, Topic.EXPERIMENT}


def _pass_started(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.PassStarted)
    body = event.body
    view.passes.pop(body.name, None)
    view.passes[body.name] = PassView(body.name, body.total, body.repeat)
    return {Topic.PASS}


def _request(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.RequestDone)
    body = event.body
    state = view.passes.get(body.name)
    if state is None:
        return set()
    state.done, state.total = body.done, body.total
    if body.record.get("error") is not None:
        state.failed += 1
    else:
        state.completion_tokens += int(body.record.get("completion_tokens") or 0)
        state.verify_steps += int(body.record.get("verify_steps") or 0)
        state.e2e_s += float(body.record.get("end_s") or 0.0)
    return {Topic.PASS}


def _pass_finished(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.PassFinished)
    state = view.passes.get(event.body.name)
    if state is not None:
        state.seconds, state.summary = event.body.seconds, event.body.summary
    return {Topic.PASS}


def _notice(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.FindingSeen | events.Warned)
    view.notices.append((event.t, event.body))
    return {Topic.NOTICES}


def _experiment_finished(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.ExperimentFinished)
    view.finished = event.body
    if event.body.result:
        key = (event.body.result.get("id"), event.body.result.get("attempt"))
        view.results = [item for item in view.results if (item.get("id"), item.get("attempt")) != key]
        view.results = compared([*view.results, event.body.result])
    return {Topic.EXPERIMENT, Topic.RESULTS, Topic.PHASES, Topic.PASS}


def _queue(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.QueueChanged)
    if event.body.revision < int(view.queue.get("revision", 0)):
        return set()
    view.queue = event.body.queue
    return {Topic.QUEUE}


def _gpu(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.GpuSampled)
    view.gpu_problem = event.body.problem
    if event.body.gpus:
        view.gpus, view.gpu_at = event.body.gpus, event.t
        for gpu in event.body.gpus:
            history = view.gpu_history.setdefault(int(gpu["index"]), deque(maxlen=GPU_TICKS))
            history.append(gpu.get("utilization_pct"))
    return {Topic.GPU}


def _log(view: View, event: events.Event) -> set[Topic]:
    assert isinstance(event.body, events.LogLines)
    view.log.extend(event.body.lines)
    view.log_total += len(event.body.lines)
    return {Topic.LOG}


_HANDLERS: dict[type[events.Body], Callable[[View, events.Event], set[Topic]]] = {
    events.RunStarted: _run_started,
    events.RunFinished: _run_finished,
    events.Connection: _connection,
    events.ExperimentStarted: _experiment_started,
    events.PhaseChanged: _phase,
    events.BootProgressed: _boot,
    events.Ready: _ready,
    events.PassStarted: _pass_started,
    events.RequestDone: _request,
    events.PassFinished: _pass_finished,
    events.FindingSeen: _notice,
    events.Warned: _notice,
    events.ExperimentFinished: _experiment_finished,
    events.QueueChanged: _queue,
    events.GpuSampled: _gpu,
    events.LogLines: _log,
}
