"""What an edit of a queue of 1,000 costs, as a ratio to a bare SQLite write of the very rows that it changes.

    python -m tests.benchmarks.bench_queue [--experiments 1000] [--edits 60]

Both write to files on the same disk with the same settings (WAL, synchronous = FULL), in turns, so that the disk is the
same for both. The ratio is what our reading, rules and JSON add to the write that any store would pay for.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Algorithm, Config, Effective, effective_config
from ddconsole.core.experiment import Origin
from ddconsole.core.order import WAYS, propose
from ddconsole.core.queue import Add, Change, Draft, Hold, Move, Place, Release, Remove, Undo

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.queue import Edit, Queue

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
PROFILE = "p"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: medians in milliseconds, and the rows that one edit writes."""

    name: str
    ours_ms: float
    bare_ms: float
    rows: int

    @property
    def ratio(self) -> float:
        """Ours over the bare write."""
        return self.ours_ms / self.bare_ms


class Bare:
    """A table of the same shape, written without any thought."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, rank INTEGER, body TEXT)")

    def write(self, ranks: int, bodies: int, body: str) -> None:
        """One transaction: `ranks` rows get another rank, `bodies` rows a body."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("UPDATE rows SET rank = ? WHERE id = ?", [(id_, id_) for id_ in range(ranks)])
        self._db.executemany(
            "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", [(id_, id_, body) for id_ in range(bodies)]
        )
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def turns(count: int) -> list[tuple[str, Callable[[int], Edit], int, int]]:
    """Name, edit by its turn, and how many rows get another rank and another body (head and history step included)."""
    return [
        ("add one at the end", lambda turn: Add((draft(turn),), Origin()), 0, 3),
        ("add one in front", lambda turn: Add((draft(turn),), Origin(), Place("front")), count, 3),
        ("change one", lambda turn: Change(f"E{count // 2}", repeats=2 + turn), 0, 3),
        ("hold and release", lambda turn: (Hold, Release)[turn % 2]((f"E{count // 2}",)), 0, 3),
        ("move one to the other end", lambda turn: Move(("E1",), ("bottom", "top")[turn % 2]), count, 3),
        ("remove one", lambda turn: Remove((f"E{count - turn}",)), count, 3),
        ("undo", lambda _: Undo(), count, 3),
    ]


def draft(number: int) -> Draft:
    """A tree of its own."""
    return Draft(Config(Algorithm.TREE, block_size=8, budget=8 + number % 500, topk=6, window=2048))


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def measured(store: SqliteStore, bare: Bare, count: int, edits: int) -> list[Row]:
    """Ours and the bare write in turns, for each kind of edit."""
    body = "x" * 400
    found: list[Row] = []
    for name, edit, ranks, bodies in turns(count):
        ours, others = [], []
        for turn in range(edits):
            ours.append(timed(lambda turn=turn, edit=edit: store.edit(PROFILE, edit(turn))))  # type: ignore[misc]
            others.append(timed(lambda r=ranks, b=bodies: bare.write(r, b, body)))  # type: ignore[misc]
        found.append(Row(name, statistics.median(ours), statistics.median(others), ranks + bodies))
    return found


def rules_ms(queue: Queue) -> dict[str, float]:
    """Rules that never touch the disk, on the same queue."""

    def effective(config: Config) -> Effective:
        return effective_config(config)

    return {f"order --by {by}": timed(lambda by=by: propose(queue, by, effective)) for by in WAYS}  # type: ignore[misc]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, bare = SqliteStore(Path(folder) / "ours" / "x.db"), Bare(Path(folder) / "bare.db")
        queue = store.edit(PROFILE, Add(tuple(draft(number) for number in range(asked.experiments)), Origin()))
        say(f"{asked.experiments} experiments, {asked.edits} edits of each kind; medians")
        say(f"{'edit':<28} {'ours':>9} {'bare':>9} {'ratio':>7}")
        for row in measured(store, bare, asked.experiments, asked.edits):
            say(f"{row.name:<28} {row.ours_ms:>6.2f} ms {row.bare_ms:>6.2f} ms {row.ratio:>6.1f}×")
        for name, took in rules_ms(queue).items():
            say(f"{name:<28} {took:>6.1f} ms")
        store.close()
        bare.close()


def say(line: str) -> None:
    """A line on stdout."""
    print(line)  # noqa: T201


if __name__ == "__main__":
    main()
