"""One runner a host, by an advisory lock of the operating system: it goes when its process goes, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import json
import os
import secrets
import socket
import time
from typing import TYPE_CHECKING

from ddconsole.adapters.paths import private_dir, refuse_change
from ddconsole.core.errors import RefusedError, StoreError

if TYPE_CHECKING:
    from pathlib import Path


def run_lock(state: Path, host: str) -> FileRunLock:
    """The lock of one host, in the console's state folder. Profiles of the same host share it."""
    name = hashlib.sha256(host.encode()).hexdigest()[:16]
    return FileRunLock(state / "runs" / f"{name}.lock", host)


def console_token(state: Path) -> str:
    """The secret by which this machine's consoles hold leases on hosts: made once, the same after every restart.

    Raises:
        StoreError: it can be neither read nor made.
    """
    path = state / "runs" / "token"
    try:
        private_dir(path.parent)
        with contextlib.suppress(FileExistsError):
            part = path.with_name(f"token.{os.getpid()}")
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(16))
            try:
                os.link(part, path)  # the first one wins, whole
            finally:
                part.unlink()
        return path.read_text()
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}", advice="make its folder writable for you") from error


def console_name() -> str:
    """Who holds a lease, for people: `ann@laptop`."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


class NoLock:
    """The lock of a process that shall change nothing: it runs no host."""

    def acquire(self) -> None:
        """Refuse it.

        Raises:
            RefusedError: always.
        """
        raise refuse_change()

    def release(self) -> None:
        """Nothing is held."""


def _locked(file: int) -> bool:
    """Take the lock. Another process that only looks holds it for an instant: that is waited out."""
    for pause in (0.0, 0.01, 0.03, 0.06):
        time.sleep(pause)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


class FileRunLock:
    """An flock on a file that also says, for people, which process holds it."""

    def __init__(self, path: Path, host: str) -> None:
        self._path = path
        self._host = host
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            RefusedError: another process holds it.
            StoreError: the lock's file cannot be opened.
        """
        if self._file is not None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open the lock {self._path}: {error.strerror}") from error
        if not _locked(file):
            holder = self._holder(file)
            os.close(file)
            raise RefusedError(
                f"{self._host} is run by {holder}",
                advice="One runner a host: edit the queue from here, or end that one first.",
            )
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid()}).encode(), 0)
        self._file = file

    def is_held(self) -> bool:
        """Whether a living process holds it, this one included. Looking writes nothing."""
        if self._file is not None:
            return True
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @staticmethod
    def _holder(file: int) -> str:
        with contextlib.suppress(ValueError, KeyError):
            return f"another ddconsole, pid {json.loads(os.pread(file, 200, 0))['pid']}"
        return "another ddconsole"
