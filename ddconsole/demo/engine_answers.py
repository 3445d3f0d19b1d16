"""The bodies of the toy engine's answers: /generate and /v1/chat/completions, whole and as chunks of a stream."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ddconsole.demo.language import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.demo.engine_model import ToyModel
    from ddconsole.demo.engine_scheduler import Job, Update


def bad_request(message: str) -> dict[str, Any]:
    """The body of a 400."""
    return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}


def spec_details(job: Job) -> dict[str, Any]:
    """The speculative counts of a finished request under SGLang's names; empty without verify steps.

    `spec_accept_length` is C / V: it counts the token of prefill.
    """
    counts = job.generation.counts
    if not counts.verify_steps:
        return {}
    return {
        "spec_accept_length": len(job.generation.output) / counts.verify_steps,
        "spec_accept_rate": counts.accepted / counts.proposed if counts.proposed else 0.0,
        "spec_verify_ct": counts.verify_steps,
        "spec_num_correct_drafts": counts.accepted,
        "spec_num_proposed_drafts": counts.proposed,
        "spec_correct_drafts_histogram": list(counts.histogram),
    }


def generate(model: ToyModel, job: Job, update: Update, *, metrics: bool) -> dict[str, Any]:
    """The body of /generate, or one chunk of its stream: text and token counts are cumulative."""
    meta: dict[str, Any] = {
        "id": job.rid,
        "finish_reason": update.finish,
        "prompt_tokens": len(job.prompt),
        "weight_version": "default",
        "num_retractions": 0,
        "reasoning_tokens": 0,
        "completion_tokens": update.completion_tokens,
        "cached_tokens": job.cached_tokens,
        "dp_rank": None,
    }
    if update.finish:
        meta |= _times(job, metrics=metrics) | spec_details(job)
    return {
        "text": model.text(job, update.completion_tokens),
        "output_ids": job.generation.output[: update.completion_tokens],
        "meta_info": meta,
    }


def _times(job: Job, *, metrics: bool) -> dict[str, Any]:
    """`e2e_latency` in seconds; more of them with --enable-metrics."""
    finished = job.finished_at or time.time()
    times: dict[str, Any] = {"e2e_latency": finished - job.received_at}
    if not metrics or job.started_at is None or job.first_token_at is None:
        return times
    decoded = len(job.generation.output) - 1
    return times | {
        "queue_time": job.started_at - job.received_at,
        "first_token_latency": job.first_token_at - job.received_at,
        "decode_throughput": decoded / max(finished - job.first_token_at, 1e-6),
        "request_received_ts": job.received_at,
        "forward_entry_time": job.started_at,
        "prefill_finished_time": job.first_token_at,
        "request_finished_ts": finished,
    }


class Chat:
    """One chat completion. `body` is the request, for what it wants to be told."""

    def __init__(self, model_name: str, job: Job, model: ToyModel, body: dict[str, Any]) -> None:
        options = body.get("stream_options") or {}
        self._usage_at_end = bool(options.get("include_usage"))
        self._usage_always = bool(options.get("continuous_usage_stats"))
        self._spec = bool(body.get("return_spec_tokens_details"))
        self._name = model_name
        self._job = job
        self._model = model
        self._created = int(time.time())
        self._sent = ""

    def whole(self, update: Update) -> dict[str, Any]:
        """The answer in one piece."""
        message = {
            "role": "assistant",
            "content": self._model.text(self._job, update.completion_tokens),
            "reasoning_content": None,
            "tool_calls": None,
        }
        choice = {"index": 0, "message": message, "logprobs": None, **_finish(update)}
        body = self._head("chat.completion") | {"choices": [choice], "usage": self._usage(update)}
        return body | (self._sglext() if self._spec else {})

    def opening(self) -> dict[str, Any]:
        """The first chunk, which brings the role and no text."""
        return self._chunk({"role": "assistant", "content": ""})

    def chunks(self, update: Update) -> Iterator[dict[str, Any]]:
        """The chunks of one update: new text, and at the end why, speculative counts and usage as asked for."""
        text = self._model.text(self._job, update.completion_tokens)
        if new := text[len(self._sent) :]:
            self._sent = text
            yield self._chunk({"content": new}) | self._running_usage(update)
        if not update.finish:
            return
        yield self._chunk({}, update) | self._running_usage(update)
        if self._spec:
            yield self._head("chat.completion.chunk") | {"choices": []} | self._sglext()
        if self._usage_at_end:
            yield self._head("chat.completion.chunk") | {"choices": [], "usage": self._usage(update)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._job.rid, "object": kind, "created": self._created, "model": self._name}

    def _chunk(self, delta: dict[str, Any], last: Update | None = None) -> dict[str, Any]:
        ending = _finish(last) if last else {"finish_reason": None, "matched_stop": None}
        choice = {"index": 0, "delta": {"reasoning_content": None, **delta}, "logprobs": None, **ending}
        return self._head("chat.completion.chunk") | {"choices": [choice]}

    def _sglext(self) -> dict[str, Any]:
        return {"sglext": {"spec_tokens_details": spec_details(self._job)}}

    def _running_usage(self, update: Update) -> dict[str, Any]:
        return {"usage": self._usage(update)} if self._usage_always else {}

    def _usage(self, update: Update) -> dict[str, Any]:
        prompt, completion = len(self._job.prompt), update.completion_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + completion,
            "completion_tokens": completion,
            "prompt_tokens_details": None,
            "reasoning_tokens": 0,
            "completion_tokens_details": None,
        }


def _finish(update: Update) -> dict[str, Any]:
    kind = update.finish["type"] if update.finish else None
    return {"finish_reason": kind, "matched_stop": END if kind == "stop" else None}
