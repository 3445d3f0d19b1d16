"""Writing a host key that the user has accepted into known_hosts, as OpenSSH writes it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    import asyncssh


def record_key(file: str, address: str, key: asyncssh.SSHKey, *, hashed: bool) -> None:
    """Add a line for `address`. A new file has mode 600, its folder 700; what is in the file stays as it is.

    Raises:
        UnreachableError: the file cannot be written.
    """
    path = Path(file).expanduser()
    name = hashed_name(address) if hashed else address
    line = f"{name} {key.export_public_key().decode().split(' ', 2)[0]} {_key_data(key)}\n".encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _append(path, line)
    except OSError as exc:
        raise UnreachableError(
            f"the host key of {address} cannot be written down",
            evidence=(str(exc),),
            advice=f"Make {file} writable, or add the key by hand: `ssh-keyscan` prints its line.",
        ) from exc


def _key_data(key: asyncssh.SSHKey) -> str:
    return base64.b64encode(key.public_data).decode()


def _append(path: Path, line: bytes) -> None:
    """One write at the file's end, so that two consoles cannot cut into each other's lines."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        broken = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, b"\n" * broken + line)
        os.fsync(handle)
    finally:
        os.close(handle)


def hashed_name(address: str, salt: bytes | None = None) -> str:
    """The name as `HashKnownHosts yes` writes it: HMAC-SHA1 over a salt of 20 bytes."""
    salt = secrets.token_bytes(20) if salt is None else salt
    digest = hmac.new(salt, address.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
