"""What has to hold after every fault (contracts 1, 2 and 4): each broken promise is a line of text."""

from __future__ import annotations

import fcntl
import json
import signal
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.command import Cli

from .engines import is_launch, started_twice

MEASURED = ("coding", "tau", "completion_tokens", "verify_steps", "text_sha256", "config", "effective")
"""What a fault may never change in a result; speeds and times differ from run to run."""


HELPERS_S = 10.0
"""Seconds in which what a run has started on the host may still be ending after it."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A run that nothing happened to: its results by experiment, and its milestones in order."""

    results: Mapping[str, Mapping[str, Any]]
    milestones: tuple[str, ...]


def broken(world: Cli, undisturbed: Undisturbed) -> list[str]:
    """Every promise that does not hold in a world whose queue has come to its end."""
    with sqlite3.connect(world.home / "dd" / "data" / "ddconsole.db") as db:
        return [
            *_items(world, undisturbed),
            *_store(db),
            *_repeated(db),
            *_results(db, undisturbed),
            *started_twice(stored_events(db)),
            *_launched(world, db),
            *_left(world, db),
        ]


def stored_events(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """The events of a store, in order."""
    return [json.loads(body) for (body,) in db.execute("SELECT body FROM events ORDER BY seq")]


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


def _launched(world: Cli, db: sqlite3.Connection) -> Iterator[str]:
    """No run folder on the host without a launch on record that made it."""
    folders = len(list(_state_dir(world).glob("runs/*/launch")))
    told = sum(map(is_launch, stored_events(db)))
    if folders > told:
        yield f"{folders} engines were launched on the host, {told} launches are on record"


def _left(world: Cli, db: sqlite3.Connection) -> Iterator[str]:
    pids = world.engine_pids()
    if pids:
        yield f"engine processes left: {pids}"
    yield from _helpers(world)
    if (_state_dir(world) / "lease").exists():
        yield "the lease on the host was not given back"
    for port in sorted(_ports(db)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                yield f"port {port} is still held"
    for lock in (world.home / "dd" / "state" / "runs").iterdir():
        if not _is_free(lock):
            yield f"the lock {lock.name} is held"


def _helpers(world: Cli) -> Iterator[str]:
    """Whatever else runs for this home, tail, nvidia-smi, a sandbox, a console: gone within a moment."""
    host = world.demo_host()
    spared = {host["pid"] if host else None}
    deadline = time.monotonic() + HELPERS_S
    while left := {pid: words for pid, words in world.processes().items() if pid not in spared}:
        if time.monotonic() > deadline:
            yield from (f"process {pid} is left: {words[:200]}" for pid, words in left.items())
            return
        signal.sigtimedwait([], 0.1)


def _state_dir(world: Cli) -> Path:
    """The launcher's state folder on the demo host."""
    return world.home / "dd" / "state" / "demo" / "home" / ".ddconsole"


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
