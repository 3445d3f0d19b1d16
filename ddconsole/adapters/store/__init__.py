"""The store in one SQLite file: the queue, what was measured, what happened. Implements `core.ports.Store`.

The single writer is the transaction: every change is one `BEGIN IMMEDIATE … COMMIT`, in whichever process, and it is on
disk when the method returns (WAL with `synchronous = FULL`). Rules are not here: an edit is applied by `core.queue`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ddconsole.adapters.paths import refuse_change
from ddconsole.adapters.store import attempts, events
from ddconsole.adapters.store import queue as queues
from ddconsole.adapters.store.looking import Sight, is_unwritable, open_to_look
from ddconsole.adapters.store.schema import OpenFile, open_file, told
from ddconsole.core import queue as rules
from ddconsole.core.errors import RefusedError, StoreError
from ddconsole.core.ports.store import AttemptKey, KeptEngine

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ddconsole.core.config import Config
    from ddconsole.core.errors import Failure
    from ddconsole.core.events import Event
    from ddconsole.core.experiment import Outcome
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports.engine import Launched
    from ddconsole.core.queue import Edit, Queue

BUSY_S = 30.0
"""Seconds that a write waits for another process's write."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteStore:
    """One file, any number of processes; each thread of this one has a connection of its own.

    A `read_only` one refuses every change; it still makes the file where it is missing. One whose file or folder
    cannot be written can be looked at, and each change is answered with what stands against it.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_s: float = BUSY_S,
        now: Callable[[], datetime] = _utc_now,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self._busy_s = busy_s
        self.read_only = read_only
        self._now = now
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._unwritable: StoreError | None = None
        self._connection()
        self._file = OpenFile.at(path)

    def close(self) -> None:
        """Close the file, for every thread."""
        with self._guard:
            while self._connections:
                self._connections.pop().close()
        self._local = threading.local()

    @property
    def can_write(self) -> bool:
        """Changes are wanted, and nothing that can be seen without trying stands against them."""
        return not self.read_only and self._unwritable is None and os.access(self.path, os.W_OK)

    def data_version(self) -> int:
        """Changes whenever another connection has written (PRAGMA data_version of this thread's connection)."""
        with told(self.path):
            db = self._connection()
            sight: Sight | None = getattr(self._local, "sight", None)
            if sight is not None and sight.stamp is not None:
                return sight.stamp.changed_ns
            version: int = db.execute("PRAGMA data_version").fetchone()[0]
        return version

    def quick_check(self) -> str:
        """Look at the whole file; `ok`, or what SQLite found first.

        Raises:
            DamagedStoreError: so damaged that SQLite does not even look.
        """
        with told(self.path):
            said: str = self._connection().execute("PRAGMA quick_check(1)").fetchone()[0]
        return said

    # --- the queue

    def queue(self, profile: str) -> Queue:
        """The queue as it stands; empty for a profile never seen."""
        with self._reading() as db:
            return queues.load(db, profile)

    def edit(self, profile: str, edit: Edit, *, seen: int | None = None) -> Queue:
        """Apply an edit in one transaction and return the new queue.

        Raises:
            RefusedError: the rules refuse it, or what it touches was changed after revision `seen`.
        """
        with self._writing() as db:
            return self._apply(db, profile, edit, seen=seen)

    def seed(self, profile: str, edits: Sequence[Edit]) -> bool:
        """Put a profile's starting queue in, once and never again. False when that was done before."""
        with self._writing() as db:
            if queues.was_seeded(db, profile):
                return False
            queue = queues.load(db, profile)
            queues.save(db, profile, queue, queue)
            for edit in edits:
                self._apply(db, profile, edit)
            queues.mark_seeded(db, profile)
            return True

    def is_seeded(self, profile: str) -> bool:
        """Whether the profile's starting queue was put in already."""
        with self._reading() as db:
            return queues.was_seeded(db, profile)

    # --- attempts and what they measure

    def begin_attempt(
        self, profile: str, experiment: str, recipe: Mapping[str, Any], at: datetime, config: Config | None = None
    ) -> AttemptKey:
        """Mark the experiment running and open an attempt, in one transaction.

        `config` is what `base=best` was bound to; None keeps the experiment's own.

        Raises:
            RefusedError: the experiment is not queued any more.
        """
        with self._writing() as db:
            key = AttemptKey(profile, experiment, attempts.next_number(db, profile, experiment))
            self._apply(db, profile, rules.Begin(experiment, key.attempt, at, config))
            attempts.insert(db, key, recipe, at)
            return key

    def update_recipe(self, key: AttemptKey, recipe: Mapping[str, Any]) -> None:
        """Add to what the attempt is known to run: versions, command, facts."""
        with self._writing() as db:
            attempts.merge_recipe(db, key, recipe)

    def recipe(self, key: AttemptKey) -> dict[str, Any]:
        """What the attempt is known to run; empty for one that never began."""
        with self._reading() as db:
            return attempts.recipe(db, key)

    def save_phase(self, key: AttemptKey, phase: str, seconds: float) -> None:
        """A phase's measured time."""
        with self._writing() as db:
            attempts.save_phase(db, key, phase, seconds)

    def save_request(self, key: AttemptKey, pass_name: str, repeat: int, record: RequestRecord) -> None:
        """A request's whole record."""
        with self._writing() as db:
            attempts.save_request(db, key, pass_name, repeat, record)

    def cut_pass(self, key: AttemptKey, pass_name: str, repeat: int) -> None:
        """What a pass that begins now has brought before was cut: kept, but no measurement."""
        with self._writing() as db:
            attempts.cut_pass(db, key, pass_name, repeat)

    def inherit_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """Take over the whole passes of the attempt before, when that was interrupted and measured the same."""
        with self._writing() as db:
            before = attempts.inheritable(db, key)
            if before is not None:
                attempts.inherit_passes(db, before, key)
            return attempts.finished_passes(db, key)

    def inheritable_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """What `inherit_passes` would take over."""
        with self._reading() as db:
            before = attempts.inheritable(db, key)
            return {} if before is None else attempts.finished_passes(db, before)

    def save_pass(self, key: AttemptKey, pass_name: str, repeat: int, summary: Mapping[str, Any]) -> None:
        """A pass is finished; it is not measured again after a restart."""
        with self._writing() as db:
            attempts.save_pass(db, key, pass_name, repeat, summary)

    def finished_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """Summaries by pass name, one for each repeat."""
        with self._reading() as db:
            return attempts.finished_passes(db, key)

    def finish_attempt(
        self, key: AttemptKey, outcome: Outcome, result: Mapping[str, Any], failure: Failure | None, at: datetime
    ) -> None:
        """Close the attempt and move the experiment to its end state, in one transaction.

        Raises:
            RefusedError: the attempt was finished before; finished is finished.
        """
        with self._writing() as db:
            if not attempts.is_open(db, key):
                raise RefusedError(
                    f"attempt {key.attempt} of {key.id} is finished already",
                    advice=f"`ddconsole queue {key.profile} retry {key.id}` measures it again",
                )
            self._apply(db, key.profile, rules.End(key.id, key.attempt, outcome, failure))
            attempts.close(db, key, outcome, result, failure, at)

    def cut_attempt(self, key: AttemptKey, by: str) -> None:
        """Note what cut an attempt that is, or will be, interrupted: a cause's word."""
        with self._writing() as db:
            attempts.cut_attempt(db, key, by)

    def blame(self, profile: str, by: str) -> AttemptKey | None:
        """The newest attempt was cut by more than its console's death; None when it was not cut so."""
        with self._writing() as db:
            return attempts.blame(db, profile, by)

    def cuts(self, profile: str, experiment: str) -> list[str]:
        """What cut an experiment's attempts since the last that was not interrupted, oldest first."""
        with self._reading() as db:
            return attempts.cuts(db, profile, experiment)

    def open_attempts(self, profile: str) -> list[AttemptKey]:
        """Attempts that were begun and never finished: what an unclean end leaves behind."""
        with self._reading() as db:
            return attempts.open_attempts(db, profile)

    def results(self, profile: str) -> list[dict[str, Any]]:
        """The items of `results list --json`, oldest first, from finished attempts."""
        with self._reading() as db:
            return attempts.results(db, profile)

    def records(self, key: AttemptKey, pass_name: str | None = None) -> list[RequestRecord]:
        """The requests of an attempt in the order they ended."""
        with self._reading() as db:
            return attempts.records(db, key, pass_name)

    def phases(self, key: AttemptKey) -> dict[str, float]:
        """Seconds by phase of one attempt, in the order in which they were measured."""
        with self._reading() as db:
            return attempts.phases(db, key)

    def phase_history(self, profile: str) -> list[dict[str, float]]:
        """Seconds by phase of this profile's finished boots and passes, newest first, at most 20."""
        with self._reading() as db:
            return attempts.phase_history(db, profile)

    # --- engines that we started

    def plan_engine(self, key: AttemptKey, name: str, effective: Mapping[str, Any]) -> None:
        """Record that an engine is about to be started under `name`, before the host hears of it."""
        with self._writing() as db:
            attempts.plan_engine(db, key, name, effective)

    def remember_engine(self, name: str, launched: Launched) -> None:
        """The host has started it."""
        with self._writing() as db:
            attempts.remember_engine(db, name, launched)

    def forget_engine(self, name: str) -> None:
        """It is proved gone, or was never there."""
        with self._writing() as db:
            attempts.forget_engine(db, name)

    def engines(self, profile: str) -> list[KeptEngine]:
        """Engines of ours that were not proved gone."""
        with self._reading() as db:
            return attempts.engines(db, profile)

    # --- events and runs

    def append_event(self, profile: str, event: Event) -> Event:
        """Keep an event and return it with its sequence number. Transient kinds replace their predecessor."""
        with self._writing() as db:
            return events.append(db, profile, event)

    def events(self, profile: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events with a sequence number above `after`."""
        with self._reading() as db:
            return events.after(db, profile, after, limit)

    def last_run_seq(self, profile: str) -> int:
        """Sequence number of the newest `run_started`, 0 when there is none."""
        with self._reading() as db:
            return events.last_run_seq(db, profile)

    def live(self, profile: str) -> list[Event]:
        """The latest of each transient kind."""
        with self._reading() as db:
            return events.live(db, profile)

    def begin_run(self, profile: str, run: str, pid: int, at: datetime) -> None:
        """A process begins to work on the queue. True when the last one did not end cleanly."""
        with self._writing() as db:
            events.begin_run(db, profile, run, pid, at)

    def end_run(self, run: str, at: datetime) -> None:
        """It ended cleanly."""
        with self._writing() as db:
            events.end_run(db, run, at)

    def close_unclean_runs(self, profile: str, at: datetime) -> bool:
        """Mark runs as over whose process died in them. True when there was one."""
        with self._writing() as db:
            return events.close_unclean_runs(db, profile, at)

    # --- transactions

    def _apply(self, db: sqlite3.Connection, profile: str, edit: Edit, *, seen: int | None = None) -> Queue:
        old = queues.load(db, profile)
        refusal = None if seen is None else rules.stale(old, edit, seen)
        new = refusal or rules.apply(old, edit, now=self._now())
        if isinstance(new, rules.Refusal):
            raise RefusedError(new.reason, code=new.code)
        queues.save(db, profile, old, new)
        return new

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes: all of it is on disk afterwards, or nothing.

        Raises:
            RefusedError: this store is read-only.
            StoreError: the file or its folder cannot be written.
        """
        if self.read_only:
            raise refuse_change()
        if self._unwritable is not None:
            raise self._unwritable
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One transaction that reads: what it sees belongs together."""
        yield from self._transaction("BEGIN")

    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with told(self.path):
            db = self._connection()
            self._file.check()
            db.execute(begin)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, opened at its first use."""
        sight: Sight | None = getattr(self._local, "sight", None)
        if sight is not None and not sight.is_current() and not sight.connection.in_transaction:
            self._drop(sight)
            sight = None
        if sight is None:
            sight = self._open()
            self._local.sight = sight
            with self._guard:
                self._connections.append(sight.connection)
        return sight.connection

    def _open(self) -> Sight:
        """To write where that is possible, else to look."""
        try:
            return Sight(open_file(self.path, busy_s=self._busy_s), None)
        except StoreError as error:
            if not is_unwritable(error) or not self.path.is_file():
                raise
            self._unwritable = error
            return open_to_look(self.path, busy_s=self._busy_s)

    def _drop(self, sight: Sight) -> None:
        with self._guard:
            self._connections.remove(sight.connection)
        sight.connection.close()
