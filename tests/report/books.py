"""A night of results as a book."""

from __future__ import annotations

from typing import Any

from fakes.results import measured

from ddconsole.core.compare import compared
from ddconsole.report.book import Book, Entry, make_book

LEVEL: dict[str, Any] = {
    "concurrency": 4, "requests": 9, "failed": 1, "wall_s": 10.0, "prompt_tokens": 100, "completion_tokens": 1000,
    "output_tok_s": 100.0, "requests_per_s": 0.8, "tok_s_decode": 30.0, "tau": 4.2, "step_ms": 31.0,
    "ttft_ms": {"n": 8, "mean": 50.0, "p50": 49.0, "p90": 60.0, "p95": 61.0, "p99": 62.0},
    "ttfo_ms": {"n": 8, "mean": 80.0, "p50": 79.0, "p90": 85.0, "p95": 86.0, "p99": 87.0},
    "tpot_ms": {"n": 8, "mean": 7.0, "p50": 6.9, "p90": 8.0, "p95": 8.1, "p99": 8.2},
    "itl_ms": {"n": 90, "mean": 7.1, "p50": 6.0, "p90": 9.0, "p95": 9.5, "p99": 9.9},
    "e2e_ms": {"n": 8, "mean": 900.0, "p50": 890.0, "p90": 1000.0, "p95": 1010.0, "p99": 1020.0},
    "goodput_per_s": 0.7, "tok_s_e2e": 28.0, "prefix": "cold", "cold": 3, "warm": 5, "round_trip_ms": 12.5,
    "ttft_warm_ms": {"n": 5, "mean": 20.0, "p50": 19.0, "p90": 22.0, "p95": 23.0, "p99": 24.0},
    "client_cpu_share": 0.05, "client_saturated": False,
}  # fmt: skip

CHECK: dict[str, Any] = {
    "name": "τ", "ours": 4.2, "theirs": 4.9, "off_pct": 16.67, "source": "decode lines", "scope": "9 windows",
    "allowed": [3.78, 4.62], "agrees": False,
}  # fmt: skip

WOBBLE = (0.03, -0.03, 0.02, -0.02, 0.01, -0.01)


def entries(**changes: Any) -> list[Entry]:
    """A chain measured twice and four budgets; `changes` go into the last result."""
    items = [
        measured("E1", 100, budget=None, tau=3.9, step_ms=27.0),
        measured("E2", 115, budget=8, tau=4.2, step_ms=27.5, hour=0.5, noise=WOBBLE),
        measured("E3", 125, budget=12, tau=4.6, step_ms=28.0, hour=1, noise=WOBBLE),
        measured("E4", 124, budget=16, tau=4.8, step_ms=31.0, hour=1.5, noise=(-0.03, 0.03, -0.02, 0.02)),
        measured("E5", 100, budget=None, tau=3.9, step_ms=27.0, hour=2),
        measured("E6", 90, budget=32, tau=5.0, step_ms=38.0, hour=2.5) | changes,
    ]
    return [
        Entry(
            item,
            {"profile_digest": "abc", "ddconsole": "0.1"},
            {"throughput": [{"levels": [LEVEL], "cross_check": [CHECK], "round_trip_ms": 12.5}]},
            {"boot": 400.0},
        )
        for item in compared(items, 8)
    ]


def book(**changes: Any) -> Book:
    return make_book("night", "2026-12-02T06:00:00.000Z", "0.1.0", entries(**changes))
