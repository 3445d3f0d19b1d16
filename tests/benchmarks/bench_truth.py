"""TPOT and throughput on the toy engine against its own step log: within 2 %.

    cd tests && ../.venv/bin/python -m benchmarks.bench_truth [--requests 8] [--tokens 128] [--rounds 3]

The toy engine writes down when each request came, and when it told the tokens of its prefill and of each step, on the
monotonic clock that both processes share; so its log has a TPOT of each request and a throughput of each level. Ours
come from what arrives at our client. Counts are equal to the last digit, which `tests/passes/test_demo_truth.py` holds.
Exit status 1 when a figure is further off than 2 %.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.toy_engine import TREE, Running, engine

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.profile import ThroughputPass
from ddconsole.engines.sglang.dialect import ChatDialect
from ddconsole.passes.base import PassContext
from ddconsole.passes.prompts import load_prompts
from ddconsole.passes.throughput import ThroughputMeasure

WITHIN = 0.02
LOADS: tuple[dict[str, Any], ...] = ({"concurrency": [1]}, {"concurrency": [4]}, {"concurrency": [], "rate": [2.0]})


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over a level's requests, by one side's word."""

    tpot_ms: float
    output_tok_s: float
    tokens: int


def told(records: list[dict[str, Any]]) -> Figures:
    """By the engine's log. TPOT is (last told − first told)/(C − 1); throughput ΣC/(last told − first came)."""
    tpots = [(one["told_s"][-1] - one["told_s"][0]) / (one["completion_tokens"] - 1) for one in records]
    tokens = sum(one["completion_tokens"] for one in records)
    wall = max(one["told_s"][-1] for one in records) - min(one["came_s"] for one in records)
    return Figures(statistics.mean(tpots) * 1000, tokens / wall, tokens)


async def measured(running: Running, options: argparse.Namespace, load: dict[str, Any]) -> tuple[Figures, Figures]:
    """(ours, the engine's) of one level."""
    before = len(running.steps()) if (running.home / "steps.jsonl").exists() else 0
    plan = ThroughputPass.model_validate(
        {"requests": options.requests, "max_tokens": options.tokens, "warmup": 0} | load
    )
    url = f"http://127.0.0.1:{running.port}"
    context = PassContext(url, ChatDialect(model="Toy"), Workload(), SystemClock(), lambda *_: None)
    pass_ = ThroughputMeasure(plan, load_prompts("code", options.tokens), Objectives())
    result = await pass_.run(context)
    assert not result.summary["failed"], result.summary["errors"]
    level = result.summary["levels"][0]
    ours = Figures(level["tpot_ms"]["mean"], level["output_tok_s"], level["completion_tokens"])
    return ours, told(running.steps()[before:])


def row(label: str, pairs: list[tuple[Figures, Figures]]) -> bool:
    """One line: the medians of the rounds, and how far they are apart."""
    assert all(ours.tokens == theirs.tokens for ours, theirs in pairs), "the counts differ: these are other requests"
    cells, fine = [], True
    for name in ("tpot_ms", "output_tok_s"):
        ours, theirs = (statistics.median(getattr(pair[side], name) for pair in pairs) for side in (0, 1))
        off = statistics.median(getattr(a, name) / getattr(b, name) - 1 for a, b in pairs)
        fine &= abs(off) <= WITHIN
        cells.append(f"{ours:10.3f} {theirs:10.3f} {off:+8.2%}")
    say(f"{label:14} {'   '.join(cells)}   {'ok' if fine else 'BROKEN'}")
    return fine


def say(text: str) -> None:
    """A line of the table: the product of this program."""
    print(text, flush=True)  # noqa: T201


def main() -> int:
    """Measure every load in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[tuple[Figures, Figures]]] = {}
    with tempfile.TemporaryDirectory() as folder, engine(Path(folder), *TREE, scale="1.0") as running:
        running.wait_ready()
        for _ in range(options.rounds):
            for load in LOADS:
                label = f"c={load['concurrency'][0]}" if load["concurrency"] else f"{load['rate'][0]:g}/s poisson"
                found.setdefault(label, []).append(asyncio.run(measured(running, options, load)))
    say("the toy engine     TPOT ms: ours, its log, off     output tok/s: ours, its log, off")
    held = [row(label, pairs) for label, pairs in found.items()]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
