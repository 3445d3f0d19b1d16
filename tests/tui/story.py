"""Pieces of a session, made of events and documents: for tests of the screen that need one special thing."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config, TopkRule, effective_config

START = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)
CARD = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
MEMORY_MIB = 97_887
REVISION = 7


def tree(block_size: int, budget: int, topk: int = 6, window: int = 2048) -> Config:
    """A tree config."""
    return Config(Algorithm.TREE, block_size, budget, topk, window)


def chain(block_size: int, window: int = 2048) -> Config:
    """A chain config."""
    return Config(Algorithm.CHAIN, block_size, window=window)


def effective(config: Config) -> dict[str, Any]:
    """What the engine makes of it."""
    return dict(effective_config(config, TopkRule.PR29907).to_json())


def queue_item(id_: str, config: Config | None, state: str = "queued", **more: Any) -> dict[str, Any]:
    """An item of the queue's document."""
    plain = {
        "id": id_, "rank": None, "sweep": None, "state": state, "config": config.to_json() if config else None,
        "effective": effective(config) if config else None, "workload": None, "passes": ["coding", "throughput"],
        "repeats": 1, "estimate_s": 34.0 if config else None, "estimate_source": "history", "findings": [],
        "origin": {"verb": "add", "text": "", "after": None}, "note": "", "author": "", "revision": 3,
    }  # fmt: skip
    return plain | more


TRAINED = {"level": "warn", "code": "trained-block-size", "text": "trained at 8"}


def queue_document(running: str | None = None, *, revision: int = REVISION, paused: bool = False) -> dict[str, Any]:
    """The queue while the story is told."""
    items = [
        queue_item("E14", tree(8, 12), "running" if running == "E14" else "queued"),
        queue_item("E15", tree(8, 20)),
        queue_item("E16", tree(16, 26), findings=[TRAINED], sweep="S2", repeats=2),
        queue_item("E17", tree(16, 34), "held", findings=[TRAINED], sweep="S2"),
        queue_item("E18", None, "idea", note="after this, block size 16 with a higher budget to match"),
    ]
    return {
        "schema": 1, "profile": "demo", "revision": revision, "paused": paused, "running": running,
        "ends_at": "2026-12-02T14:41:00.000Z", "items": items,
    }  # fmt: skip


def result(id_: str, config: Config, tok_s: float | None, tau: float | None, **more: Any) -> dict[str, Any]:
    """An item of the results."""
    plain = {
        "id": id_, "sweep": None, "attempt": 1, "outcome": "passed", "config": config.to_json(),
        "effective": effective(config), "engine_version": "0.5.23+ddtree", "boot_s": 402.0,
        "coding": {"passed": 5, "total": 5}, "tok_s_e2e": tok_s, "tok_s_decode": tok_s and tok_s * 1.07, "tau": tau,
        "vs_reference": None, "verdict": "", "failure": None,
    }  # fmt: skip
    return plain | more


class Story:
    """Collects events on a clock of its own."""

    def __init__(self) -> None:
        self.told: list[events.Event] = []
        self._at = START
        self._id: str | None = None

    def tell(self, body: events.Body, after_s: float = 0.0) -> None:
        """Something happens, `after_s` later than what was told last."""
        self._at += timedelta(seconds=after_s)
        seq = 0 if body.kind in events.TRANSIENT else len(self.told) + 1
        attempt = 1 if self._id else None
        self.told.append(events.Event(seq, self._at, body, id=self._id, attempt=attempt))

    def begin(self, id_: str, config: Config, estimate_s: float = 540.0) -> None:
        """An attempt begins."""
        self._id = id_
        self.tell(
            events.ExperimentStarted(
                label=config.label(), config=config.to_json(), effective=effective(config),
                passes=["coding", "throughput"], estimate_s=estimate_s,
            ),
            1.0,
        )  # fmt: skip

    def cards(self, utilization: float, memory: float, watts: float, count: int = 8) -> None:
        """A tick of all cards; each differs a little, as cards do."""
        self.tell(events.GpuSampled([_card(index, utilization, memory, watts, self._at) for index in range(count)]))


def _card(index: int, utilization: float, memory: float, watts: float, at: datetime) -> dict[str, Any]:
    wave = math.sin(at.timestamp() * 0.9 + index * 1.7)
    load = min(max(utilization + 4 * wave * (utilization > 5), 0.0), 100.0)
    return {
        "index": index, "uuid": f"GPU-{index:08d}", "name": CARD, "utilization_pct": round(load),
        "memory_used_mib": round(MEMORY_MIB * memory), "memory_total_mib": MEMORY_MIB,
        "temperature_c": round(38 + load * 0.35 + index % 3), "power_w": round(watts + 6 * wave),
        "power_limit_w": 600.0, "clock_sm_mhz": 2400.0,
    }  # fmt: skip
