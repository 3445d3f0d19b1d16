"""What an edit of a queue of 1,000 costs on the screen: from the key to the painted frame, beside a bare DataTable.

    python -m tests.benchmarks.bench_screen [--experiments 1000] [--edits 30]

Ours is the whole way: key, rules, a durable write of SQLite, the queue's document, rows, frame. The bare one is a
DataTable of as many rows in which a key changes one cell and which paints that. Both run in this process, in turns,
with a driver that takes every frame and shows it to nobody. The ratio is what all that makes a queue adds to a table.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Key
from textual.widgets import DataTable, Input, Static

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft
from ddconsole.tui.burst import PATIENCE_S
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.tables import QueueTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from textual.app import ComposeResult

    from ddconsole.tui.app import ConsoleApp

PROFILE = "demo"
SIZE = (120, 40)
DEADLINE_S = 20.0


class PaintDriver(HeadlessDriver):
    """Takes frames as a terminal would, so that they are rendered to the last byte.

    `painted` is set, and `at` is when, by the first frame that is painted while `reached` holds.
    """

    painted: ClassVar[asyncio.Event]
    reached: ClassVar[Callable[[], bool]]
    at: ClassVar[float] = 0.0

    @property
    def is_headless(self) -> bool:
        """Not so: frames are wanted."""
        return False

    def write(self, data: str) -> None:
        """A piece of a frame."""
        kind = type(self)
        if not kind.painted.is_set() and kind.reached():
            kind.at = time.perf_counter()
            kind.painted.set()


class BareTable(App[None]):
    """A DataTable and nothing else: a key changes one cell."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "change")]

    def __init__(self, rows: int, **more: Any) -> None:
        super().__init__(**more)
        self._rows = rows
        self.changed = 0

    def compose(self) -> ComposeResult:
        """As many rows and columns as the queue has."""
        table: DataTable[str] = DataTable(cursor_type="row")
        columns = table.add_columns("id", "algorithm", "b", "B", "K", "W", "notes", "est.")
        for number in range(self._rows):
            table.add_row(f"E{number}", "tree", "8", str(8 + number), "6", "2048", "", "9 min", key=f"E{number}")
        self._notes = columns[6]
        yield table

    def action_change(self) -> None:
        """Another word in the row under the cursor."""
        table = self.query_one(DataTable)
        self.changed += 1
        row = f"E{table.cursor_row}"
        table.update_cell(row, self._notes, f"‖ held {self.changed}")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, medians in milliseconds. `waits_ms` is what the key waits on purpose."""

    name: str
    ours_ms: float
    bare_ms: float
    waits_ms: float = 0.0

    @property
    def ratio(self) -> float:
        """Ours over the bare update."""
        return (self.ours_ms - self.waits_ms) / self.bare_ms


async def until_painted(reached: Callable[[], bool]) -> float:
    """Until a frame is painted that was drawn when `reached` held; when that was."""
    PaintDriver.reached = staticmethod(reached)
    PaintDriver.painted.clear()
    async with asyncio.timeout(DEADLINE_S):
        await PaintDriver.painted.wait()
    return PaintDriver.at


async def timed(app: App[Any], key: str, reached: Callable[[], bool]) -> float:
    """Milliseconds from the key to the frame."""
    begin = time.perf_counter()
    app.post_message(Key(key, key if len(key) == 1 else None))
    return (await until_painted(reached) - begin) * 1000


@contextlib.asynccontextmanager
async def running(app: App[Any]) -> AsyncIterator[None]:
    """The app with its first frames behind it."""
    ready = asyncio.Event()
    app.driver_class = PaintDriver
    task = asyncio.create_task(app.run_async(size=SIZE))
    app.call_later(ready.set)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await ready.wait()
        yield
    finally:
        app.exit()
        await task


class Ours:
    """The console on a real store, and one edit of each kind by its keys."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self.table = app.get_screen("dashboard").query_one(QueueTable)

    def state(self, id_: str) -> str:
        """The state that is on the screen."""
        return str(self.table.item(id_).get("state"))

    def place(self, id_: str) -> int:
        """The row that it is in."""
        return next((place for place, row in enumerate(self.table._rows) if row.id == id_), -1)

    async def hold(self) -> float:
        """Space, on the selected one; and back."""
        id_ = self.table.selected or ""
        taken = await timed(self._app, "space", lambda: self.state(id_) == "held")
        await timed(self._app, "space", lambda: self.state(id_) == "queued")
        return taken

    async def move(self) -> float:
        """J."""
        id_ = self.table.selected or ""
        before = self.place(id_)
        return await timed(self._app, "J", lambda: self.place(id_) == before + 1)

    async def remove(self) -> float:
        """x, and back by u."""
        id_ = self.table.selected or ""
        taken = await timed(self._app, "x", lambda: self.place(id_) < 0)
        await timed(self._app, "u", lambda: self.place(id_) >= 0)
        return taken

    async def undo(self) -> float:
        """u, of a hold."""
        id_ = self.table.selected or ""
        await timed(self._app, "space", lambda: self.state(id_) == "held")
        return await timed(self._app, "u", lambda: self.state(id_) == "queued")

    async def add(self) -> float:
        """Enter in the form of a copy with another window; and back by u."""
        count = len(self.table._rows)
        await timed(self._app, "d", lambda: isinstance(self._app.screen, QueueForm))
        form = self._app.screen
        work = form.query_one("#work", Static)
        form.query_one("#window", Input).value = "4096"
        await until_painted(lambda: "starts an engine" in str(work.render()))
        taken = await timed(self._app, "enter", lambda: len(self.table._rows) == count + 1)
        await timed(self._app, "u", lambda: len(self.table._rows) == count)
        return taken


async def measured(count: int, edits: int) -> list[Row]:
    """Ours and the bare one in turns, for each kind of edit."""
    PaintDriver.painted, PaintDriver.reached = asyncio.Event(), staticmethod(lambda: False)
    bare = BareTable(count)
    app = console(count)
    rows: list[Row] = []
    async with running(bare), running(app):
        ours = Ours(app)
        await until_painted(lambda: len(ours.table._rows) == count)
        for name, edit, waits in (
            ("hold (space)", ours.hold, 0.0), ("move (J)", ours.move, 0.0), ("undo (u)", ours.undo, 0.0),
            ("add by form (enter)", ours.add, 0.0), ("remove (x)", ours.remove, PATIENCE_S * 1000),
        ):  # fmt: skip
            own, others = [], []
            for _ in range(edits):
                own.append(await edit())
                before = bare.changed
                others.append(await timed(bare, "space", lambda n=before: bare.changed > n))  # type: ignore[misc]
            rows.append(Row(name, statistics.median(own), statistics.median(others), waits))
    return rows


def console(count: int) -> ConsoleApp:
    """The real console on a store of its own: no host, for none is needed to edit a queue."""
    from ddconsole.cli.common import load_profile, open_store
    from ddconsole.cli.wiring import make_bench, parse_edit
    from ddconsole.runner.console import Console
    from ddconsole.tui.app import ConsoleApp
    from ddconsole.tui.facts import ProfileFacts

    loaded = load_profile(PROFILE)
    loaded = replace(loaded, profile=loaded.profile.model_copy(update={"autostart": False}))
    store = open_store()
    drafts = tuple(
        Draft(Config(Algorithm.TREE, block_size=8, budget=8 + number % 500, topk=6, window=2048 - number // 500))
        for number in range(count)
    )
    store.edit(loaded.name, Add(drafts, Origin()))
    store.close()
    behind = Console(make_bench(loaded), parse_edit(loaded))
    return ConsoleApp(
        behind, ProfileFacts.of(loaded.profile), opening=lambda: behind.open(telemetry=False), guarded=False
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=30)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DDCONSOLE_HOME"] = folder
        rows = asyncio.run(measured(asked.experiments, asked.edits))
    say(f"{asked.experiments} experiments, {asked.edits} edits of each kind; medians from the key to the frame")
    say(f"{'edit':<28} {'ours':>9} {'bare':>9} {'ratio':>7}")
    for row in rows:
        waits = f"   without the {row.waits_ms:.0f} ms that it waits for a paste" if row.waits_ms else ""
        say(f"{row.name:<28} {row.ours_ms:>6.1f} ms {row.bare_ms:>6.1f} ms {row.ratio:>6.1f}×{waits}")


def say(line: str) -> None:
    """A line on stdout."""
    print(line)  # noqa: T201


if __name__ == "__main__":
    main()
