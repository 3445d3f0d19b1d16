"""The toy engine's log, in SGLang's format: time and rank in brackets, bars redrawn by carriage returns.

Log lines and bars go to stderr, the access lines of the HTTP server to stdout, each in one write, so that lines never
mix when both are the same file.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STDOUT, STDERR = 1, 2


class EngineLog:
    """Writes lines as SGLang's processes do. `ranks` is their number; with one, lines carry no rank."""

    def __init__(self, ranks: int, *, milliseconds: bool = False) -> None:
        self.ranks = ranks
        self._milliseconds = milliseconds
        self._shuffle = random.Random(ranks)

    def main(self, message: str) -> None:
        """A line of the root process."""
        self._write(STDERR, f"[{self._now()}] {message}\n")

    def rank(self, rank: int, message: str) -> None:
        """A line of one scheduler."""
        name = f" TP{rank}" if self.ranks > 1 else ""
        self._write(STDERR, f"[{self._now()}{name}] {message}\n")

    def every_rank(self, message: Callable[[int], str], first: int | None = None) -> None:
        """The same line from all schedulers, in the accidental order of real ones; `first` comes first if given."""
        order = list(range(self.ranks))
        self._shuffle.shuffle(order)
        order.sort(key=lambda rank: rank != first)
        for rank in order:
            self.rank(rank, message(rank))

    def uvicorn(self, message: str, level: str = "INFO") -> None:
        """A line of the HTTP server about itself."""
        self._write(STDERR, f"[{self._now()}] {level + ':':<9} {message}\n")

    def access(self, client: str, request: str, status: str) -> None:
        """A line about one request: `POST /generate HTTP/1.1`, `200 OK`."""
        self._write(STDOUT, f'[{self._now()}] INFO:     {client} - "{request}" {status}\n')

    def raw(self, text: str) -> None:
        """Text as it is: bars, tracebacks."""
        self._write(STDERR, text)

    def _now(self) -> str:
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        return f"{stamp}.{int(now % 1 * 1000):03d}" if self._milliseconds else stamp

    @staticmethod
    def _write(descriptor: int, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(descriptor, data) :]


def shard_bar(done: int, total: int, elapsed: float) -> str:
    """The weights' bar as SGLang draws it, with its leading carriage return."""
    percent = f"{100 * done / total:3.0f}"
    return f"\rMulti-thread loading shards: {percent}% Completed | {done}/{total} [{_timing(done, total, elapsed)}]"


def capture_bar(batch: int, avail_gb: float, done: int, total: int, elapsed: float) -> str:
    """The bar of graph captures."""
    filled = "█" * round(10 * done / total)
    head = f"\rCapturing batches (bs={batch} avail_mem={avail_gb:.2f} GB): {100 * done / total:3.0f}%"
    return f"{head}|{filled:<10}| {done}/{total} [{_timing(done, total, elapsed)}]"


def _timing(done: int, total: int, elapsed: float) -> str:
    """tqdm's `elapsed<remaining, rate`."""
    if not done or elapsed <= 0:
        return f"{_clock(elapsed)}<?, ?it/s"
    each = elapsed / done
    rate = f"{each:5.2f}s/it" if each >= 1 else f"{1 / each:5.2f}it/s"
    return f"{_clock(elapsed)}<{_clock(each * (total - done))}, {rate}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
