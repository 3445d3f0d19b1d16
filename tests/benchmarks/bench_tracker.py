"""What following an engine's log costs, as a ratio to a bare regular-expression pass over the same log.

    python -m tests.benchmarks.bench_tracker [--lines 200000]

The bare pass decodes the log, splits it into lines and matches each against one pattern (time, rank, message); it
keeps nothing. Ours cleans, masks, follows phases, bars, facts and decode lines, keeps the evidence of a failure, and
gives the lines back. Both take the same bytes in the same pieces, in turns. A line is what ends in `\\n` or `\\r`.

`a run` is what a tracker sees in life: a boot, hours of serving, a failure. The other rows are its parts alone. Ends
with status 1 when a run is slower than 100,000 lines a second or 6 bare passes, or when memory grows with its length.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ddconsole.engines.sglang.bootlog import BootLog

DATA = Path(__file__).parent.parent / "engines" / "data"
PIECE = 65_536
"""Bytes of one feed: what ssh hands over at once when a log is long."""

TURNS = 5
LEAST_LINES_S, MOST_RATIO, MOST_GROWTH = 100_000, 6.0, 500_000
"""Lines a second, bare passes, and bytes that memory may grow by when the log grows tenfold."""

LINE = re.compile(
    r"^\[(?P<ts>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?)(?P<rank>(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] "
    r"(?P<msg>.*)$"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the best of the turns, and the median of their ratios."""

    name: str
    lines: int
    ours_s: float
    bare_s: float
    ratio: float

    @property
    def lines_per_s(self) -> float:
        """Lines a second of ours."""
        return self.lines / self.ours_s


def bare(data: bytes) -> int:
    """The bare pass; lines that matched."""
    matched, tail = 0, ""
    for start in range(0, len(data), PIECE):
        text = tail + data[start : start + PIECE].decode("utf-8", "replace")
        *lines, tail = text.replace("\r", "\n").split("\n")
        for line in lines:
            if LINE.match(line) is not None:
                matched += 1
    return matched


def ours(data: bytes) -> BootLog:
    """A tracker that has seen the log."""
    log = BootLog()
    for start in range(0, len(data), PIECE):
        log.feed(data[start : start + PIECE], start / PIECE)
    return log


# --- logs


def varied(text: str, chance: random.Random) -> str:
    """The same lines with other fractions, as another boot or another rank would print them."""
    return re.sub(r"(?<=\d\.)\d\d(?= )", lambda _: f"{chance.randrange(100):02d}", text)


def boots(lines: int, chance: random.Random) -> bytes:
    """Boots one after another: bars, eight ranks, warnings."""
    samples = [path.read_bytes().decode() for path in sorted(DATA.glob("boot-*.log"))]
    text = ""
    while len(re.findall(r"[\r\n]", text)) < lines:
        text += varied(chance.choice(samples), chance)
    return text.encode()


def serving(lines: int, chance: random.Random) -> bytes:
    """Decode lines, prefill lines, requests, and now and then a line of no known kind from one of the ranks."""
    return b"".join(_served(number, chance).encode() for number in range(lines))


def _served(number: int, chance: random.Random) -> str:
    stamp = f"[2026-11-18 {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
    kind = chance.random()
    if kind < 0.6:
        tau = chance.uniform(3.5, 5.5)
        return (
            f"{stamp} TP0] Decode batch, #running-req: 1, #token: {number % 131072}, token usage: 0.01, accept len: "
            f"{tau:.2f}, accept rate: {tau / 8:.2f}, cuda graph: True, gen throughput (token/s): {tau * 31:.2f}, "
            "#queue-req: 0\n"
        )
    if kind < 0.75:
        return (
            f"{stamp} TP0] Prefill batch, #new-seq: 1, #new-token: {number % 2048}, #cached-token: 0, token usage: "
            "0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): "
            f"{chance.uniform(1, 900):.2f}\n"
        )
    if kind < 0.97:
        return f'{stamp}] INFO:     127.0.0.1:{30000 + number % 30000} - "POST /generate HTTP/1.1" 200 OK\n'
    return f"{stamp} TP{number % 8}] Loading JIT ops: batch_decode_{number} took {chance.uniform(0, 9):.3f} s\n"


def failures(lines: int, chance: random.Random) -> bytes:
    """Tracebacks of eight ranks."""
    text = (DATA / "fail-sm120-shared-memory.log").read_bytes().decode()
    block = text[text.index("Scheduler hit") - 30 :]
    block = block[block.index("\n") + 1 :]
    return (block * (lines // block.count("\n") + 1)).encode()


def a_run(lines: int, chance: random.Random) -> bytes:
    """A boot, then serving, then the end."""
    return boots(1, chance) + serving(lines, chance) + failures(100, chance)


LOGS: dict[str, Callable[[int, random.Random], bytes]] = {
    "a run": a_run,
    "serving": serving,
    "boots": boots,
    "failures": failures,
}

# --- measuring


def timed(work: Callable[[bytes], object], data: bytes) -> float:
    """Seconds."""
    begin = time.perf_counter()
    work(data)
    return time.perf_counter() - begin


def measured(name: str, data: bytes) -> Row:
    """Ours and the bare pass in turns."""
    pairs = [(timed(ours, data), timed(bare, data)) for _ in range(TURNS)]
    ratio = statistics.median(a / b for a, b in pairs)
    return Row(name, len(re.findall(rb"[\r\n]", data)), min(a for a, _ in pairs), min(b for _, b in pairs), ratio)


def kept_bytes(data: bytes) -> int:
    """What a tracker holds after the log."""
    tracemalloc.start()
    log = ours(data)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert log.progress.fired_up
    return held


def main() -> int:
    """Print the table; 1 when a run is too slow or memory grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    asked = parser.parse_args()
    chance = random.Random(1)
    say(f"{'log':<10} {'lines':>9} {'ours':>16} {'bare':>16} {'ratio':>7}")
    rows = [measured(name, make(asked.lines, chance)) for name, make in LOGS.items()]
    for row in rows:
        speeds = [f"{row.lines / seconds:>10,.0f} lines/s"[:18] for seconds in (row.ours_s, row.bare_s)]
        say(f"{row.name:<10} {row.lines:>9,} {speeds[0]:>18} {speeds[1]:>18} {row.ratio:>6.1f}×")
    short, long = (kept_bytes(a_run(lines, chance)) for lines in (asked.lines // 10, asked.lines))
    say(f"held after {asked.lines // 10:,} lines {short / 1e6:.2f} MB, after {asked.lines:,} lines {long / 1e6:.2f} MB")
    run = rows[0]
    good = run.lines_per_s >= LEAST_LINES_S and run.ratio <= MOST_RATIO and long - short <= MOST_GROWTH
    say(f"a run: at least {LEAST_LINES_S:,} lines/s, at most {MOST_RATIO:g}×, flat memory: {'yes' if good else 'NO'}")
    return 0 if good else 1


def say(line: str) -> None:
    """A line on stdout."""
    print(line)  # noqa: T201 - a program: its table is its product


if __name__ == "__main__":
    sys.exit(main())
