"""The faults: each really happens to real processes and real connections, at a moment of a run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from fakes.command import Cli

from .line import Line

FROZEN_S = 2.0
"""Seconds for which the line is frozen: shorter than what the console takes for a loss."""


@dataclass(slots=True)
class Scene:
    """A run in the middle: the console's process, the line to its host, and the home they live in."""

    world: Cli
    console: subprocess.Popen[str]
    line: Line

    def kill_console(self) -> None:
        """As the out-of-memory killer would."""
        self.console.kill()

    def cut(self) -> None:
        """Every connection is reset."""
        self.line.cut()

    def freeze(self) -> None:
        """Half-open for a moment: nothing arrives, nobody is told."""
        self.line.freeze()
        signal.sigtimedwait([], FROZEN_S)
        self.line.thaw()

    def kill_server(self) -> None:
        """The ssh server dies with every connection; what runs on the host goes on."""
        info = self.world.demo_host()
        if info is not None:
            kill(info["pid"])

    def kill_engine(self) -> None:
        """The engine's root process."""
        for pid in self.world.engine_pids()[:1]:
            kill(pid)

    def kill_rank(self) -> None:
        """One of its ranks."""
        for pid in self.world.engine_pids()[-1:]:
            kill(pid)

    def kill_all(self) -> None:
        """The power fails everywhere at once."""
        self.kill_console()
        self.kill_server()
        for pid in self.world.engine_pids():
            kill(pid)


def kill(pid: int) -> None:
    """SIGKILL, to a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


KINDS: dict[str, Callable[[Scene], None]] = {
    "console killed": Scene.kill_console,
    "connection cut": Scene.cut,
    "line frozen": Scene.freeze,
    "ssh server killed": Scene.kill_server,
    "engine killed": Scene.kill_engine,
    "rank killed": Scene.kill_rank,
    "all killed": Scene.kill_all,
}
"""What can happen, by its name in the table."""

TWICE = ("console killed", "all killed")
"""What is done again while the run after it recovers, at half of its points."""
