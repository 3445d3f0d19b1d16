"""The queue's rows: one for the queue, one for each experiment, one for each step of its history.

An edit writes only the rows that it changed. Values are immutable, so what a row's text means is remembered: a process
that looks at the queue four times a second decodes each text once.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ddconsole.core import codec
from ddconsole.core.errors import StoreError
from ddconsole.core.json_line import json_line
from ddconsole.core.queue.values import History, Queue, Step

if TYPE_CHECKING:
    import sqlite3

    from ddconsole.core.experiment import Experiment

SIDES = ("undo", "redo")
REMEMBERED = 8192
"""Rows whose meaning a process remembers, about 2 kB each."""


def load(db: sqlite3.Connection, profile: str) -> Queue:
    """The queue as it stands; empty for a profile never seen.

    Raises:
        StoreError: a row says what no queue can mean.
    """
    try:
        return _load(db, profile)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the queue of {profile} in the store cannot be understood",
            evidence=(f"{type(error).__name__}: {error}",),
            advice="it was changed by hand or by another program; take the file back from a backup, or move it away",
        ) from error


def _load(db: sqlite3.Connection, profile: str) -> Queue:
    row = db.execute("SELECT head FROM queues WHERE profile = ?", (profile,)).fetchone()
    if row is None:
        return Queue()
    head = codec.queue_from_json(json.loads(row[0]) | {"items": []})
    bodies = db.execute("SELECT body FROM experiments WHERE profile = ? ORDER BY rank, id", (profile,))
    items = tuple(_experiment(body) for (body,) in bodies)
    return replace(head, items=items, history=History(*(_steps(db, profile, side) for side in SIDES)))


def save(db: sqlite3.Connection, profile: str, old: Queue, new: Queue) -> None:
    """Write what `new` changes of `old`."""
    head = codec.queue_to_json(replace(new, items=()), with_history=False)
    db.execute(
        "INSERT INTO queues (profile, revision, head) VALUES (?, ?, ?)"
        " ON CONFLICT (profile) DO UPDATE SET revision = excluded.revision, head = excluded.head",
        (profile, new.revision, _text(head)),
    )
    _save_items(db, profile, old, new)
    for side in SIDES:
        _save_steps(db, profile, side, getattr(old.history, side), getattr(new.history, side))


def was_seeded(db: sqlite3.Connection, profile: str) -> bool:
    """Whether the profile's starting queue was put in already."""
    row = db.execute("SELECT seeded FROM queues WHERE profile = ?", (profile,)).fetchone()
    return bool(row and row[0])


def mark_seeded(db: sqlite3.Connection, profile: str) -> None:
    """Remember that the starting queue was put in."""
    db.execute("UPDATE queues SET seeded = 1 WHERE profile = ?", (profile,))


@lru_cache(maxsize=REMEMBERED)
def _experiment(body: str) -> Experiment:
    return codec.experiment_from_json(json.loads(body))


@lru_cache(maxsize=REMEMBERED)
def _step(body: str) -> Step:
    return codec.step_from_json(json.loads(body))


def _text(value: codec.Json) -> str:
    return json_line(value)


def _steps(db: sqlite3.Connection, profile: str, side: str) -> tuple[Step, ...]:
    rows = db.execute("SELECT body FROM steps WHERE profile = ? AND side = ? ORDER BY place", (profile, side))
    return tuple(_step(body) for (body,) in rows)


def _save_items(db: sqlite3.Connection, profile: str, old: Queue, new: Queue) -> None:
    ranks = {item.id: rank for rank, item in enumerate(old.items)}
    before = {item.id: item for item in old.items}
    moved = [(rank, profile, item.id) for rank, item in enumerate(new.items) if ranks.get(item.id, rank) != rank]
    changed = [
        (profile, item.id, rank, _text(codec.experiment_to_json(item)))
        for rank, item in enumerate(new.items)
        if before.get(item.id) != item
    ]
    gone = sorted(before.keys() - {item.id for item in new.items})
    db.executemany("UPDATE experiments SET rank = ? WHERE profile = ? AND id = ?", moved)
    db.executemany(
        "INSERT INTO experiments (profile, id, rank, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (profile, id) DO UPDATE SET rank = excluded.rank, body = excluded.body",
        changed,
    )
    db.executemany("DELETE FROM experiments WHERE profile = ? AND id = ?", [(profile, item) for item in gone])


def _save_steps(db: sqlite3.Connection, profile: str, side: str, old: tuple[Step, ...], new: tuple[Step, ...]) -> None:
    changed = [
        (profile, side, place, _text(codec.step_to_json(step)))
        for place, step in enumerate(new)
        if place >= len(old) or old[place] != step
    ]
    db.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", changed)
    db.execute("DELETE FROM steps WHERE profile = ? AND side = ? AND place >= ?", (profile, side, len(new)))
