"""The rows of events and of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.events import BODIES, TRANSIENT, Event, RunStarted, utc_text

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


EVENTS_KEPT = 100_000
"""Of each profile, about 1,500 experiments' events or 15 MB."""


def append(db: sqlite3.Connection, profile: str, event: Event) -> Event:
    """Keep an event and return it with its number; a transient one has number 0 and replaces the last of its kind."""
    if event.body.kind in TRANSIENT:
        event = replace(event, seq=0)
        db.execute("INSERT OR REPLACE INTO live VALUES (?, ?, ?)", (profile, event.body.kind, event.to_line()))
        return event
    last = db.execute("SELECT max(seq) FROM events WHERE profile = ?", (profile,)).fetchone()[0] or 0
    event = replace(event, seq=last + 1)
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (profile, event.seq, event.body.kind, event.to_line()))
    return event


def after(db: sqlite3.Connection, profile: str, seq: int, limit: int) -> list[Event]:
    """Events above `seq`; kinds that only a newer program knows are passed over."""
    known = ", ".join(f"'{kind}'" for kind in sorted(BODIES))
    rows = db.execute(
        f"SELECT body FROM events WHERE profile = ? AND seq > ? AND kind IN ({known}) ORDER BY seq LIMIT ?",
        (profile, seq, limit),
    )
    return [Event.from_json(json.loads(body)) for (body,) in rows]


def last_run_seq(db: sqlite3.Connection, profile: str) -> int:
    """Where the newest run began."""
    row = db.execute(
        "SELECT max(seq) FROM events WHERE profile = ? AND kind = ?", (profile, RunStarted.kind)
    ).fetchone()
    return int(row[0] or 0)


def live(db: sqlite3.Connection, profile: str) -> list[Event]:
    """The latest of each transient kind."""
    rows = db.execute("SELECT kind, body FROM live WHERE profile = ? ORDER BY kind", (profile,))
    return [Event.from_json(json.loads(body)) for kind, body in rows if kind in BODIES]


def begin_run(db: sqlite3.Connection, profile: str, run: str, pid: int, at: datetime) -> None:
    """Note a run, and let go of the oldest events; what was measured is kept elsewhere and for ever."""
    db.execute(
        "DELETE FROM events WHERE profile = ? AND seq <= (SELECT max(seq) FROM events WHERE profile = ?) - ?",
        (profile, profile, EVENTS_KEPT),
    )
    db.execute(
        "INSERT INTO runs (run, profile, pid, started_at) VALUES (?, ?, ?, ?)", (run, profile, pid, utc_text(at))
    )


def end_run(db: sqlite3.Connection, run: str, at: datetime) -> None:
    """Note that a run ended cleanly."""
    db.execute("UPDATE runs SET ended_at = ? WHERE run = ?", (utc_text(at), run))


def close_unclean_runs(db: sqlite3.Connection, profile: str, at: datetime) -> bool:
    """Note the end of runs that never told theirs; True when there was one."""
    over = db.execute("UPDATE runs SET ended_at = ? WHERE profile = ? AND ended_at IS NULL", (utc_text(at), profile))
    return over.rowcount > 0
