"""The same requests by other tools' definitions, where those differ from ours, so that numbers can be compared by name.

Symbols as in `core/metrics.py`. Read in the sources of AIPerf 0.13, GuideLLM 0.8.1, llmperf and SGLang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.metrics import tau, ttft
from ddconsole.core.stats import ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

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
