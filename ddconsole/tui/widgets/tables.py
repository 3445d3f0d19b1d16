"""The queue and the results as panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ddconsole.runner.feed import Topic
from ddconsole.tui.draw.rows import QUEUE_LAYOUTS, RESULT_LAYOUTS, queue_rows, result_rows
from ddconsole.tui.widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual import events

    from ddconsole.runner.feed import View

ADVANCES = "the queue advances while this console is connected"
BORDER = 4
"""Cells of a border that a text on it cannot have."""

ADVANCES_SHORT = "advances while connected"


EDITABLE = ("queued", "held", "idea")
"""States of what can be edited; the cursor begins there."""


class QueueTable(Table):
    """What runs and what waits."""

    topics: ClassVar = frozenset({Topic.QUEUE, Topic.RUN})
    BORDER_TITLE = "QUEUE"

    def __init__(self, owns_run: Callable[[], bool]) -> None:
        super().__init__(QUEUE_LAYOUTS, id="queue", empty="nothing queued: press a to add")
        self._owns_run = owns_run
        self._items: dict[str, dict[str, Any]] = {}

    @property
    def selected_item(self) -> dict[str, Any] | None:
        """The item of the queue's document under the cursor."""
        return self._items.get(self.selected or "")

    def show(self, view: View, now: datetime) -> None:
        """Take the queue in."""
        self._items = {str(item.get("id")): item for item in view.queue.get("items") or []}
        first = self.selected is None
        self.show_rows(queue_rows(view))
        if first:
            self.pick(next((id_ for id_, item in self._items.items() if item.get("state") in EDITABLE), ""))
        waiting = sum(item.get("state") == "queued" for item in self._items.values())
        self.border_title = f"QUEUE {waiting}" if waiting else "QUEUE"
        self.border_subtitle = self._say(view)

    def _say(self, view: View) -> str:
        if view.queue.get("paused"):
            return "‖ paused: s goes on"
        if view.running is None:
            return "not started: s starts it" if self._items else ""
        if not self._owns_run():
            return f"run by process {view.running.pid}"
        return ADVANCES if self.size.width >= len(ADVANCES) + BORDER else ADVANCES_SHORT


class ResultTable(Table):
    """What was measured, newest first."""

    topics: ClassVar = frozenset({Topic.RESULTS})
    STAYS_ON_TOP = True
    BORDER_TITLE = "RESULTS"

    def __init__(self, remark: str = "", short_remark: str = "") -> None:
        super().__init__(RESULT_LAYOUTS, id="results", empty="no results yet")
        self._remarks = (remark, short_remark)

    def on_resize(self, _: events.Resize) -> None:
        """The fuller of the two remarks that fits."""
        full, short = self._remarks
        self.border_subtitle = full if self.size.width >= len(full) + BORDER else short

    def show(self, view: View, now: datetime) -> None:
        """Take the results in."""
        self.show_rows(result_rows(view))
        self.border_title = f"RESULTS {len(view.results)}" if view.results else "RESULTS"
