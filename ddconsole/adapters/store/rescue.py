"""A damaged store: kept aside whole, a new one built from every row that still reads, and that said loudly.

The order bears a kill at any point: the damaged files are copied aside first and a mark names the copy; the new file
takes the store's place in one rename; only then is the mark removed. An unfinished rescue is done again from the copy.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ddconsole.adapters.paths import private_dir
from ddconsole.adapters.store import SqliteStore
from ddconsole.adapters.store import queue as queues
from ddconsole.adapters.store.schema import SUSPECT, open_file
from ddconsole.core import codec
from ddconsole.core.errors import DamagedStoreError
from ddconsole.core.queue.values import Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TABLES = (
    "queues", "experiments", "attempts", "phases", "requests", "passes", "results", "engines", "events", "live", "runs",
)  # fmt: skip
"""What is taken over, parents first. The undo history is not: what it would bring back may be lost."""

CHEAP_BYTES = 8 * 1024 * 1024
"""Up to this size the whole file is looked at whenever it is opened: some 10 ms."""

_SIDES = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Rescue:
    """What a rescue came to. `rows` counts what was saved of each table; `cut` names tables with unreadable parts."""

    aside: Path
    rows: dict[str, int]
    cut: tuple[str, ...]

    def words(self) -> tuple[str, ...]:
        """For the user, a line each."""
        saved = ", ".join(f"{count} {table}" for table, count in self.rows.items() if count)
        return (
            "the store was damaged; a new one was built from what could be read of it",
            f"saved: {saved or 'nothing'}" + (f"; parts are lost of: {', '.join(self.cut)}" if self.cut else ""),
            f"the damaged files are kept in {self.aside}",
        )


def open_or_rescue(path: Path, tell: Callable[[Rescue], None], *, read_only: bool = False) -> SqliteStore:
    """Open the store; a damaged one is rescued first, and `tell` hears of it.

    Raises:
        StoreError: it cannot be opened for another reason.
        DamagedStoreError: it is damaged, and `read_only` or in a folder that cannot be written.
    """
    try:
        return _checked(path, read_only)
    except DamagedStoreError:
        if read_only or not os.access(path.parent, os.W_OK):
            raise
        with _alone(path):
            rescue = _rescue(path)
    if rescue is not None:
        tell(rescue)
    return SqliteStore(path)


def _checked(path: Path, read_only: bool = False) -> SqliteStore:
    """The store, looked at as a whole while that is cheap, or when damage was met before."""
    store = SqliteStore(path, read_only=read_only)
    try:
        if _suspect(path).exists() or path.stat().st_size <= CHEAP_BYTES:
            _check(store)
            with contextlib.suppress(OSError):  # in a folder that cannot be written the mark stays for who can
                _suspect(path).unlink(missing_ok=True)
    except BaseException:
        store.close()
        raise
    return store


def _suspect(path: Path) -> Path:
    return path.with_name(path.name + SUSPECT)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One rescue at a time."""
    handle = os.open(path.with_name("rescue.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check(store: SqliteStore) -> None:
    """Look at the whole file.

    Raises:
        DamagedStoreError: it is damaged, or a rescue of it was not finished.
    """
    mark, said = _suspect(store.path), store.quick_check()
    if said != "ok" or (mark.exists() and mark.read_text()):
        raise DamagedStoreError(f"the store {store.path} is damaged", evidence=(f"SQLite: {said}",))


def _rescue(path: Path) -> Rescue | None:
    """Do it; None when another process was faster."""
    mark = _suspect(path)
    unfinished = mark.read_text() if mark.exists() else ""
    if not unfinished:
        try:
            _checked(path).close()
        except DamagedStoreError:
            pass
        else:
            return None
    aside = path.parent / unfinished if unfinished else _copy_aside(path)
    mark.write_text(aside.name)
    rescue = _rebuild(path, aside)
    mark.unlink()
    return rescue


def _copy_aside(path: Path) -> Path:
    aside = private_dir(path.parent / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}")
    for one in (path, *(path.with_name(path.name + side) for side in _SIDES)):
        if one.exists():
            shutil.copy2(one, aside / one.name)
    return aside


def _rebuild(path: Path, aside: Path) -> Rescue:
    """Build a new file from the copy, and put it in the store's place."""
    work = aside.with_name(aside.name + ".work")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(aside, work)  # reading through SQLite would change the copy
    new = work / "new.db"
    db = open_file(new, busy_s=5)
    try:
        rows, cut = _take_over(db, work / path.name)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")
    finally:
        db.close()
    for side in _SIDES:  # frames of the old log must never meet the new file
        path.with_name(path.name + side).unlink(missing_ok=True)
    new.replace(path)
    shutil.rmtree(work)
    return Rescue(aside, rows, cut)


def _take_over(db: sqlite3.Connection, damaged: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    rows = {}
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("BEGIN")
    with contextlib.closing(sqlite3.connect(damaged, isolation_level=None)) as source:
        cut = [table for table in TABLES if not _copy_table(source, db, table)]
    _mend_queues(db)
    _drop_orphans(db)
    for table in TABLES:
        rows[table] = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    db.execute("COMMIT")
    return rows, tuple(cut)


def _copy_table(source: sqlite3.Connection, db: sqlite3.Connection, table: str) -> bool:
    """From the front up to the damage, then from the back; True when all of it was read."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    keys = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]] or ["rowid"]
    try:
        there = {row[1] for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.DatabaseError:
        return False
    names = ", ".join(name for name in columns if name in there)
    if not names:
        return False
    marks = ", ".join("?" for _ in names.split(", "))
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{key} {direction}" for key in keys)
        if _copy_rows(source, db, f"SELECT {names} FROM {table} ORDER BY {order}",
                      f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"):  # fmt: skip
            return True
    return False


def _copy_rows(source: sqlite3.Connection, db: sqlite3.Connection, select: str, insert: str) -> bool:
    try:
        for row in source.execute(select):
            with contextlib.suppress(sqlite3.IntegrityError, sqlite3.DataError):
                db.execute(insert, row)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    return True


def _mend_queues(db: sqlite3.Connection) -> None:
    """Make each queue whole again: no row that cannot be understood, ids that are never given twice."""
    profiles = {name for (name,) in db.execute("SELECT profile FROM queues UNION SELECT profile FROM experiments")}
    for profile in sorted(profiles):
        bodies = db.execute("SELECT id, body FROM experiments WHERE profile = ? ORDER BY rank, id", (profile,))
        items = [json.loads(body) for _, body in bodies.fetchall() if _is_experiment(body)]
        row = db.execute("SELECT head FROM queues WHERE profile = ?", (profile,)).fetchone()
        queue = codec.queue_from_json(_head(row[0] if row else "") | {"items": items, "paused": True})
        db.execute("DELETE FROM experiments WHERE profile = ?", (profile,))
        queues.save(db, profile, Queue(), queue)
        queues.mark_seeded(db, profile)


def _is_experiment(body: str) -> bool:
    try:
        codec.experiment_from_json(json.loads(body))
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _head(text: str) -> codec.Json:
    """The queue's own row, or that of an empty queue."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        head: codec.Json = json.loads(text)
        codec.queue_from_json(head | {"items": []})
        return head
    return codec.queue_to_json(Queue(), with_history=False)


def _drop_orphans(db: sqlite3.Connection) -> None:
    """Rows whose parents are lost mean nothing any more; their texts are in the files aside."""
    while orphans := db.execute("PRAGMA foreign_key_check").fetchall():
        for table, rowid, *_ in orphans:
            db.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
