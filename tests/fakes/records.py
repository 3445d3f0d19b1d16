"""Requests with known figures."""

from __future__ import annotations

from typing import Any

from ddconsole.core.metrics import RequestRecord


def fixture_record(**changes: Any) -> RequestRecord:
    """TTFT 200 ms with 1 token, then 100 chunks 30 ms apart with 80 × 5 + 20 × 4 tokens; C 481, V 100.

    The last content at 3.200 s, the end mark at 3.205 s.
    """
    sizes = ([5, 5, 5, 5, 4] * 20)[:100]
    chunks = [(0.2, 1)] + [(round(0.2 + 0.03 * (index + 1), 6), size) for index, size in enumerate(sizes)]
    fields: dict[str, Any] = {
        "prompt_id": "fixture",
        "chunks": tuple(chunks),
        "end_s": 3.205,
        "completion_tokens": 481,
        "verify_steps": 100,
        "accepted_drafts": 380,
        "finish_reason": "stop",
        "first_answer_s": 0.2,
        "text": "def answer(): return 42",
    }
    return RequestRecord(**fields | changes)


def record(
    prompt: str = "p", tokens: int = 100, steps: int | None = 25, seconds: float = 1.0, **changes: Any
) -> RequestRecord:
    """A request of `tokens` tokens in one first chunk of 1 and one last chunk, at 10 % and 100 % of its time."""
    fields: dict[str, Any] = {
        "prompt_id": prompt,
        "chunks": ((seconds / 10, 1), (seconds, tokens - 1)),
        "end_s": seconds,
        "completion_tokens": tokens,
        "verify_steps": steps,
        "accepted_drafts": None if steps is None else tokens - steps,
        "finish_reason": "stop",
        "first_answer_s": seconds / 10,
        "text": f"The answer to {prompt}.",
    }
    return RequestRecord(**fields | changes)
