"""The panel of the running experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ddconsole.runner.feed import Topic
from ddconsole.tui.draw.running import running
from ddconsole.tui.facts import runs, was_reached
from ddconsole.tui.widgets.picture import Picture

if TYPE_CHECKING:
    from datetime import datetime

    from textual.content import Content

    from ddconsole.runner.feed import View


class RunningPanel(Picture):
    """What runs, how far it is, and how the last one ended."""

    topics: ClassVar = frozenset(
        {
            Topic.EXPERIMENT, Topic.PHASES, Topic.BOOT, Topic.PASS, Topic.NOTICES, Topic.CONNECTION, Topic.RUN,
            Topic.QUEUE,
        }
    )  # fmt: skip
    ticking: ClassVar = True
    BORDER_TITLE = "RUNNING"

    def lines(self, view: View, now: datetime, width: int, height: int) -> list[Content]:
        """The experiment."""
        return running(view, now, width, height)

    def show(self, view: View, now: datetime) -> None:
        """Also say on the border what the line is like, when it is not as it should be."""
        super().show(view, now)
        lost = view.connection is not None and view.connection.state == "lost"
        self.set_class(lost, "-stale")
        self.border_subtitle = "line lost: the engine goes on" if lost else self._pausing(view)
        self.border_title = "LAST" if view.finished is not None else "RUNNING" if runs(view) else "NOTHING RUNS"

    def _pausing(self, view: View) -> str:
        return "‖ paused: nothing new is started" if runs(view) and view.queue.get("paused") else ""

    def nothing(self, view: View) -> str:
        """The states before the first experiment."""
        state = view.connection.state if view.connection is not None else None
        detail = view.connection.detail if view.connection is not None else ""
        states = {item.get("state") for item in view.queue.get("items") or []}
        queued, held = "queued" in states, "held" in states
        if state == "connecting":
            return "connecting …" if not detail else f"connecting: {detail}"
        if state == "waiting":
            return f"the line {detail} (ctrl+o)"
        if state == "lost":
            return f"the line to the host is lost: {detail or 'trying again'}"
        if not was_reached(view):
            advice = view.connection.advice if view.connection is not None else ""
            return f"{detail or 'the host cannot be reached'}{f' → {advice}' if advice else ''}"
        if held and not queued:
            return "all that waits is held: space releases it"
        if view.running is not None:
            return "about to start the next experiment" if queued else "waiting for an experiment: press a to add one"
        if view.queue.get("paused"):
            return "the queue is paused: press s to go on"
        return "nothing runs: press s to start the queue" if queued else "nothing runs and nothing is queued: press a"
