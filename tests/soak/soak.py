"""A week in minutes: GPU samples and log lines through the real session, tracker, journal, store and screen.

    python -m soak.soak --days 7 --log-hours 2

A scripted host's streams bring eight cards at 1 Hz and a log at 200 lines a second as fast as they are taken, while
the dashboard draws; the line breaks twenty times on the way. Memory, open files, tasks and the store are looked at
when a tenth has passed and at the end: what grows in between by more than its bound grows with time, and the exit code
is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fakes.scripted import Script, ScriptedConnector, ScriptedEngine, ScriptedHost, ScriptedLauncher, make_bench

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import UnreachableError
from ddconsole.core.experiment import Origin
from ddconsole.core.gpu import QUERY_FIELDS
from ddconsole.core.ports import Launched
from ddconsole.core.queue import Add, Draft, Remove
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.runner.console import Console
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import ProfileFacts

CARDS = 8
CUTS = 20
"""So often the line breaks on the way, and is connected again."""
LOG_LINES_S = 200
PIECE_S = 60
"""Seconds of the host's time in one chunk of a stream."""

LOG_KIB = 6 * 1024
"""Within so much the store's log is checkpointed and begun anew: SQLite does it at 1,000 pages."""

BOUNDS = {
    "memory MiB": 24.0, "open files": 2, "tasks": 3, "threads": 2, "store KiB": 512.0 + LOG_KIB, "kept KiB": 512.0,
}  # fmt: skip
"""What may come on top between the tenth and the end. `store`: file, log and index; `kept`: after a checkpoint."""


@dataclass
class Progress:
    """How much of each stream was taken, from 0 to 1."""

    parts: dict[str, float] = field(default_factory=lambda: {"gpus": 0.0, "log": 0.0})
    pieces: dict[str, int] = field(default_factory=lambda: {"gpus": 0, "log": 0})

    def take(self, name: str, pieces: int, of: int) -> None:
        self.pieces[name], self.parts[name] = pieces, pieces / of

    @property
    def least(self) -> float:
        return min(self.parts.values())


class Pieces:
    """The rest of a stream of `count` pieces, then silence; it ends when it is closed or its host's line breaks."""

    def __init__(
        self, host: WeekHost, count: int, done: int, piece: Callable[[int], bytes], on_piece: Callable[[int], None]
    ) -> None:
        self._host, self._numbers, self._piece, self._on_piece = host, range(done, count), piece, on_piece
        self._closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for number in self._numbers:
            yield self._piece(number)
            self._on_piece(number + 1)
            await asyncio.sleep(0)  # as a socket would: others get their turn
            self._line()
        await self._host.moved.wait()
        self._line()

    def _line(self) -> None:
        if self._host.cut and not self._closed:
            raise UnreachableError("the line was cut")

    async def close(self) -> None:
        self._closed = True
        self._host.moved.set()


CELLS = {
    "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "memory.total": "97887", "power.limit": "600.00",
    "clocks.current.sm": "2317", "pcie.link.gen.current": "5", "pcie.link.width.current": "16",
}  # fmt: skip


def gpu_rows(minute: int) -> bytes:
    """A minute of eight cards, values moving."""
    lines = []
    for second in range(PIECE_S):
        for card in range(CARDS):
            moving = (minute * 7 + second * 3 + card) % 60
            cells = CELLS | {
                "index": str(card), "uuid": f"GPU-{card:08d}", "utilization.gpu": str(40 + moving),
                "memory.used": str(88000 + moving), "temperature.gpu": str(30 + moving),
                "power.draw": f"{400 + moving}.5",
            }  # fmt: skip
            lines.append(", ".join(cells.get(name, "[N/A]") for name in QUERY_FIELDS))
    return ("\n".join(lines) + "\n").encode()


def log_lines(piece: int) -> bytes:
    """A minute of decode lines, each different."""
    first = piece * PIECE_S * LOG_LINES_S
    line = "[2026-12-02 14:02:11 TP{}] Decode batch, #token: {}, accept len: 4.81, gen throughput (token/s): 149.02\n"
    return "".join(line.format(number % 8, first + number) for number in range(PIECE_S * LOG_LINES_S)).encode()


class WeekHost(ScriptedHost):
    """Brings the cards' week to whoever asks nvidia-smi for it; its line breaks at the next of the week's cuts."""

    def __init__(self, minutes: int, progress: Progress) -> None:
        super().__init__()
        self._minutes, self._progress = minutes, progress
        self.moved = asyncio.Event()

    async def stream(self, argv: Sequence[str]) -> Any:
        return Pieces(self, self._minutes, self._progress.pieces["gpus"], gpu_rows, self._taken)

    def _taken(self, minutes: int) -> None:
        cuts = int(self._progress.parts["gpus"] * CUTS)
        self._progress.take("gpus", minutes, self._minutes)
        if int(self._progress.parts["gpus"] * CUTS) > cuts and minutes < self._minutes:
            self.cut = True
            self.moved.set()


class WeekConnector(ScriptedConnector):
    def __init__(self, minutes: int, progress: Progress) -> None:
        super().__init__()
        self._make = lambda: WeekHost(minutes, progress)

    async def connect(self) -> ScriptedHost:
        self.hosts[:] = [self._make()]  # what was lost is not kept here either
        self.connections += 1
        return self.hosts[-1]

    connections = 0


class LoudLauncher(ScriptedLauncher):
    """Its engine's log does not end for hours."""

    def __init__(self, script: Script, minutes: int, progress: Progress) -> None:
        super().__init__(script)
        self._minutes, self._progress = minutes, progress

    async def follow(self, host: Any, launched: Launched, offset: int) -> Any:
        pieces = self._progress.pieces["log"]
        return Pieces(host, self._minutes, pieces, log_lines, lambda n: self._progress.take("log", n, self._minutes))


class RealTracker(BootLog):
    """SGLang's own tracker; the boot that it watches never gets ready, so that its attempt lasts."""


class LoudEngine(ScriptedEngine):
    def tracker(self) -> Any:
        return RealTracker()


def store_bytes(store: Path) -> int:
    """What a store takes on its disk: the file, its log (where all of it is until a checkpoint) and the log's index."""
    files = (store.with_name(store.name + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())


def checkpointed(store: Path) -> int:
    """Size of the store's file once its log is in it, in bytes."""
    with closing(sqlite3.connect(store, timeout=30)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.stat().st_size


def look(store: Path) -> dict[str, float]:
    """What may not grow."""
    gc.collect()
    on_disk = store_bytes(store)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory MiB": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "open files": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "threads": len(os.listdir("/proc/self/task")),
        "store KiB": on_disk / 1024,
        "kept KiB": checkpointed(store) / 1024,
    }


async def soak(folder: Path, days: float, log_hours: float) -> int:
    """Both streams through an open console; 1 when something grew."""
    progress, script = Progress(), Script(boots=["hangs"])
    plain = make_bench(folder, script)
    bench = replace(
        plain,
        clock=SystemClock(),
        connector=(connector := WeekConnector(round(days * 24 * 60), progress)),
        launcher=LoudLauncher(script, round(log_hours * 60), progress),
        engine=LoudEngine(script),  # type: ignore[arg-type]
    )
    console = Console(bench, lambda text, queue: Remove((text,)))
    app = ConsoleApp(console, ProfileFacts(), opening=console.open, guarded=False)
    began = time.monotonic()
    async with app.run_test(size=(120, 40)) as pilot:
        await console.edit(Add((Draft(Config(Algorithm.TREE, 8, 12, 6, 2048), passes=("throughput",)),), Origin()))
        await console.start()
        early = await reached(pilot, progress, 0.1, folder)
        late = await reached(pilot, progress, 1.0, folder)
    seconds = time.monotonic() - began
    print(f"{days:g} days of {CARDS} cards and {log_hours:g} hours of log in {seconds:.0f} s")
    print(f"the line broke and was connected again {connector.connections - 1} times")
    return told(early, late) or int(connector.connections < CUTS)


async def reached(pilot: Any, progress: Progress, part: float, folder: Path) -> dict[str, float]:
    """Wait until so much of both streams was taken, and look."""
    while progress.least < part:
        await pilot.pause(0.2)
    return look(folder / "ddconsole.db")


def told(early: dict[str, float], late: dict[str, float]) -> int:
    """A table of what was and what is."""
    print(f"{'':<12}{'a tenth':>10}{'the end':>10}{'bound':>10}")
    grown = False
    for name, bound in BOUNDS.items():
        over = late[name] - early[name] > bound
        grown |= over
        print(f"{name:<12}{early[name]:>10.1f}{late[name]:>10.1f}{'+' + str(bound):>10}{'  GROWS' if over else ''}")
    return int(grown)


def main() -> int:
    """The whole soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--log-hours", type=float, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dds") as folder:
        return asyncio.run(soak(Path(folder), asked.days, asked.log_hours))


if __name__ == "__main__":
    sys.exit(main())
