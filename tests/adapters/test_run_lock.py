"""One runner a host: the system's own lock, which goes with its process."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ddconsole.adapters.run_lock import run_lock
from ddconsole.core.errors import RefusedError

HOLD = """
import sys
import threading
from pathlib import Path
from ddconsole.adapters.run_lock import run_lock
run_lock(Path(sys.argv[1]), "ct200").acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    """Until the first one is killed: then the lock is free, though nobody gave it back."""
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        lock = run_lock(tmp_path, "ct200")
        with pytest.raises(RefusedError, match=f"pid {holder.pid}"):
            lock.acquire()
        assert lock.is_held()
        holder.kill()
        holder.wait()
        assert not lock.is_held()
        lock.acquire()


def test_hosts_have_locks_of_their_own_closed_to_others(tmp_path: Path) -> None:
    """Two hosts are run side by side; the files are their owner's alone."""
    first, second = run_lock(tmp_path, "ct200"), run_lock(tmp_path, "ct201")
    first.acquire()
    first.acquire()  # asking twice is asking once
    second.acquire()
    for file in (tmp_path / "runs").iterdir():
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    first.release()
    assert not first.is_held()
    second.release()


def test_who_only_looks_keeps_nobody_from_starting(tmp_path: Path) -> None:
    """A look of another process at the wrong instant is waited out, and looking makes no file."""
    lock = run_lock(tmp_path, "ct200")
    assert not lock.is_held()
    assert not (tmp_path / "runs").exists()
    lock.acquire()
    lock.release()
    (path,) = (tmp_path / "runs").glob("*.lock")
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.02, os.close, [looking]).start()
    lock.acquire()
    assert lock.is_held()
