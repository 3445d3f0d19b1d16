"""A private place for a master's socket, with a path that is short enough for one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from ddconsole.core.errors import UnreachableError

SOCKET_BYTES = 104
"""The longest path of a socket on the systems that we run on; Linux takes 108."""

_STALE = re.compile(r"ddc-(\d+)-\w+")


def make_folder() -> Path:
    """A fresh folder for a socket, of mode 700, where its path is short enough. Those of dead consoles are removed.

    Raises:
        UnreachableError: there is no such place.
    """
    prefix = f"ddc-{os.getpid()}-"
    longest = SOCKET_BYTES - len(f"/{prefix}xxxxxxxx/m.xxxxxxxxxxxxxxxx")
    tried = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    for base in tried:
        if base and len(os.fsencode(base)) <= longest and os.access(base, os.W_OK | os.X_OK):
            _sweep(Path(base))
            return Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    raise UnreachableError(
        "there is no place for ssh's control socket",
        evidence=tuple(f"{base} is too long or not writable" for base in tried if base),
        advice=f"Set TMPDIR to a folder of yours whose path has at most {longest} bytes.",
    )


def _sweep(base: Path) -> None:
    """A console that was killed could not remove its folder; its master has ended with it."""
    for folder in base.glob("ddc-*"):
        found = _STALE.fullmatch(folder.name)
        with contextlib.suppress(OSError):
            if found and folder.stat().st_uid == os.getuid() and not _lives(int(found[1])):
                shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
