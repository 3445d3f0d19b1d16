"""A terminal that goes away ends the console, cleanly, and leaves the engine alone."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddconsole.tui.guard import TerminalGuard

PROGRAM = """
import sys
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.replay import ReplayController

class Noted(ReplayController):
    async def close(self, *, keep_engine):
        open(sys.argv[1], "w").write(f"keep_engine={keep_engine}")

sys.exit(ConsoleApp(Noted([], "demo")).run() or 0)
"""

DEADLINE_S = 20.0


def test_the_guard_speaks_once() -> None:
    """A descriptor that is no terminal is a lost one; it is said once."""
    said: list[str] = []
    reading, writing = os.pipe()
    guard = TerminalGuard(said.append, reading)
    guard.look()
    guard.look()
    os.close(reading)
    os.close(writing)
    assert said == ["the terminal went away"]


def test_the_guard_is_silent_while_there_is_a_terminal() -> None:
    """A live terminal is no reason to leave."""
    said: list[str] = []
    leader, follower = pty.openpty()
    TerminalGuard(said.append, follower).look()
    os.close(leader)
    os.close(follower)
    assert said == []


@pytest.mark.parametrize("how", ["closed", "closed and continued", "SIGTERM"])
def test_a_lost_terminal_ends_the_process_and_keeps_the_engine(how: str, tmp_path: Path) -> None:
    """The window is closed, or the process asked to end: the controller is closed and the process gone."""
    note = tmp_path / "closed"
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(note)], stdin=follower, stdout=follower, stderr=follower,
        start_new_session=True, env=os.environ | {"TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(follower)
    try:
        _read_until(leader, b"ddconsole")
        if how == "closed and continued":  # as a kernel does it with a session whose terminal goes
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGCONT)
        if how.startswith("closed"):
            os.close(leader)
        else:
            process.terminate()
        assert process.wait(DEADLINE_S) is not None
        assert note.read_text() == "keep_engine=True"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if not how.startswith("closed"):
            os.close(leader)


def _read_until(descriptor: int, wanted: bytes) -> None:
    """Read the terminal until the first frame is there."""
    seen, deadline = b"", time.monotonic() + DEADLINE_S
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"no first frame; saw {seen[-200:]!r}"
        seen += os.read(descriptor, 65_536)
