"""The store's file: how it is opened, what its tables are, and how an older file is brought up to date.

Each entry of `MIGRATIONS` takes a file from the version of its place to the next; `PRAGMA user_version` holds the
version. An entry is never changed once it was released; a new one is added behind it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.adapters.paths import create_private_file, private_dir
from ddconsole.core.errors import DamagedStoreError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APPLICATION_ID = 0x64646331
"""`ddc1`: tells our file from any other SQLite file."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # the queue: one row a profile, one an experiment, one a step of the undo history
        """CREATE TABLE queues (
            profile TEXT PRIMARY KEY, revision INTEGER NOT NULL, head TEXT NOT NULL, seeded INTEGER NOT NULL DEFAULT 0
        ) STRICT""",
        """CREATE TABLE experiments (
            profile TEXT NOT NULL REFERENCES queues(profile), id TEXT NOT NULL, rank INTEGER NOT NULL,
            body TEXT NOT NULL, PRIMARY KEY (profile, id)
        ) STRICT""",
        """CREATE TABLE steps (
            profile TEXT NOT NULL REFERENCES queues(profile), side TEXT NOT NULL, place INTEGER NOT NULL,
            body TEXT NOT NULL, PRIMARY KEY (profile, side, place)
        ) STRICT, WITHOUT ROWID""",
        # what is measured
        """CREATE TABLE attempts (
            profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, recipe TEXT NOT NULL,
            started_at TEXT NOT NULL, finished_at TEXT, outcome TEXT,
            PRIMARY KEY (profile, id, attempt), FOREIGN KEY (profile, id) REFERENCES experiments(profile, id)
        ) STRICT""",
        """CREATE TABLE phases (
            profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, phase TEXT NOT NULL,
            seconds REAL NOT NULL, PRIMARY KEY (profile, id, attempt, phase),
            FOREIGN KEY (profile, id, attempt) REFERENCES attempts(profile, id, attempt)
        ) STRICT""",
        """CREATE TABLE requests (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL,
            pass TEXT NOT NULL, repeat INTEGER NOT NULL, body TEXT NOT NULL,
            FOREIGN KEY (profile, id, attempt) REFERENCES attempts(profile, id, attempt)
        ) STRICT""",
        "CREATE INDEX requests_by_attempt ON requests (profile, id, attempt, pass)",
        """CREATE TABLE passes (
            profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, pass TEXT NOT NULL,
            repeat INTEGER NOT NULL, summary TEXT NOT NULL, PRIMARY KEY (profile, id, attempt, pass, repeat),
            FOREIGN KEY (profile, id, attempt) REFERENCES attempts(profile, id, attempt)
        ) STRICT""",
        """CREATE TABLE results (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL,
            item TEXT NOT NULL, UNIQUE (profile, id, attempt),
            FOREIGN KEY (profile, id, attempt) REFERENCES attempts(profile, id, attempt)
        ) STRICT""",
        """CREATE TABLE engines (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, profile TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL,
            name TEXT NOT NULL UNIQUE, launched TEXT, effective TEXT NOT NULL,
            FOREIGN KEY (profile, id, attempt) REFERENCES attempts(profile, id, attempt)
        ) STRICT""",
        # what happened
        """CREATE TABLE events (
            profile TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (profile, seq)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE live (
            profile TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (profile, kind)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE runs (
            run TEXT PRIMARY KEY, profile TEXT NOT NULL, pid INTEGER NOT NULL, started_at TEXT NOT NULL, ended_at TEXT
        ) STRICT""",
    ),
    (
        # requests of a pass that was cut in the middle stay on record, beside those of its whole measurement
        "ALTER TABLE requests ADD COLUMN cut INTEGER NOT NULL DEFAULT 0",
    ),
    (
        # what cut an attempt that was interrupted: one that takes the host down is not tried for ever
        "ALTER TABLE attempts ADD COLUMN cut_by TEXT",
    ),
)

SUSPECT = ".suspect"
"""Ends the name of a mark beside a file in which damage was met; its text names the copy of an unfinished rescue."""

NEWEST = len(MIGRATIONS)


def open_file(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Open the store's file, make it where it is missing, and bring it up to date.

    `busy_s` is how long a write waits for another process's write, in seconds.

    Raises:
        StoreError: it cannot be opened, is no store of ours, or was written by a newer program.
    """
    with told(path):
        private_dir(path.parent)
        create_private_file(path)
        connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, busy_s)
        except BaseException:
            connection.close()
            raise
    return connection


@dataclass(frozen=True, slots=True)
class OpenFile:
    """Which file was opened: SQLite goes on writing to one that was deleted, and nobody would find that again."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> OpenFile:
        """The file that stands at `path` now."""
        with told(path):
            now = path.stat()
        return cls(path, now.st_dev, now.st_ino)

    def check(self) -> None:
        """Refuse to go on when another file, or none, stands there.

        Raises:
            StoreError: it was deleted, moved or replaced.
        """
        try:
            now = self.path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != (self.device, self.inode):
            raise StoreError(
                f"the store {self.path} was deleted, moved or replaced while it was open",
                advice="put it back, or start ddconsole again to go on with the file that is there now",
            )


def _prepare(connection: sqlite3.Connection, path: Path, busy_s: float) -> None:
    version = file_version(connection, path)
    if version != NEWEST or connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _use_wal(connection, busy_s)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version != NEWEST:
        _migrate(connection, path)


def file_version(connection: sqlite3.Connection, path: Path) -> int:
    """The file's version, 0 for an empty one.

    Raises:
        StoreError: newer than this program, or a file of something else.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    owner: int = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if owner != APPLICATION_ID and not (owner == 0 and version == 0 and empty):
        raise StoreError(
            f"{path} is not a store of ddconsole",
            advice="move it away, or set DDCONSOLE_HOME to another folder",
        )
    if version > NEWEST:
        raise StoreError(
            f"{path} was written by a newer ddconsole (store version {version}; this one knows {NEWEST})",
            advice="update ddconsole; this older one leaves the file alone, for it would not understand all of it",
        )
    return version


def _use_wal(connection: sqlite3.Connection, busy_s: float) -> None:
    """Turn the write-ahead log on. SQLite's own waiting does not cover this statement when two processes race."""
    deadline = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Run the missing migrations in one transaction; of several processes one does it and the others find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in MIGRATIONS[file_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {NEWEST}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into a StoreError that a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        raise _plain_error(path, error) from error
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be opened: {error.strerror or error}",
            advice="make the file and its folder readable and writable for you, or set DDCONSOLE_HOME",
        ) from error


def _plain_error(path: Path, error: sqlite3.Error) -> StoreError:
    """One of SQLite's errors in words, with what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return _damaged(path, error)
    what, advice = _REASONS.get(code, ("failed", "run `ddconsole` again; if it stays, move the file away and keep it"))
    return StoreError(f"the store {path} {what}", evidence=(f"SQLite: {error}",), advice=advice)


def _damaged(path: Path, error: sqlite3.Error) -> DamagedStoreError:
    """Leaves a mark beside the file, so that the next one who opens it looks at all of it."""
    with contextlib.suppress(OSError):
        path.with_name(path.name + SUSPECT).open("a").close()
    return DamagedStoreError(
        f"the store {path} is damaged or is no SQLite file",
        evidence=(f"SQLite: {error}",),
        advice="end every ddconsole and start one: it keeps the file aside and builds a new one from what reads",
    )


_REASONS = {
    sqlite3.SQLITE_FULL: (
        "cannot be written: the disk is full",
        "free some space and try again; nothing that was saved before is lost",
    ),
    sqlite3.SQLITE_READONLY: ("is read-only", "make the file and its folder writable for you"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "make the file and its folder readable and writable for you"),
    sqlite3.SQLITE_PERM: ("may not be read or written by you", "make the file and its folder yours"),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk answers with an error",
        "look at the disk and its mount",
    ),
    sqlite3.SQLITE_BUSY: (
        "is held by another process that does not let go",
        "see who has it open (`lsof FILE`); a stopped process (ctrl-z) in the middle of a write holds it",
    ),
}
