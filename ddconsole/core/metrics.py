"""The metrics of requests, each with its definition and whose definition it is.

Symbols: t0 request sent, t1 first counted chunk, tn last counted chunk, tend end of the response, C output tokens,
V verify steps. Times are seconds here; `core/levels.py` gives them out in milliseconds, with the unit in the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from ddconsole.core.stats import ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


COLD, WARM = "cold", "warm"
"""What a request found in the engine's prefix cache: nothing to speak of, or its prompt."""

WARM_SHARE = 0.5
"""Share of a prompt's tokens in the cache from which it is warm. A chat template's head, which all prompts share, is
less; of a prompt that was asked before, all but its last page is there."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Everything kept of one request. Times are seconds after t0 on a monotonic clock.

    Attributes:
        prompt_id: pairs the request between configs.
        concurrency: requests in flight at its level; 0 in an open loop, which holds no number of them.
        chunks: (seconds after t0, tokens) for each chunk that brought content; 0 tokens where the engine did not
            say how many a chunk held.
        end_s: end of the response.
        completion_tokens: C, as the engine counted; None when it did not.
        verify_steps: V; None without speculative counts.
        accepted_drafts: drafts that the target accepted, the bonus token not counted.
        proposed_drafts: drafts that were offered to it; what that counts of a tree differs between forks.
        histogram: element k counts the verify steps that accepted k drafts.
        first_answer_s: seconds after t0 of the first token that is not reasoning; None when none came.
        tool_calls: text of its tool calls.
        started_s: t0, in seconds after the start of its level.
        rate: requests a second that its open loop offered; None in a closed loop.
        held_s: how long it waited for a free place after its due time, because the open loop's cap was reached.
        server_ttft_s, server_e2e_s: the engine's own times of it, without the tunnel; None when it did not say.
        asked_before: how often its prompt was sent before in its level; None where that says nothing, because it is
            the first time and the cache was not emptied before.
        error: why it does not count, or None. A request without usable counts is a failed request.
    """

    prompt_id: str
    concurrency: int = 1
    chunks: tuple[tuple[float, int], ...] = ()
    end_s: float = 0.0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    verify_steps: int | None = None
    accepted_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] | None = None
    finish_reason: str | None = None
    first_answer_s: float | None = None
    text: str = ""
    reasoning: str = ""
    tool_calls: str = ""
    error: str | None = None
    started_s: float = 0.0
    rate: float | None = None
    held_s: float = 0.0
    server_ttft_s: float | None = None
    server_e2e_s: float | None = None
    asked_before: int | None = None

    @property
    def prefix(self) -> str | None:
        """`cold` or `warm`: by the engine's `cached_tokens` where it tells them, else by the first use of its prompt
        behind an emptied cache. None where neither is known."""
        if self.cached_tokens is not None and self.prompt_tokens:
            return WARM if self.cached_tokens >= WARM_SHARE * self.prompt_tokens else COLD
        return None if self.asked_before is None else WARM if self.asked_before else COLD

    @property
    def ok(self) -> bool:
        """It counts."""
        return self.error is None

    def to_json(self, *, with_text: bool = True) -> dict[str, Any]:
        """For the store (with text) and for events (without)."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"prefix": self.prefix}
        if not with_text:
            del data["text"], data["reasoning"], data["tool_calls"], data["chunks"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RequestRecord:
        """The inverse of `to_json`."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["chunks"] = tuple((float(at), int(tokens)) for at, tokens in known.get("chunks", ()))
        if known.get("histogram") is not None:
            known["histogram"] = tuple(known["histogram"])
        return cls(**known)


def ttft(record: RequestRecord) -> float | None:
    """Time to first token, seconds: t1 − t0. t1 is the first chunk that brought a token of any kind, reasoning
    included (AIPerf's TTFT; a role-only or empty delta does not count)."""
    return record.chunks[0][0] if record.chunks else None


def ttfo(record: RequestRecord) -> float | None:
    """Time to first output, seconds: from t0 to the first token that is not reasoning (AIPerf's TTFO)."""
    return record.first_answer_s


def e2e(record: RequestRecord) -> float:
    """End-to-end latency, seconds: tend − t0, tend being the end of the response, its end mark included
    (SGLang's and GuideLLM's latency)."""
    return record.end_s


def decode_s(record: RequestRecord) -> float | None:
    """Decode time, seconds: tn − t1. None with fewer than two chunks, which give no interval."""
    return record.chunks[-1][0] - record.chunks[0][0] if len(record.chunks) > 1 else None


def tpot(record: RequestRecord) -> float | None:
    """Time per output token after the first, seconds: (tn − t1)/(C − 1).

    vLLM's TPOT and AIPerf's, GuideLLM's and genai-perf's ITL. None with fewer than two tokens.
    """
    after_first = (record.completion_tokens or 0) - 1
    decode = decode_s(record)
    return None if decode is None or after_first < 1 else decode / after_first


def itl(record: RequestRecord) -> tuple[float, ...]:
    """Inter-token latencies, seconds: each chunk's gap ÷ its tokens, repeated once a token (SGLang's native ITL).

    Empty where it is not known how many tokens a chunk held: a gap between chunks is not a gap between tokens.
    """
    chunks = counted_chunks(record)
    if chunks is None:
        return ()
    gaps: list[float] = []
    since = chunks[0][0] if chunks else 0.0
    for at, tokens in chunks[1:]:
        if tokens:
            gaps += [(at - since) / tokens] * tokens
            since = at
    return tuple(gaps)


def counted_chunks(record: RequestRecord) -> tuple[tuple[float, int], ...] | None:
    """The chunks with the tokens of each; None where those are not known.

    They are known where the engine said so in every chunk, and where there are as many chunks as tokens: each brought
    text, so each holds at least one token, so each holds exactly one.
    """
    if sum(tokens for _, tokens in record.chunks) == record.completion_tokens:
        return record.chunks
    untold = not any(tokens for _, tokens in record.chunks)
    if untold and record.chunks and len(record.chunks) == record.completion_tokens:
        return tuple((at, 1) for at, _ in record.chunks)
    return None


def chunk_gaps(record: RequestRecord) -> tuple[float, ...]:
    """Gaps between chunks, seconds: vLLM's "ITL" and AIPerf's ICL. One value a chunk, however many tokens it holds."""
    return tuple(at - before for (before, _), (at, _) in pairwise(record.chunks))


def decode_rate(record: RequestRecord) -> float | None:
    """Tokens a second while decoding: (C − 1)/(tn − t1), the inverse of `tpot` (AIPerf's TPS per user)."""
    per_token = tpot(record)
    return ratio(1.0, per_token) if per_token is not None else None


def e2e_rate(record: RequestRecord) -> float | None:
    """Tokens a second over the whole request: C/E2E (GuideLLM's per-request rate)."""
    return ratio(record.completion_tokens or 0, record.end_s)


def tau(record: RequestRecord) -> float | None:
    """Acceptance length of one request: C/V, the bonus token included (SGLang's `spec_accept_length`)."""
    if record.completion_tokens is None or not record.verify_steps:
        return None
    return record.completion_tokens / record.verify_steps


def histogram_sum(records: Iterable[RequestRecord]) -> tuple[int, ...] | None:
    """Sum of the accept histograms: element k counts the verify steps that accepted k drafts. None where none came."""
    rows = [record.histogram for record in records if record.histogram is not None]
    if not rows:
        return None
    return tuple(sum(column) for column in zip_longest(*rows, fillvalue=0))


def acceptance_by_position(histogram: Sequence[int]) -> tuple[float, ...]:
    """Share of the verify steps that accepted a draft at depth 1, 2, …: Σ(k ≥ depth)/Σ."""
    steps = sum(histogram)
    if not steps:
        return ()
    return tuple(sum(histogram[depth:]) / steps for depth in range(1, len(histogram)))
