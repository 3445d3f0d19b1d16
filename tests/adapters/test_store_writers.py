"""Many processes edit one queue: none of their edits is lost, none is doubled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.core.queue import Undo, waiting

if TYPE_CHECKING:
    from ddconsole.adapters.store import SqliteStore

WRITER = Path(__file__).parent / "store_writer.py"
PROCESSES, EDITS = 8, 200


def test_eight_processes_with_two_hundred_edits_each_end_with_exactly_the_expected_queue(store: SqliteStore) -> None:
    """Every process adds, changes, holds, and releases or removes; what it added stands in its own order."""
    writers = [
        subprocess.Popen([sys.executable, str(WRITER), str(store.path), "rounds", str(EDITS // 4), str(number)])
        for number in range(PROCESSES)
    ]
    assert [writer.wait(60) for writer in writers] == [0] * PROCESSES
    queue = store.queue("p")
    assert (queue.revision, len(queue.history.undo)) == (PROCESSES * EDITS, PROCESSES * EDITS)
    assert sorted(int(item.id[1:]) for item in queue.items) == list(range(1, PROCESSES * EDITS // 4 + 1))
    for number in range(PROCESSES):
        own = [item for item in queue.items if item.author == str(number)]
        assert sorted(item.note for item in own) == sorted(f"{number}-{turn}" for turn in range(EDITS // 4))
        assert {(item.repeats, item.state.name) for item in own} == {(2, "queued"), (2, "removed")}
        left = [item.note for item in waiting(queue) if item.author == str(number)]
        assert left == [f"{number}-{turn}" for turn in range(0, EDITS // 4, 2)]


def test_an_edit_of_one_process_is_undone_by_another(store: SqliteStore) -> None:
    """The history is the queue's, not a process's."""
    subprocess.run([sys.executable, str(WRITER), str(store.path), "rounds", "1", "7"], check=True, timeout=30)
    states = [store.edit("p", Undo()).items[0].state.name for _ in range(3)]
    assert states == ["held", "queued", "queued"]
    assert store.edit("p", Undo()).items == ()
