"""The faults: each really happens to real processes and real connections, at a moment of a run.

Each tells what it hit, in words; a fault that found nothing to hit tells nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fakes.command import Cli

from .line import Line

FROZEN_S = 2.0
"""Seconds for which the line is frozen: shorter than what the console takes for a loss."""

Hits = tuple[str, ...]
"""What a fault hit, `engine pid 4711`; empty when there was nothing to hit."""


@dataclass(slots=True)
class Scene:
    """A run in the middle: the console's process, the line to its host, and the home they live in."""

    world: Cli
    console: subprocess.Popen[str]
    line: Line

    def kill_console(self) -> Hits:
        """As the out-of-memory killer would."""
        if self.console.poll() is not None:
            return ()
        return killed("console", [self.console.pid])

    def cut(self) -> Hits:
        """Every connection is reset."""
        return connections(self.line.cut())

    def freeze(self) -> Hits:
        """Half-open for a moment: nothing arrives, nobody is told."""
        held = self.line.freeze()
        signal.sigtimedwait([], FROZEN_S)
        self.line.thaw()
        return connections(held)

    def kill_server(self) -> Hits:
        """The ssh server dies with every connection; what runs on the host goes on."""
        info = self.world.demo_host()
        return () if info is None else killed("ssh server", [info["pid"]])

    def kill_engine(self) -> Hits:
        """The engine's root process."""
        return killed("engine", self.world.engine_roots()[:1])

    def kill_rank(self) -> Hits:
        """One of its ranks."""
        return killed("rank", self.world.engine_ranks()[-1:])

    def kill_all(self) -> Hits:
        """The power fails everywhere at once; without a console there is nothing to take the power from."""
        console = self.kill_console()
        if not console:
            return ()
        ranks, roots = self.world.engine_ranks(), self.world.engine_pids()
        return (*console, *self.kill_server(), *killed("engine", roots), *killed("rank", ranks))


def killed(what: str, pids: Iterable[int]) -> Hits:
    """SIGKILL; those that were there to take it."""
    return tuple(f"{what} pid {pid}" for pid in pids if _kill(pid))


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def connections(count: int) -> Hits:
    """Connections that a fault of the line hit."""
    return (f"{count} connections",) if count else ()


KINDS: dict[str, Callable[[Scene], Hits]] = {
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
