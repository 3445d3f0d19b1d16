"""What has to hold after every fault (contracts 1, 2 and 4): each broken promise is a line of text."""

from __future__ import annotations

import fcntl
import json
import socket
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.command import Cli

MEASURED = ("coding", "tau", "completion_tokens", "verify_steps", "text_sha256", "config", "effective")
"""What a fault may never change in a result; speeds and times differ from run to run."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A run that nothing happened to: its results by experiment, and the kinds of its events in order."""

    results: Mapping[str, Mapping[str, Any]]
    events: tuple[str, ...]


def broken(world: Cli, undisturbed: Undisturbed) -> list[str]:
    """Every promise that does not hold in a world whose queue has come to its end."""
    with sqlite3.connect(world.home / "dd" / "data" / "ddconsole.db") as db:
        return [
            *_items(world, undisturbed),
            *_store(db),
            *_repeated(db),
            *_results(db, undisturbed),
            *_left(world, db),
        ]


def _items(world: Cli, undisturbed: Undisturbed) -> Iterator[str]:
    states = world.states()
    for id_ in sorted(set(undisturbed.results) - set(states)):
        yield f"{id_} is lost"
    for id_ in sorted(set(states) - set(undisturbed.results)):
        yield f"{id_} came from nowhere"
    for id_, state in states.items():
        if state != "done":
            yield f"{id_} is {state}, not done"


def _store(db: sqlite3.Connection) -> Iterator[str]:
    said = db.execute("PRAGMA integrity_check").fetchone()[0]
    if said != "ok":
        yield f"the store: {said}"
    for table, where in (("attempts", "finished_at IS NULL"), ("runs", "ended_at IS NULL"), ("engines", "1")):
        count = db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]
        if count:
            yield f"{count} {table} left open in the store"


def _repeated(db: sqlite3.Connection) -> Iterator[str]:
    """A pass that came to its end in an attempt that did not fail is measured once and never again."""
    failed = set(db.execute("SELECT id, attempt FROM attempts WHERE outcome = 'failed'"))
    ends: Counter[tuple[str, str]] = Counter()
    for (body,) in db.execute("SELECT body FROM events WHERE kind = 'pass_finished'"):
        event = json.loads(body)
        if (event["id"], event["attempt"]) not in failed:
            ends[event["id"], event["name"]] += 1
    for (id_, name), count in ends.items():
        if count > 1:
            yield f"{name} of {id_} was finished {count} times"


def _results(db: sqlite3.Connection, undisturbed: Undisturbed) -> Iterator[str]:
    items = [json.loads(item) for (item,) in db.execute("SELECT item FROM results ORDER BY seq")]
    for item in items:
        if item["outcome"] == "failed" and not (item["failure"]["cause"] and item["failure"]["advice"]):
            yield f"{item['id']}: a failure without a name: {item['failure']}"
    passed = {item["id"]: item for item in items if item["outcome"] == "passed"}
    for id_, wanted in undisturbed.results.items():
        got = passed.get(id_)
        if got is None:
            yield f"{id_} was never measured"
            continue
        for name in MEASURED:
            if got[name] != wanted[name]:
                yield f"{id_}: {name} is {got[name]}, undisturbed it is {wanted[name]}"


def _left(world: Cli, db: sqlite3.Connection) -> Iterator[str]:
    pids = world.engine_pids()
    if pids:
        yield f"engine processes left: {pids}"
    for port in sorted(_ports(db)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                yield f"port {port} is still held"
    for lock in (world.home / "dd" / "state" / "runs").iterdir():
        if not _is_free(lock):
            yield f"the lock {lock.name} is held"


def _ports(db: sqlite3.Connection) -> set[int]:
    """Ports that engines have proved to be theirs."""
    proved = (json.loads(body)["proved"] for (body,) in db.execute("SELECT body FROM events WHERE kind = 'ready'"))
    return {int(fact.split()[1]) for facts in proved for fact in facts if fact.startswith("port ")}


def _is_free(lock: Path) -> bool:
    with lock.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(handle, fcntl.LOCK_UN)
        return True
