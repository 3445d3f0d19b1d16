"""The proof that the engine speculates: one real request, its tokens and its verify steps counted."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import httpx

from ddconsole.core.config import Algorithm
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Workload
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Answer, Prompt
from ddconsole.core.progress import Phase

if TYPE_CHECKING:
    from ddconsole.core.config import Config
    from ddconsole.core.ports import RequestDialect
    from ddconsole.engines.sglang.http import EngineHttp

FIRST_REQUEST_TIMEOUT_S: Final = 600.0
"""The first verify step compiles kernels; SGLang gives its own warm-up as long."""

MIN_TOKENS: Final = 16
"""Tokens asked of an engine without a drafter; with one it is at least 2b, as the first token comes from prefill."""

PROMPT: Final = 'def fibonacci(n):\n    """The n-th Fibonacci number."""\n    '
EVENT_LIMIT: Final = 8_000_000
"""Bytes of one server-sent event; more is no answer."""


def tokens_to_ask(config: Config) -> int:
    """At least 2b, so that two whole blocks were drafted."""
    return max(MIN_TOKENS, 2 * (config.block_size or 0))


async def first_request(http: EngineHttp, dialect: RequestDialect, tokens: int) -> RequestRecord:
    """Ask for exactly `tokens` tokens. What goes wrong stands in the record's `error`."""
    request = dialect.request(Prompt("warmup", PROMPT, tokens), Workload(), ignore_eos=True)
    answer, chunks, start = Answer(), list[tuple[float, int]](), time.monotonic()
    try:
        async with (
            asyncio.timeout(FIRST_REQUEST_TIMEOUT_S),
            http.client(FIRST_REQUEST_TIMEOUT_S) as client,
            client.stream("POST", request.path, json=request.body) as response,
        ):
            if response.status_code != httpx.codes.OK:
                body = (await response.aread())[:300].decode("utf-8", "replace")
                answer.error = f"HTTP {response.status_code}: {body}"
            else:
                await _read_events(response, dialect, answer, chunks, start)
    except TimeoutError:
        answer.error = f"no whole answer within {FIRST_REQUEST_TIMEOUT_S:.0f} s"
    except httpx.HTTPError as exc:
        answer.error = f"{type(exc).__name__}: {exc}".rstrip(": ")
    return _record(answer, chunks, time.monotonic() - start)


async def _read_events(
    response: httpx.Response, dialect: RequestDialect, answer: Answer, chunks: list[tuple[float, int]], start: float
) -> None:
    """Feed each event of the stream to the dialect. Only `\\n` ends a line: JSON may hold other line separators."""
    buffer = b""
    async for data in response.aiter_bytes():
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            dialect.read(answer, line.removeprefix(b"data:").strip().decode("utf-8", "replace"))
            if answer.new_tokens:
                chunks.append((time.monotonic() - start, answer.new_tokens))
            if answer.done or answer.error is not None:
                return
        if len(buffer) > EVENT_LIMIT:
            answer.error = "an event without an end"
            return
    if answer.finish_reason is None:
        answer.error = "the stream ended without a finish reason"


def _record(answer: Answer, chunks: list[tuple[float, int]], seconds: float) -> RequestRecord:
    return RequestRecord(
        prompt_id="warmup",
        chunks=tuple(chunks),
        end_s=seconds,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        completion_tokens=answer.completion_tokens,
        verify_steps=answer.verify_steps,
        accepted_drafts=answer.accepted_drafts,
        histogram=answer.histogram,
        finish_reason=answer.finish_reason,
        first_answer_s=chunks[0][0] if chunks else None,
        text=answer.text,
        reasoning=answer.reasoning,
        error=answer.error,
    )


def judge(record: RequestRecord, config: Config) -> Failure | None:
    """Why `record` does not prove that the engine works as configured; None when it does."""
    wanted = tokens_to_ask(config)
    if record.error is not None:
        return Failure(
            "first-request", f"the first request failed: {record.error}", (record.error,),
            "read the end of the log", Phase.WARMUP.value,
        )  # fmt: skip
    if (record.completion_tokens or 0) < wanted:
        what = f"the first request came back with {record.completion_tokens or 'no'} of {wanted} tokens"
        evidence = (f"completion_tokens={record.completion_tokens}", f"finish_reason={record.finish_reason}")
        return Failure("first-request", what, evidence, "read the end of the log", Phase.WARMUP.value)
    if config.algorithm is not Algorithm.OFF and not record.verify_steps:
        what = f"the drafter never engaged: {record.completion_tokens} tokens came without one verify step counted"
        return Failure(
            "drafter-never-engaged", what, (f"completion_tokens={record.completion_tokens}", "spec_verify_ct=0"),
            "the engine decodes without its drafter: look in its log for the drafter being disabled, and check that "
            "this version counts verify steps", Phase.WARMUP.value,
        )  # fmt: skip
    return None
