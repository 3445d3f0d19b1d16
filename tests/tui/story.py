"""A session as the demo host plays it, made of events: for tests of the screen that need a plausible one."""

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
        "repeats": 1, "estimate_s": 540.0 if config else None, "estimate_source": "history", "findings": [],
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

    def end(self, outcome: str, verdict: str, item: dict[str, Any]) -> None:
        """The attempt ends."""
        self.tell(events.ExperimentFinished(outcome, verdict, None, item), 1.0)
        self._id = None

    def cards(self, utilization: float, memory: float, watts: float, count: int = 8) -> None:
        """A tick of all cards; each differs a little, as cards do."""
        self.tell(events.GpuSampled([_card(index, utilization, memory, watts, self._at) for index in range(count)]))

    def log(self, *lines: str) -> None:
        """Lines of the engine's log, with the time before them."""
        stamp = f"{self._at:%Y-%m-%d %H:%M:%S}"
        self.tell(events.LogLines([f"[{stamp}{line}" for line in lines]))


def _card(index: int, utilization: float, memory: float, watts: float, at: datetime) -> dict[str, Any]:
    wave = math.sin(at.timestamp() * 0.9 + index * 1.7)
    load = min(max(utilization + 4 * wave * (utilization > 5), 0.0), 100.0)
    return {
        "index": index, "uuid": f"GPU-{index:08d}", "name": CARD, "utilization_pct": round(load),
        "memory_used_mib": round(MEMORY_MIB * memory), "memory_total_mib": MEMORY_MIB,
        "temperature_c": round(38 + load * 0.35 + index % 3), "power_w": round(watts + 6 * wave),
        "power_limit_w": 600.0, "clock_sm_mhz": 2400.0,
    }  # fmt: skip


def tell_session() -> list[events.Event]:
    """Two finished experiments, then E14: loading, measuring, done, and the run's end."""
    story = Story()
    story.tell(events.RunStarted("demo", 4242))
    story.tell(events.Connection("connecting", detail="ssh to the demo host"))
    story.tell(events.QueueChanged(REVISION, queue_document()))
    for item in _earlier():
        story.begin(item["id"], Config.from_json(item["config"]))
        story.end("passed", "", item)
    story.tell(events.Connection("connected", rtt_ms=12.0), 0.4)
    for _ in range(20):
        story.cards(0, 0.01, 38)
        story.tell(events.LogLines([]), 1.0)
    story.begin("E14", tree(8, 12))
    story.tell(events.QueueChanged(REVISION + 1, queue_document("E14", revision=REVISION + 1)))
    _boot(story)
    _measure(story)
    story.tell(events.PhaseChanged("stop", "done", 4.0), 4.0)
    for _ in range(12):
        story.tell(events.LogLines([]), 1.0)
        story.cards(0, 0.01, 40)
    story.tell(events.RunFinished("drained", passed=3))
    story.tell(events.QueueChanged(REVISION + 2, queue_document(revision=REVISION + 2) | {"items": []}))
    return story.told


def _earlier() -> list[dict[str, Any]]:
    return [
        result("E11", chain(8), 131.2, 3.90),
        result("E12", tree(8, 8), 139.8, 4.31, vs_reference={"id": "E11", "delta_pct": 6.6, "ci_pct": 2.8}),
        result("E13", tree(8, 16), 147.5, 4.66, coding={"passed": 4, "total": 5}, outcome="wrong",
               vs_reference={"id": "E11", "delta_pct": 12.4, "ci_pct": 3.1}),
        result("E10", tree(8, 64), None, None, outcome="failed", coding=None,
               failure={"cause": "gpu-oom", "what": "out of memory", "evidence": [], "advice": ""}),
    ]  # fmt: skip


def _boot(story: Story) -> None:
    for phase, seconds in (("preflight", 2.1), ("launch", 9.0), ("init", 5.0)):
        story.tell(events.PhaseChanged(phase, "started"))
        if phase == "preflight":
            story.tell(events.FindingSeen("note", "topk-derived", "the engine derives topk 2; 6 is only its cap"))
        story.log(f" TP0] {phase}")
        story.tell(events.PhaseChanged(phase, "done", seconds), seconds)
    story.tell(events.PhaseChanged("load_target", "started"))
    story.log(*(f" TP{rank}] Load weight begin. avail mem=94.2{rank} GB" for rank in range(8)))
    for done in range(65):
        bar = {"done": done, "total": 64, "eta_s": (64 - done) * 5.8 if done > 2 else None}
        silent = 14.0 if done % 16 == 9 else 1.0
        story.tell(events.LogLines([]), 5.8)
        story.cards(3, 0.01 + 0.76 * done / 64, 96)
        story.tell(
            events.BootProgressed("load_target", target=bar, elapsed_s=16 + done * 5.8, eta_s=(64 - done) * 5.8 + 90,
                                  silent_s=silent, bytes_read=done * 9_300_000_000)
        )  # fmt: skip
        story.log(f" TP0] Loading safetensors checkpoint shards: {done * 100 // 64:3d}% Completed | {done}/64")
    story.tell(events.PhaseChanged("load_target", "done", 372.0))
    _draft_and_graphs(story)
    story.tell(events.PhaseChanged("warmup", "started"))
    story.tell(events.PhaseChanged("warmup", "done", 6.0), 6.0)
    story.tell(events.Ready(441.0, ["port", "server_info", "log"], [], engine_version="0.5.23+ddtree"))


def _draft_and_graphs(story: Story) -> None:
    full = {"done": 64, "total": 64, "eta_s": 0.0}
    story.tell(events.PhaseChanged("load_draft", "started"))
    for done in range(3):
        story.tell(
            events.BootProgressed("load_draft", target=full, draft={"done": done, "total": 2, "eta_s": 10.0}), 9.0
        )
        story.cards(5, 0.78, 110)
    story.tell(events.PhaseChanged("load_draft", "done", 21.0))
    story.tell(events.PhaseChanged("graphs", "started"))
    story.log(" TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=13, avail mem=9.66 GB")
    story.tell(events.PhaseChanged("graphs", "done", 31.0), 31.0)


def _measure(story: Story) -> None:
    for name, total in (("coding", 5), ("throughput", 6)):
        story.tell(events.PhaseChanged(f"pass:{name}", "started"))
        story.tell(events.PassStarted(name, total))
        for done in range(1, total + 1):
            for _ in range(3):
                story.cards(92, 0.88, 405)
                story.tell(events.LogLines([]), 1.0)
            tokens = 430 + 17 * done
            record = {"prompt_id": f"p{done}", "completion_tokens": tokens, "verify_steps": round(tokens / 4.81),
                      "end_s": tokens / 149.0, "error": None}  # fmt: skip
            story.tell(events.RequestDone(name, done, total, record))
            story.log(
                f" TP0] Decode batch, #running-req: 1, #token: {1311 + tokens}, token usage: 0.01, accept len: 4.81, "
                f"cuda graph: True, gen throughput (token/s): {149.02 - done / 10:.2f}, #queue-req: 0"
            )
        story.tell(events.PassFinished(name, 3.0 * total, {}))
        story.tell(events.PhaseChanged(f"pass:{name}", "done", 3.0 * total))
    verdict = "coding 5/5 · 149.8 tok/s e2e, 160.0 decode at c=1 · τ 4.81 (ΣC/ΣV, 11 requests)"
    item = result("E14", tree(8, 12), 149.8, 4.81, vs_reference={"id": "E11", "delta_pct": 14.2, "ci_pct": 3.0})
    story.end("passed", verdict, item)
