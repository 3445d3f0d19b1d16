"""The same requests by other tools' definitions, where those differ from ours, so that numbers can be compared by name.

Symbols as in `core/metrics.py`. Read in the sources of AIPerf 0.13, GuideLLM 0.8.1, llmperf and SGLang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.metrics import tau, ttft
from ddconsole.core.stats import ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ddconsole.core.metrics import RequestRecord


def sglang_tpot(record: RequestRecord) -> float | None:
    """SGLang's bench TPOT, seconds: (tend − t1)/(C − 1); its latency runs to the end mark."""
    first = ttft(record)
    if first is None or (record.completion_tokens or 0) < 2:
        return None
    return (record.end_s - first) / ((record.completion_tokens or 0) - 1)


def guidellm_tpot(record: RequestRecord) -> float | None:
    """GuideLLM's TPOT and llmperf's ITL, seconds: (tn − t0)/C, the time to the first token included."""
    return ratio(record.chunks[-1][0], record.completion_tokens or 0) if record.chunks else None


def aiperf_e2e_rate(record: RequestRecord) -> float | None:
    """AIPerf's E2E tokens a second per user: C/(tn − t0), without the end mark."""
    return ratio(record.completion_tokens or 0, record.chunks[-1][0]) if record.chunks else None


def chunk_rate(record: RequestRecord) -> float | None:
    """Chunks a second while decoding, the number that vLLM's "peak" counts; not tokens when a chunk holds several."""
    if len(record.chunks) < 2:
        return None
    return ratio(len(record.chunks) - 1, record.chunks[-1][0] - record.chunks[0][0])


def accepted_per_step(record: RequestRecord) -> float | None:
    """vLLM's acceptance length: 1 + accepted drafts / verify steps. Below C/V: the first token is not in it."""
    if record.accepted_drafts is None or not record.verify_steps:
        return None
    return 1 + record.accepted_drafts / record.verify_steps


def mean_tau(records: Sequence[RequestRecord]) -> float | None:
    """Mean of the requests' C/V, as AIPerf and some model cards give it. Long answers weigh no more than short ones."""
    values = [value for record in records if (value := tau(record)) is not None]
    return ratio(sum(values), len(values))


def completion_weighted_tau(records: Sequence[RequestRecord]) -> float | None:
    """Σ(C · C/V)/ΣC: long answers weigh more than they have steps."""
    pairs = [(record.completion_tokens or 0, value) for record in records if (value := tau(record)) is not None]
    return ratio(sum(tokens * value for tokens, value in pairs), sum(tokens for tokens, _ in pairs))


# --- one concurrency level under other tools' field names, where it is the same quantity


def aiperf_level(level: Mapping[str, Any]) -> dict[str, Any]:
    """A level's JSON as entries of AIPerf's `profile_export_aiperf.json` (0.13 and 0.14): `{unit, avg, p50, …}`.

    Their inter_token_latency is our TPOT. Their times to first token are over all requests, ours leave out those that
    found their prompt in the prefix cache where a level has both kinds: `count` says how many it is of. Not offered,
    since they are other quantities: request_latency (theirs ends at the last token, our E2E at the end of the
    response), goodput (theirs fails a one-token answer), and output_token_throughput_per_user, which is a distribution
    of 1/ITL.
    """
    found: dict[str, Any] = {
        "request_count": _single("requests", level["requests"] - level["failed"]),
        "error_request_count": _single("requests", level["failed"]),
        "benchmark_duration": _single("sec", level["wall_s"]),
        "request_throughput": _single("requests/sec", level["requests_per_s"]),
        "output_token_throughput": _single("tokens/sec", level["output_tok_s"]),
        "time_to_first_token": _spread(level.get("ttft_ms")),
        "time_to_first_output_token": _spread(level.get("ttfo_ms")),
        "inter_token_latency": _spread(level.get("tpot_ms")),
    }
    return {name: value for name, value in found.items() if value is not None}


def sglang_level(level: Mapping[str, Any]) -> dict[str, Any]:
    """A level's JSON under the names of SGLang's `bench_serving` output.

    Not offered, since they are other quantities: `*_tpot_ms` (theirs runs to the end mark), `accept_length` (the
    server's since its boot), `concurrency` (theirs is Σ latency / duration; the asked one is `max_concurrency`).
    Their duration also holds one `/server_info` call. Their TTFT and E2E are over all requests, ours leave out those
    that found their prompt in the prefix cache where a level has both kinds.
    """
    found: dict[str, Any] = {
        "completed": level["requests"] - level["failed"],
        "duration": level["wall_s"],
        "max_concurrency": level["concurrency"],
        "total_input_tokens": level["prompt_tokens"],
        "total_output_tokens": level["completion_tokens"],
        "request_throughput": level["requests_per_s"],
        "output_throughput": level["output_tok_s"],
    }
    for theirs, ours in (("ttft", "ttft_ms"), ("itl", "itl_ms"), ("e2e_latency", "e2e_ms")):
        spread = level.get(ours) or {}
        for word, key in (("mean", "mean"), ("median", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99")):
            found[f"{word}_{theirs}_ms"] = spread.get(key)
    return {name: value for name, value in found.items() if value is not None}


NAMINGS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"aiperf": aiperf_level, "sglang": sglang_level}
"""Whose names a level can be given out under."""


def _single(unit: str, value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"unit": unit, "avg": value}


def _spread(spread: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """AIPerf's statistics block of one of our spreads, in milliseconds."""
    if not spread:
        return None
    figures = {name: spread[name] for name in ("p50", "p90", "p95", "p99")}
    return {"unit": "ms", "avg": spread["mean"], **figures, "count": spread["n"]}
