"""The real engine from doctor to a proved stop: the line is cut twice on the way, and the console killed once."""

from __future__ import annotations

import json
import time
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

from fakes.command import wait_for

from .sglang_setup import MODEL
from .sshd import is_open
from .steps import Steps
from .world import Event, Run, World, evict

NAME = "sglang-cpu"
VERSION = "0.5.23"
Figures = dict[str, Any]

COLD = 0.5
"""Share of the weights in the page cache below which it was emptied: its owner may keep what others use."""

BOOT_S = 300.0
"""A boot takes 22 to 55 s on two idle cores."""
PASS_S = 600.0
"""So may a pass, with the other core lent out."""

REQUESTS = 4
"""Of the throughput pass, as the profile has it."""


def measure(world: World, steps: Steps) -> Figures:
    """All steps of one engine's life."""
    figures: Figures = {}
    world.profile(NAME)
    with steps.step("doctor") as step:
        step.told = _doctor(world)
    run = Run(world.cli, NAME)
    try:
        _boot(world, steps, run, figures)
        _coding(world, steps, run, figures)
        _killed(world, steps, run, figures)
    finally:
        run.kill()
    _adopted(world, steps, figures)
    _stopped(world, steps, figures)
    return figures


def _doctor(world: World) -> str:
    evict(_model(world))
    told = world.json("doctor", NAME, "--accept-new")
    assert not told["blocked"], told["findings"]
    facts = told["host_facts"]
    assert facts["engine"]["version"] == VERSION, facts
    assert facts["target"]["shards"] == _shards(world), facts
    cold = facts["page_cache"]["share"]
    assert cold is None or cold < COLD, facts
    shown = [f"{one['topic']}/{one['name']}" for one in told["checked"]]
    assert "cards/cards" in shown, shown
    codes = [f"{one['level']} {one['code']}" for one in told["findings"]]
    wrong = ("unknown-flag", "help", "package-skew", "jit-cold")  # the last two are of CUDA kernels
    assert not [one for one in codes if any(word in one for word in wrong)], told["findings"]
    return f"{len(shown)} things looked at; {', '.join(codes) or 'no findings'}"


# --- loading


def _boot(world: World, steps: Steps, run: Run, figures: Figures) -> None:
    with steps.step("launch") as step:
        run.until("the engine is started", seconds=120, kind="phase", phase="launch", state="done")
        (engine,) = world.json("engine", NAME, "status")["engines"]
        assert engine["alive"], engine
        figures["pid"] = engine["pid"]
        step.told = f"pid {engine['pid']}, port {engine['port']}"
    with steps.step("line cut while it loads") as step:
        run.until("it initialises", seconds=BOOT_S, kind="phase", phase="init", state="started")
        step.told = _cut(world, run)
    with steps.step("shard bar") as step:
        run.until("the weights are in", seconds=BOOT_S, kind="phase", phase="load_target", state="done")
        run.until("its log is followed to the end", seconds=BOOT_S, kind="phase", phase="kv", state="done")
        step.told = _bar(world, run)
    with steps.step("ready, and proved to be ours") as step:
        ready = run.until("ready", seconds=BOOT_S, kind="ready")
        assert not ready["kept"]
        assert ready["engine_version"] == VERSION, ready
        figures["boot_s"] = ready["seconds"]
        step.told = f"after {ready['seconds']:.1f} s; proved: {', '.join(ready['proved'])}"
        figures["unproved"] = ready["unproved"]


def _cut(world: World, run: Run) -> str:
    """Cut the line, and wait until it stands again."""
    began = time.monotonic()
    assert world.sshd.cut(), "there was no connection to cut"
    run.until("the cut is seen", seconds=60, kind="connection", state="lost")
    run.until("the line stands again", seconds=60, kind="connection", state="connected")
    return f"reconnected after {time.monotonic() - began:.1f} s"


def _bar(world: World, run: Run) -> str:
    """The bar as it was told: all shards of the model, never backwards, and to its end."""
    shards = _shards(world)
    bars = [one["target"] for one in run.of("boot_progress") if one["target"]]
    counts = [one["done"] for one in bars]
    assert bars, "no bar was told"
    assert {one["total"] for one in bars} == {shards}, bars
    assert all(before <= after for before, after in pairwise(counts)), counts
    assert counts[-1] == shards, counts
    return f"{' → '.join(map(str, dict.fromkeys(counts)))} of {shards}"


def _model(world: World) -> Path:
    return world.real / MODEL


def _shards(world: World) -> int:
    return len(list(_model(world).glob("*.safetensors")))


# --- measuring


def _coding(world: World, steps: Steps, run: Run, figures: Figures) -> None:
    with steps.step("line cut in the coding pass") as step:
        run.until("its first answer", seconds=PASS_S, kind="request", name="coding")
        step.told = _cut(world, run)
        run.until("it is measured again", seconds=PASS_S, kind="pass_started", name="coding")
        assert any("measured again from its start" in one["text"] for one in run.of("warning")), run.of("warning")
    with steps.step("coding pass") as step:
        finished = run.until("the coding pass", seconds=PASS_S, kind="pass_finished", name="coding")
        summary = finished["summary"]
        assert summary["total"] == 5, summary
        assert summary["passed"] is not None, summary
        figures["coding"] = f"{summary['passed']}/{summary['total']}"
        step.told = f"{figures['coding']} in {finished['seconds']:.1f} s"


def _killed(world: World, steps: Steps, run: Run, figures: Figures) -> None:
    with steps.step("console killed in the throughput pass") as step:
        run.until("its first answer", seconds=PASS_S, kind="request", name="throughput")
        run.kill()
        (engine,) = world.json("engine", NAME, "status")["engines"]
        assert engine["alive"], engine
        assert engine["pid"] == figures["pid"], engine
        step.told = f"the engine lives, pid {engine['pid']}"


def _adopted(world: World, steps: Steps, figures: Figures) -> None:
    run = Run(world.cli, NAME, "--resume", "--keep-engine")
    with steps.step("adopted by the next console") as step:
        ready = run.until("ready", seconds=PASS_S, kind="ready")
        assert ready["kept"], ready
        assert ready["engine_version"] == VERSION, ready
        warnings = [one["text"] for one in run.of("warning")]
        assert any(f"pid {figures['pid']}" in text for text in warnings), warnings
        step.told = f"pid {figures['pid']} found again in {ready['seconds']:.1f} s"
    with steps.step("throughput pass") as step:
        finished = run.until("the throughput pass", seconds=PASS_S, kind="pass_finished", name="throughput")
        figures |= _speed(run, finished)
        step.told = (f"decode {figures['tok_s_decode']:.2f} tok/s; {figures['tokens']} tokens by our count, "
                     f"{figures['tokens_by_metrics']:.0f} by /metrics")  # fmt: skip
    with steps.step("the verdict") as step:
        run.end(PASS_S)
        (ended,) = run.of("experiment_finished")
        assert ended["outcome"] in ("passed", "wrong"), ended  # so small a model may pass no task
        warnings = [one["text"] for one in run.of("warning")]
        assert any("not measured again: coding" in text for text in warnings), warnings
        items = world.json("results", NAME, "list")["items"]
        (item,) = [one for one in items if one["attempt"] == ended["attempt"]]
        assert item["coding"] == ended["result"]["coding"]
        assert item["coding"]["total"] == 5, item
        figures |= {"verdict": item["verdict"], "server": _server_info(world.port)}
        step.told = item["verdict"]


def _speed(run: Run, finished: Event) -> Figures:
    """Speed by our own counts; the engine's own count of the same tokens has to be the same."""
    records = [one["record"] for one in run.of("request", name="throughput")]
    assert len(records) == REQUESTS, records
    assert all(record["completion_tokens"] for record in records), records
    summary = finished["summary"]
    (checked,) = [one for one in summary["cross_check"] if one["name"] == "completion tokens"]
    assert checked["agrees"], checked
    (level,) = summary["levels"]
    return {"tokens": level["completion_tokens"], "tok_s_decode": level["tok_s_decode"],
            "tok_s_e2e": level["tok_s_e2e"], "ttft_p50_ms": level["ttft_ms"]["p50"],
            "tpot_p50_ms": level["tpot_ms"]["p50"], "tokens_by_metrics": checked["theirs"]}  # fmt: skip


def _server_info(port: int) -> Figures:
    """What the engine says of its own speed and startup."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=30) as answer:
        info = json.load(answer)
    state = (info.get("internal_states") or [{}])[0]
    return {"last_gen_throughput": state.get("last_gen_throughput"), "startup_time": info.get("startup_time")}


# --- the end


def _stopped(world: World, steps: Steps, figures: Figures) -> None:
    with steps.step("stop, proved") as step:
        assert world.engines(), "the engine was to be kept"
        began = time.monotonic()
        (ended,) = world.json("engine", NAME, "stop")["stopped"]
        figures["stop_s"] = round(time.monotonic() - began, 1)
        assert ended["remains"] == [], ended
        assert ended["pid"] == figures["pid"], ended
        assert world.engines() == []
        assert not is_open(world.port)
        assert world.json("engine", NAME, "status")["engines"] == []
        wait_for(lambda: "SIGTERM received" in world.engine_log(NAME), what="its log shows the TERM", seconds=1)
        step.told = f"{figures['stop_s']} s; no process, port free, not on record"
