"""The six states of the dashboard as cut points in a recording, for snapshots and screenshots."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui.story import tell_session

from ddconsole.core import events
from ddconsole.runner.feed import View
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import DEMO_REMARK, DEMO_REMARK_SHORT, ProfileFacts
from ddconsole.tui.replay import ReplayController, read_events

RECORDING: Path | None = None
"""A recording made by the demo host; None tells the story of `story.py` instead."""

FAILURE = {
    "cause": "gpu-oom",
    "what": "A card ran out of memory while CUDA graphs were captured.",
    "evidence": [
        "[14:10:07 TP3] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB",
        "[14:10:07 TP3] Capture CUDA graph failed: CUDA out of memory",
    ],
    "advice": "Lower --mem-fraction-static below 0.85, or capture fewer batch sizes with --cuda-graph-max-bs.",
    "phase": "graphs",
}


def recorded() -> list[events.Event]:
    """The events to replay."""
    return read_events(RECORDING) if RECORDING is not None else tell_session()


def connecting(controller: ReplayController) -> None:
    """The line to the host is being built; the queue is known already."""
    controller.play_until(lambda view: bool(view.queue))


def loading(controller: ReplayController) -> None:
    """The weights of the last experiment are about two thirds there."""
    controller.play_until(_loaded(0.65))


def measuring(controller: ReplayController) -> None:
    """Half of the throughput pass is measured."""
    controller.play_until(
        lambda view: _later(view) and view.current_pass is not None and view.current_pass.name == "throughput"
        and view.current_pass.done >= view.current_pass.total // 2
    )  # fmt: skip


def failed(controller: ReplayController) -> None:
    """The boot failed: what, evidence, advice."""
    controller.play_until(lambda view: _later(view) and "graphs" in view.phases)
    _append(controller, events.PhaseChanged("graphs", "failed", 12.0))
    _append(controller, events.LogLines([*FAILURE["evidence"]]))
    _append(controller, events.ExperimentFinished("failed", "failed: gpu-oom", dict(FAILURE)))
    view = controller.feed.view
    left = [item for item in view.queue["items"] if item["id"] != view.id]
    revision = view.queue["revision"] + 1
    document = view.queue | {"items": left, "revision": revision, "running": None}
    _append(controller, events.QueueChanged(revision, document))


def idle(controller: ReplayController) -> None:
    """The queue is drained."""
    controller.play_until(lambda view: view.finished_run is not None)
    controller.play_until(lambda view: False)


def disconnected(controller: ReplayController) -> None:
    """The line broke while a pass was measured."""
    measuring(controller)
    _append(controller, events.Connection("lost", detail="no answer for 45 s; trying again in 8 s"))


SCENES: dict[str, Callable[[ReplayController], None]] = {
    "connecting": connecting,
    "loading": loading,
    "measuring": measuring,
    "failed": failed,
    "idle": idle,
    "disconnected": disconnected,
}

SIZES = ((120, 40), (80, 24), (40, 20))


def app_at(scene: str) -> ConsoleApp:
    """The console at a scene; nothing in it depends on the clock, the host or the terminal."""
    controller = ReplayController(recorded(), "demo")
    SCENES[scene](controller)
    facts = ProfileFacts(remark=DEMO_REMARK, short_remark=DEMO_REMARK_SHORT)
    return ConsoleApp(controller, facts, now=controller.now, zone=UTC, guarded=False)


def _later(view: View) -> bool:
    """An experiment that has results before it."""
    return view.experiment is not None and view.finished is None and bool(view.results)


def _loaded(fraction: float) -> Callable[[View], bool]:
    def reached(view: View) -> bool:
        target = view.boot.target if view.boot is not None else None
        return _later(view) and target is not None and target["done"] >= fraction * (target["total"] or 1)

    return reached


def _append(controller: ReplayController, body: events.Body) -> None:
    view = controller.feed.view
    event = events.Event(0, controller.now(), body, id=view.id, attempt=view.attempt)
    controller.feed.publish(event)
