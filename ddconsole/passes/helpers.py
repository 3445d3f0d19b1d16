"""CPU time of the ssh processes that this one started: with `transport: openssh` they carry what is measured.

`getrusage(RUSAGE_CHILDREN)` counts only processes that have ended, so those that live are read in /proc: two small
files for each process below this one, twice a level. Where there is no such /proc (not Linux) nothing is counted.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

NAME = "ssh"
"""Only these: an engine of the demo host, or a sandbox, is below this process too and no cost of the measuring."""

PROC = Path("/proc")


class CpuOfHelpers:
    """Reads their CPU time when it is made, and again when asked."""

    def __init__(self, root: int | None = None, name: str = NAME) -> None:
        self._root = os.getpid() if root is None else root
        self._name = name
        self._before = self._read()

    def since(self) -> float:
        """CPU seconds of those that live now, user and system, since this was made; of new ones all of it."""
        return sum(max(used - self._before.get(pid, 0.0), 0.0) for pid, used in self._read().items())

    def _read(self) -> dict[int, float]:
        return {pid: used for pid in below(self._root) if (used := cpu_s(pid, self._name)) is not None}


def below(pid: int) -> list[int]:
    """The processes below one, their own children too; empty where that cannot be read."""
    children: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in (PROC / str(pid) / "task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [one for child in children for one in (child, *below(child))]


def cpu_s(pid: int, name: str) -> float | None:
    """CPU seconds of a process with this name; None for another one, or one that has gone."""
    try:
        stat = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
        before, _, fields = stat.rpartition(")")
        user, system = map(int, fields.split()[11:13])
    except (OSError, ValueError):
        return None
    return (user + system) / os.sysconf("SC_CLK_TCK") if before.partition("(")[2] == name else None
