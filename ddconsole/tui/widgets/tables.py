"""The queue and the results as panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ddconsole.runner.feed import Topic
from ddconsole.tui.draw.rows import QUEUE_LAYOUTS, RESULT_LAYOUTS, WAITING, QueueRows, result_rows
from ddconsole.tui.facts import was_reached
from ddconsole.tui.widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual import events

    from ddconsole.runner.feed import View
    from ddconsole.tui.draw.rows import Row

ADVANCES = "the queue advances while this console is connected"
BORDER = 4
"""Cells of a border that a text on it cannot have."""

ADVANCES_SHORT = "advances while connected"


NOTHING = "nothing queued: press a to add"

EDITABLE = ("queued", "held", "idea")
"""States of what can be edited; the cursor begins there."""


class QueueTable(Table):
    """What runs and what waits."""

    topics: ClassVar = frozenset({Topic.QUEUE, Topic.RUN})
    BORDER_TITLE = "QUEUE"

    def __init__(self, owns_run: Callable[[], bool]) -> None:
        super().__init__(QUEUE_LAYOUTS, id="queue", empty=NOTHING)
        self._owns_run = owns_run
        self._view: View | None = None
        self._items: dict[str, dict[str, Any]] = {}
        self._words = ""
        self._made = QueueRows()
        self._wanted = ""
        self._touched = False

    @property
    def words(self) -> str:
        """What the rows are narrowed to."""
        return self._words

    def item(self, id_: str) -> dict[str, Any]:
        """An item of the queue's document; empty when it is gone."""
        return self._items.get(id_, {})

    def has(self, id_: str) -> bool:
        """It waits or runs, whether it is in sight or not."""
        return self.item(id_).get("state") in WAITING

    def narrow(self, words: str) -> None:
        """Show only rows that have all of these words; all rows again when there are none."""
        self._words = words.strip()
        if self._view is not None:
            self._show_queue(self._view)

    def want(self, id_: str) -> None:
        """Put the cursor on it as soon as it is there."""
        self._wanted = id_
        self._go_to_wanted()

    def _go_to_wanted(self) -> None:
        if self._wanted and any(row.id == self._wanted for row in self._rows):
            self.pick(self._wanted)
            self._wanted = ""
            self.stay()

    def stay(self) -> None:
        """Somebody works with the selected one: the cursor no longer goes along with what can be edited."""
        self._touched = True

    def action_step(self, by: int) -> None:
        """Move the cursor by rows."""
        self.stay()
        super().action_step(by)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on a row."""
        self.stay()
        super().on_click(event)

    @property
    def selected_item(self) -> dict[str, Any] | None:
        """The item of the queue's document under the cursor."""
        return self._items.get(self.selected or "")

    def show(self, view: View, now: datetime) -> None:
        """Take the queue in; marks stay on what can still be edited."""
        self._view = view
        self._show_queue(view)

    def _show_queue(self, view: View) -> None:
        self._items = {str(item.get("id")): item for item in view.queue.get("items") or []}
        rows = [row for row in self._made.of(view) if not self._words or matches(row, self._words)]
        self.show_rows(rows, empty=f"nothing here has {self._words}" if self._words else NOTHING)
        self.mark(frozenset(id_ for id_ in self.marked if self._items[id_].get("state") in EDITABLE))
        if not self._touched:
            self.pick(next((id_ for id_, item in self._items.items() if item.get("state") in EDITABLE), ""))
        self._go_to_wanted()
        waiting = sum(item.get("state") == "queued" for item in self._items.values())
        title = f"QUEUE {waiting}" if waiting else "QUEUE"
        self.border_title = f"{title} · /{self._words}" if self._words else title
        self.border_subtitle = self._say(view)

    def _say(self, view: View) -> str:
        if view.queue.get("paused"):
            return "‖ paused: s goes on"
        if self._owns_run() and not was_reached(view):
            return "host not reached: nothing starts"
        if view.running is None:
            return "not started: s starts it" if self._rows else ""
        if not self._owns_run():
            return f"run by process {view.running.pid}"
        return ADVANCES if self.size.width >= len(ADVANCES) + BORDER else ADVANCES_SHORT


def matches(row: Row, words: str) -> bool:
    """The row has all of the words somewhere; `b16` and `B26` mean these columns."""
    knobs = [f"{key}{cell.plain}" for key, cell in row.cells.items() if len(key) == 1]
    text = [cell.plain.lower() for cell in row.cells.values()]
    text += [row.text.plain.lower()] if row.text is not None else []
    return all(
        any(knob.startswith(word) for knob in knobs) or any(word.lower() in part for part in text)
        for word in words.split()
    )


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
