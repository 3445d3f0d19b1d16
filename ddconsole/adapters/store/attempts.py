"""The rows of attempts and of what they measure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ddconsole.core.events import utc_text
from ddconsole.core.experiment import Outcome
from ddconsole.core.json_line import json_line
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports.engine import Launched
from ddconsole.core.ports.store import AttemptKey, KeptEngine
from ddconsole.core.retries import CONSOLE_ENDED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import datetime

    from ddconsole.core.errors import Failure

HISTORY_LENGTH = 20
"""Attempts that `phase_history` looks back."""

MEASURED_BY = ("ddconsole", "profile_digest", "suite", "effective", "engine_version")
"""Entries of a recipe that have to be equal for one attempt's passes to stand for another's."""

_THIS = "profile = ? AND id = ? AND attempt = ?"


def to_json(value: object) -> str:
    """One line of JSON; NaN is a bug of ours, never written."""
    return json_line(value)


def _of(key: AttemptKey) -> tuple[str, str, int]:
    return (key.profile, key.id, key.attempt)


def next_number(db: sqlite3.Connection, profile: str, experiment: str) -> int:
    """The number of the next attempt, from 1."""
    row = db.execute("SELECT max(attempt) FROM attempts WHERE profile = ? AND id = ?", (profile, experiment)).fetchone()
    return (row[0] or 0) + 1


def insert(db: sqlite3.Connection, key: AttemptKey, recipe: Mapping[str, Any], at: datetime) -> None:
    """Open an attempt."""
    db.execute(
        "INSERT INTO attempts (profile, id, attempt, recipe, started_at) VALUES (?, ?, ?, ?, ?)",
        (*_of(key), to_json(dict(recipe)), utc_text(at)),
    )


def is_open(db: sqlite3.Connection, key: AttemptKey) -> bool:
    """Whether the attempt was begun and not finished."""
    row = db.execute(f"SELECT finished_at IS NULL FROM attempts WHERE {_THIS}", _of(key)).fetchone()
    return bool(row and row[0])


def recipe(db: sqlite3.Connection, key: AttemptKey) -> dict[str, Any]:
    """What the attempt is known to run; empty for one that never began."""
    row = db.execute(f"SELECT recipe FROM attempts WHERE {_THIS}", _of(key)).fetchone()
    known: dict[str, Any] = json.loads(row[0]) if row else {}
    return known


def merge_recipe(db: sqlite3.Connection, key: AttemptKey, more: Mapping[str, Any]) -> None:
    """Add to what the attempt is known to run; a later word replaces an earlier one."""
    whole = recipe(db, key) | dict(more)
    db.execute(f"UPDATE attempts SET recipe = ? WHERE {_THIS}", (to_json(whole), *_of(key)))


def save_phase(db: sqlite3.Connection, key: AttemptKey, phase: str, seconds: float) -> None:
    """A phase's measured time; measured again, the later one stands."""
    db.execute("INSERT OR REPLACE INTO phases VALUES (?, ?, ?, ?, ?)", (*_of(key), phase, seconds))


def save_request(db: sqlite3.Connection, key: AttemptKey, pass_name: str, repeat: int, record: RequestRecord) -> None:
    """A request's whole record."""
    db.execute(
        "INSERT INTO requests (profile, id, attempt, pass, repeat, body) VALUES (?, ?, ?, ?, ?, ?)",
        (*_of(key), pass_name, repeat, to_json(record.to_json())),
    )


def cut_pass(db: sqlite3.Connection, key: AttemptKey, pass_name: str, repeat: int) -> None:
    """Whatever a pass that begins now has brought before was cut in the middle: kept, but no measurement."""
    db.execute(f"UPDATE requests SET cut = 1 WHERE {_THIS} AND pass = ? AND repeat = ?", (*_of(key), pass_name, repeat))


def save_pass(db: sqlite3.Connection, key: AttemptKey, pass_name: str, repeat: int, summary: Mapping[str, Any]) -> None:
    """A finished pass; measured again, the later one stands."""
    db.execute(
        "INSERT OR REPLACE INTO passes VALUES (?, ?, ?, ?, ?, ?)",
        (*_of(key), pass_name, repeat, to_json(dict(summary))),
    )


def finished_passes(db: sqlite3.Connection, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
    """Summaries by pass name, in the order of the repeats."""
    rows = db.execute(f"SELECT pass, summary FROM passes WHERE {_THIS} ORDER BY repeat", _of(key))
    found: dict[str, list[dict[str, Any]]] = {}
    for name, summary in rows:
        found.setdefault(name, []).append(json.loads(summary))
    return found


def inheritable(db: sqlite3.Connection, key: AttemptKey) -> AttemptKey | None:
    """The attempt before this one, when it was interrupted and measured the same as far as both are known."""
    before = AttemptKey(key.profile, key.id, key.attempt - 1)
    row = db.execute(f"SELECT outcome FROM attempts WHERE {_THIS}", _of(before)).fetchone()
    if row is None or row[0] != Outcome.INTERRUPTED.value:
        return None
    was, now = recipe(db, before), recipe(db, key)
    return before if all(was.get(name) == now[name] for name in MEASURED_BY if name in now) else None


def inherit_passes(db: sqlite3.Connection, before: AttemptKey, key: AttemptKey) -> None:
    """Give an attempt the whole passes of an earlier one, with their requests, and what is known of its engine."""
    merge_recipe(db, key, recipe(db, before) | recipe(db, key) | {"inherited_from": before.attempt})
    db.execute(
        "INSERT OR IGNORE INTO passes SELECT profile, id, ?, pass, repeat, summary FROM passes"
        f" WHERE {_THIS}", (key.attempt, *_of(before)),
    )  # fmt: skip
    db.execute(
        "INSERT INTO requests (profile, id, attempt, pass, repeat, body) SELECT profile, id, ?, pass, repeat, body"
        f" FROM requests JOIN passes USING (profile, id, attempt, pass, repeat) WHERE {_THIS} AND NOT cut ORDER BY seq",
        (key.attempt, *_of(before)),
    )


def close(
    db: sqlite3.Connection,
    key: AttemptKey,
    outcome: Outcome,
    result: Mapping[str, Any],
    failure: Failure | None,
    at: datetime,
) -> None:
    """Close the attempt and keep its result, with what the store itself knows filled in."""
    db.execute(
        f"UPDATE attempts SET finished_at = ?, outcome = ? WHERE {_THIS}", (utc_text(at), outcome.value, *_of(key))
    )
    started = db.execute(f"SELECT started_at FROM attempts WHERE {_THIS}", _of(key)).fetchone()[0]
    item = {"started_at": started, "finished_at": utc_text(at)} | dict(result)
    item |= {"id": key.id, "attempt": key.attempt, "outcome": outcome.value}
    item["failure"] = failure.to_json() if failure else None
    db.execute("INSERT INTO results (profile, id, attempt, item) VALUES (?, ?, ?, ?)", (*_of(key), to_json(item)))


def cut_attempt(db: sqlite3.Connection, key: AttemptKey, by: str) -> None:
    """Note what cut an attempt; what was noted before stands."""
    db.execute(f"UPDATE attempts SET cut_by = coalesce(cut_by, ?) WHERE {_THIS}", (by, *_of(key)))


def blame(db: sqlite3.Connection, profile: str, by: str) -> AttemptKey | None:
    """What was first taken for a dead console was more: of the attempts cut so, the newest one, if it is the last."""
    row = db.execute(
        "SELECT profile, id, attempt, outcome, cut_by FROM attempts WHERE profile = ? ORDER BY rowid DESC LIMIT 1",
        (profile,),
    ).fetchone()
    if row is None or row[3:] != (Outcome.INTERRUPTED.value, CONSOLE_ENDED):
        return None
    key = AttemptKey(*row[:3])
    db.execute(f"UPDATE attempts SET cut_by = ? WHERE {_THIS}", (by, *_of(key)))
    return key


def cuts(db: sqlite3.Connection, profile: str, experiment: str) -> list[str]:
    """What cut an experiment's attempts since the last that was not interrupted, oldest first."""
    rows = db.execute(
        "SELECT cut_by FROM attempts WHERE profile = :profile AND id = :id AND cut_by IS NOT NULL AND attempt >"
        " (SELECT coalesce(max(attempt), 0) FROM attempts WHERE profile = :profile AND id = :id"
        "  AND outcome IS NOT NULL AND outcome <> :interrupted) ORDER BY attempt",
        {"profile": profile, "id": experiment, "interrupted": Outcome.INTERRUPTED.value},
    )
    return [by for (by,) in rows]


def open_attempts(db: sqlite3.Connection, profile: str) -> list[AttemptKey]:
    """Attempts that were begun and never finished, in the order they were begun."""
    rows = db.execute(
        "SELECT profile, id, attempt FROM attempts WHERE profile = ? AND finished_at IS NULL ORDER BY rowid", (profile,)
    )
    return [AttemptKey(*row) for row in rows]


def results(db: sqlite3.Connection, profile: str) -> list[dict[str, Any]]:
    """The results in the order in which the attempts were finished."""
    rows = db.execute("SELECT item FROM results WHERE profile = ? ORDER BY seq", (profile,))
    return [json.loads(item) for (item,) in rows]


def records(db: sqlite3.Connection, key: AttemptKey, pass_name: str | None) -> list[RequestRecord]:
    """The requests of an attempt, of one pass or of all, in the order they ended; none of a pass that was cut."""
    where, values = (f"{_THIS} AND pass = ?", (*_of(key), pass_name)) if pass_name else (_THIS, _of(key))
    where += " AND NOT cut"
    rows = db.execute(f"SELECT body FROM requests WHERE {where} ORDER BY seq", values)
    return [RequestRecord.from_json(json.loads(body)) for (body,) in rows]


def phases(db: sqlite3.Connection, key: AttemptKey) -> dict[str, float]:
    """Seconds by phase of one attempt, in the order in which they were measured."""
    return dict(db.execute(f"SELECT phase, seconds FROM phases WHERE {_THIS} ORDER BY rowid", _of(key)).fetchall())


def phase_history(db: sqlite3.Connection, profile: str) -> list[dict[str, float]]:
    """Seconds by phase of the latest finished attempts, newest first."""
    rows = db.execute(
        "SELECT r.seq, p.phase, p.seconds FROM phases p JOIN results r USING (profile, id, attempt) WHERE r.seq IN"
        " (SELECT DISTINCT r.seq FROM results r JOIN phases USING (profile, id, attempt) WHERE r.profile = ?"
        " ORDER BY r.seq DESC LIMIT ?) ORDER BY r.seq DESC",
        (profile, HISTORY_LENGTH),
    )
    found: dict[int, dict[str, float]] = {}
    for seq, phase, seconds in rows:
        found.setdefault(seq, {})[phase] = seconds
    return list(found.values())


def plan_engine(db: sqlite3.Connection, key: AttemptKey, name: str, effective: Mapping[str, Any]) -> None:
    """Record an engine that is about to be started, by its launch's name."""
    db.execute(
        "INSERT INTO engines (profile, id, attempt, name, effective) VALUES (?, ?, ?, ?, ?)",
        (*_of(key), name, to_json(dict(effective))),
    )


def remember_engine(db: sqlite3.Connection, name: str, launched: Launched) -> None:
    """Record what the host has started under that name."""
    db.execute("UPDATE engines SET launched = ? WHERE name = ?", (to_json(launched.to_json()), name))


def forget_engine(db: sqlite3.Connection, name: str) -> None:
    """Drop the record of an engine that is proved gone."""
    db.execute("DELETE FROM engines WHERE name = ?", (name,))


def engines(db: sqlite3.Connection, profile: str) -> list[KeptEngine]:
    """Engines that were not proved gone, oldest first."""
    rows = db.execute(
        "SELECT profile, id, attempt, name, launched, effective FROM engines WHERE profile = ? ORDER BY seq", (profile,)
    )
    return [
        KeptEngine(
            AttemptKey(p, i, a),
            name,
            None if launched is None else Launched.from_json(json.loads(launched)),
            json.loads(effective),
        )
        for p, i, a, name, launched, effective in rows
    ]
