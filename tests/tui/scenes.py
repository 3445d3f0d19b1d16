"""The six states of the dashboard as cut points in a recording, for snapshots and screenshots."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, timedelta
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui.story import TRAINED, queue_item, tree

from ddconsole.core import events
from ddconsole.core.events import utc_text
from ddconsole.runner.feed import View
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import DEMO_REMARK, DEMO_REMARK_SHORT, ProfileFacts
from ddconsole.tui.replay import ReplayController, read_events

RECORDING = Path(__file__).resolve().parents[1] / "data" / "recording.jsonl"
"""A whole run of the demo, as `make recording` makes it."""

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


@cache
def recorded() -> tuple[events.Event, ...]:
    """The events to replay."""
    return tuple(read_events(RECORDING))


def connecting(controller: ReplayController) -> None:
    """The line to the host is being built; the queue is known already."""
    controller.play_until(lambda view: bool(view.queue))
    _append(controller, events.Connection("connecting"))


def loading(controller: ReplayController) -> None:
    """The weights of the last experiment are about two thirds there."""
    controller.play_until(_loaded(0.65))
    _queued_meanwhile(controller)


def measuring(controller: ReplayController) -> None:
    """Half of the throughput pass is measured."""
    controller.play_until(
        lambda view: _later(view) and view.current_pass is not None and view.current_pass.name == "throughput"
        and view.current_pass.done >= view.current_pass.total // 2
    )  # fmt: skip
    _queued_meanwhile(controller)


def failed(controller: ReplayController) -> None:
    """The boot failed: what, evidence, advice."""
    controller.play_until(lambda view: _later(view) and "graphs" in view.phases)
    _queued_meanwhile(controller)
    _append(controller, events.PhaseChanged("graphs", "failed", 12.0))
    _append(controller, events.LogLines([*FAILURE["evidence"]]))
    _append(controller, events.ExperimentFinished("failed", "failed: gpu-oom", dict(FAILURE)))
    view = controller.feed.view
    _show_queue(controller, [item for item in view.queue["items"] if item["id"] != view.id], running=None)


def idle(controller: ReplayController) -> None:
    """The queue is drained; the line still stands."""
    controller.play_until(lambda view: view.finished_run is not None)


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
    """The last experiment of the run: there are results to compare it with."""
    return view.experiment is not None and view.finished is None and len(view.results) == 2


def _loaded(fraction: float) -> Callable[[View], bool]:
    def reached(view: View) -> bool:
        target = view.boot.target if view.boot is not None else None
        return _later(view) and target is not None and target["done"] >= fraction * (target["total"] or 1)

    return reached


def _queued_meanwhile(controller: ReplayController) -> None:
    """What is running now is the last of the recorded run; somebody has thought of more since."""
    items = controller.feed.view.queue["items"]
    number = max(int(item["id"][1:]) for item in items) + 1
    more = [
        queue_item(f"E{number}", tree(16, 34), sweep="S1", findings=[TRAINED]),
        queue_item(f"E{number + 1}", tree(16, 52), sweep="S1", findings=[TRAINED], repeats=2),
        queue_item(f"E{number + 2}", tree(8, 32), "held", note="only if E1 beats the chain"),
        queue_item(f"E{number + 3}", None, "idea", note="a drafter trained at 16?"),
    ]
    _show_queue(controller, [*items, *more])


def _show_queue(controller: ReplayController, items: list[dict[str, Any]], **more: Any) -> None:
    queue = controller.feed.view.queue
    revision = queue["revision"] + 1
    ends = utc_text(controller.now() + timedelta(seconds=sum(item["estimate_s"] or 0 for item in items)))
    document = queue | {"items": items, "revision": revision, "ends_at": ends} | more
    _append(controller, events.QueueChanged(revision, document))


def _append(controller: ReplayController, body: events.Body) -> None:
    view = controller.feed.view
    event = events.Event(0, controller.now(), body, id=view.id, attempt=view.attempt)
    controller.feed.publish(event)
