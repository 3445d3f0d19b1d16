"""The engines that run in the demo host's home: whether one was kept, and how they are ended with the host."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from ddconsole.demo.nvidia_smi_cards import engine_states, is_alive

if TYPE_CHECKING:
    from pathlib import Path

GRACE_S = 5.0
"""Seconds between TERM and KILL."""

MODULE = "ddconsole.demo.engine"


def engine_is_kept(home: Path) -> bool:
    """An engine runs, and its console said in the run's folder that it shall (`~/.ddconsole/runs/NAME/kept`)."""
    alive = {state.get("pid") for state in engine_states(str(home))}
    return any(_root(mark.with_name("pid")) in alive for mark in home.glob(".ddconsole/runs/*/kept"))


def _root(file: Path) -> int | None:
    """The root process that the launcher wrote down: the first word of its file."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(file.read_text("utf-8").split()[0])
    return None


def end_engines(home: Path) -> None:
    """End every engine that runs in `home`, by its state file, after making sure that the process is a toy engine."""
    pids = [pid for state in engine_states(str(home)) for pid in _processes(state)]
    _signal(pids, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal([pid for pid in pids if is_alive(pid)], signal.SIGKILL)


def _processes(state: dict[str, object]) -> list[int]:
    """The engine's root and those of its ranks that are in the root's process group.

    A process id may have been given to somebody else since it was written down.
    """
    root, ranks = state.get("pid"), state.get("ranks")
    if not isinstance(root, int):
        return []
    group, command = _look(root)
    if MODULE not in command:
        return []
    members = [pid for pid in ranks if isinstance(pid, int)] if isinstance(ranks, list) else []
    return [root, *(pid for pid in members if _look(pid)[0] == group)]


def _look(pid: int) -> tuple[str, str]:
    """The process group and the command line of a process; empty when it is gone."""
    words = ["ps", "-ww", "-o", "pgid=,command=", "-p", str(pid)]
    group, _, command = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip().partition(" ")
    return group, command


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
