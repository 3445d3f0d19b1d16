"""The metrics, each with its definition. Symbols: t0 request sent, t1 first counted chunk, tn last counted chunk,
C output tokens, V verify steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Everything kept of one request. Times are seconds after t0 on a monotonic clock.

    Attributes:
        prompt_id: pairs the request between configs.
        concurrency: requests in flight at its level.
        chunks: (seconds after t0, tokens) for each chunk that brought tokens.
        end_s: end of the response.
        completion_tokens: C, as the engine counted; None when it did not.
        verify_steps: V; None without speculative counts.
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
    histogram: tuple[int, ...] | None = None
    finish_reason: str | None = None
    first_answer_s: float | None = None
    text: str = ""
    reasoning: str = ""
    error: str | None = None
    started_s: float = 0.0

    @property
    def ok(self) -> bool:
        """It counts."""
        return self.error is None

    def to_json(self, *, with_text: bool = True) -> dict[str, Any]:
        """For the store (with text) and for events (without)."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if not with_text:
            del data["text"], data["reasoning"], data["chunks"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RequestRecord:
        """The inverse of `to_json`."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["chunks"] = tuple((float(at), int(tokens)) for at, tokens in known.get("chunks", ()))
        if known.get("histogram") is not None:
            known["histogram"] = tuple(known["histogram"])
        return cls(**known)
