"""What the toy engine tells about itself: /server_info, /model_info, /v1/models and /metrics."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Algorithm
from ddconsole.demo.engine_boot import BEFORE_GB, DRAFT_GB, DRAFT_POOL_GB, GRAPHS_GB, KV_TOKENS, POOL_GB, TARGET_GB
from ddconsole.demo.engine_flags import PROGRAM, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.demo.engine_boot import Boot
    from ddconsole.demo.engine_flags import EngineArgs
    from ddconsole.demo.engine_scheduler import Scheduler


def server_info(args: EngineArgs, boot: Boot, scheduler: Scheduler, status: str) -> dict[str, Any]:
    """All resolved arguments flat, the command as typed, times of the start, and the internal state of one rank.

    `demo_step_scale` is ours: a result measured under another scale than 1 has to be marked.
    """
    return {
        **_server_args(args),
        "launch_command": shlex.join([PROGRAM, *args.argv]),
        "status": status,
        "max_total_num_tokens": KV_TOKENS,
        "max_req_input_len": args.flat["context_length"] - 1,
        "startup_time": {**_rounded(boot.timings), "cuda_graph": _rounded(boot.graph_timings)},
        "version": VERSION,
        "demo_step_scale": args.flat["step_scale"],
        "internal_states": [_internal_state(args, scheduler)],
    }


def _server_args(args: EngineArgs) -> dict[str, Any]:
    return {name: value for name, value in args.flat.items() if name != "step_scale"}


def _internal_state(args: EngineArgs, scheduler: Scheduler) -> dict[str, Any]:
    """As SGLang: the lifetime acceptance length is there only once a line about decoding has been logged."""
    drafts = args.effective.algorithm is not Algorithm.OFF
    state: dict[str, Any] = {
        "world_size": args.ranks,
        "last_gen_throughput": scheduler.last_throughput,
        "effective_max_running_requests_per_dp": args.flat["max_running_requests"],
        "memory_usage": {
            "weight": TARGET_GB + (DRAFT_GB if drafts else 0.0),
            "kvcache": POOL_GB + (DRAFT_POOL_GB if drafts else 0.0),
            "startup_available": BEFORE_GB,
            "token_capacity": KV_TOKENS,
            "graph": GRAPHS_GB * (2 if drafts else 1),
        },
    }
    if scheduler.lifetime.steps:
        state["avg_spec_accept_length"] = scheduler.lifetime.accept_length
    return state


def model_info(args: EngineArgs) -> dict[str, Any]:
    """/model_info."""
    return {
        "model_path": args.flat["model_path"],
        "served_model_name": args.model_name,
        "tokenizer_path": args.flat["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "auto",
        "reasoning_parser": args.flat["reasoning_parser"],
        "tool_call_parser": args.flat["tool_call_parser"],
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "kimi_k25",
        "architectures": ["KimiK25ForConditionalGeneration"],
    }


def models(args: EngineArgs) -> dict[str, Any]:
    """/v1/models."""
    card = {
        "id": args.model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": args.model_name,
        "parent": None,
        "max_model_len": args.flat["context_length"],
    }
    return {"object": "list", "data": [card]}


def metrics(args: EngineArgs, boot: Boot, scheduler: Scheduler) -> str:
    """/metrics in Prometheus' text format, with SGLang's names; its histograms are not offered."""
    unit = {"engine_type": "unified", "model_name": args.model_name}
    rank = {**unit, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
    lines = [*_counters(scheduler, unit), *_gauges(args, scheduler, rank), *_startup(boot, unit)]
    return "\n".join(lines) + "\n"


def _counters(scheduler: Scheduler, labels: dict[str, str]) -> Iterator[str]:
    totals = scheduler.totals
    yield from _metric("prompt_tokens_total", "counter", totals.prompt_tokens, labels)
    yield from _metric("generation_tokens_total", "counter", totals.generation_tokens, labels)
    yield from _metric("cached_tokens_total", "counter", totals.cached_tokens, labels)
    yield from _metric("num_requests_total", "counter", totals.requests, labels)
    yield from _metric("num_aborted_requests_total", "counter", totals.aborted, labels)
    yield from _metric("spec_verify_calls_total", "counter", totals.verify_calls, labels)


def _gauges(args: EngineArgs, scheduler: Scheduler, labels: dict[str, str]) -> Iterator[str]:
    window, totals = scheduler.last_window, scheduler.totals
    depth = (args.effective.block_size or 1) - 1
    proposed = window.steps * depth
    yield from _metric("max_total_num_tokens", "gauge", KV_TOKENS, labels)
    yield from _metric("num_running_reqs", "gauge", len(scheduler.running), labels)
    yield from _metric("num_queue_reqs", "gauge", len(scheduler.waiting), labels)
    yield from _metric("num_used_tokens", "gauge", scheduler.context_tokens, labels)
    yield from _metric("token_usage", "gauge", scheduler.context_tokens / KV_TOKENS, labels)
    yield from _metric("cache_hit_rate", "gauge", totals.cached_tokens / max(totals.prompt_tokens, 1), labels)
    yield from _metric("gen_throughput", "gauge", scheduler.last_throughput, labels)
    yield from _metric("spec_accept_length", "gauge", window.accept_length, labels)
    yield from _metric("spec_accept_rate", "gauge", window.accepted / proposed if proposed else 0, labels)
    yield from _metric("spec_num_draft_tokens", "gauge", args.effective.block_size or 0, labels)


def _startup(boot: Boot, labels: dict[str, str]) -> Iterator[str]:
    yield "# TYPE sglang:startup_time_seconds gauge"
    for name, seconds in boot.timings.items():
        yield _sample("startup_time_seconds", seconds, {**labels, "phase": name})


def _metric(name: str, kind: str, value: float, labels: dict[str, str]) -> Iterator[str]:
    """A metric of one sample, with its type."""
    yield f"# TYPE sglang:{name} {kind}"
    yield _sample(name, value, labels)


def _sample(name: str, value: float, labels: dict[str, str]) -> str:
    text = ",".join(f'{label}="{_escaped(content)}"' for label, content in sorted(labels.items()))
    return f"sglang:{name}{{{text}}} {float(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in seconds.items()}
