"""Looking at a store that cannot be written: another user's, one on a read-only disk, one whose folder is locked.

SQLite keeps an index of the write-ahead log in a file beside it, and makes that file even to read. Where it cannot, a
log without content is no loss: the main file alone is the whole store, and is read as one that nobody changes.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.adapters.store.schema import NEWEST, file_version, told
from ddconsole.core.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_NUMBERS = (errno.EACCES, errno.EPERM, errno.EROFS)


def is_unwritable(error: StoreError) -> bool:
    """Whether opening failed since something could not be written, so that looking may still be possible."""
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorcode", 0) & 0xFF) in _CODES
    return isinstance(cause, OSError) and cause.errno in _NUMBERS


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the main file and the log were when they were opened as files that nobody changes."""

    path: Path
    changed_ns: int
    bytes: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """As they stand now."""
        now = path.stat()
        return cls(path, now.st_mtime_ns, now.st_size)

    def is_current(self) -> bool:
        """Nobody has written since: what was read of the file holds."""
        try:
            return Stamp.of(self.path) == self and not log_has_content(self.path)
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Sight:
    """A connection that only reads. `stamp` is None where SQLite itself notices what others write."""

    connection: sqlite3.Connection
    stamp: Stamp | None

    def is_current(self) -> bool:
        """It still shows what the store holds; else it is closed and opened anew."""
        return self.stamp is None or self.stamp.is_current()


def log_has_content(path: Path) -> bool:
    """Whether edits may stand in the write-ahead log that the main file has not got yet."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def open_to_look(path: Path, *, busy_s: float) -> Sight:
    """Open a store that cannot be written. Nothing is made, and nothing beside it is changed.

    Raises:
        StoreError: it cannot be read either, wholly: edits stand in a log that needs a writable folder, or an older
            program wrote it and it would have to be brought up to date.
    """
    with told(path):
        try:
            return Sight(_connect(path, "mode=ro", busy_s), None)
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) not in _CODES or not os.access(path, os.R_OK):
                raise
        if log_has_content(path):
            raise _unreadable_log(path)
        stamp = Stamp.of(path)
        return Sight(_connect(path, "mode=ro&immutable=1", busy_s), stamp)


def _connect(path: Path, how: str, busy_s: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        version = file_version(connection, path)
        if version != NEWEST:
            raise StoreError(
                f"{path} is of an older ddconsole (store version {version}; this one has {NEWEST}), and cannot be "
                "brought up to date where it cannot be written",
                advice="let its owner start this ddconsole once, or make the file and its folder writable for you",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _unreadable_log(path: Path) -> StoreError:
    return StoreError(
        f"the store {path} cannot be shown whole: its newest edits stand in its log, which cannot be read here",
        evidence=(f"{path.name}-wal is not empty, and {path.name}-shm cannot be made in {path.parent}",),
        advice="make the folder writable for you, or let its owner run `ddconsole queue PROFILE list` once",
    )
