"""One request, streamed and timed: every way in which it can go wrong becomes a record that says so.

A request counts when its stream came to its end, brought at least one token, and said how many it brought. All else is
a failed request with the server's own words kept, whose tokens and times enter no average.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import httpx

from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Answer
from ddconsole.passes.sse import EventTooLargeError, SseDecoder
from ddconsole.passes.wire import ARRIVALS, IDLE_CONNECTION_S, LeanTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.experiment import Workload
    from ddconsole.core.ports import Clock, HttpRequest, Prompt, RequestDialect

ERROR_CHARS = 500
"""A record keeps this much of what went wrong."""

CONNECT_S = 15.0
"""Seconds to reach the engine through the tunnel."""

STALL_S = 120.0
"""Seconds without an event before a request is given up."""

READ_OUT_S = 1.0
"""How long the end of the response may take after the end mark; it is outside of every measured time."""

BODY_BYTES = 64 * 1024
"""How much of an error answer is read."""

ABORTED = frozenset({"abort", "error"})
"""Finish reasons with which an engine gives a request up."""


def open_client(
    base_url: str, *, streams: int = 1, stall_s: float = STALL_S, clock: Clock | None = None
) -> httpx.AsyncClient:
    """A client for up to `streams` requests at once.

    Proxies of the environment are for the world, not for the tunnel; compression would hold chunks back.

    Args:
        clock: that of the requests; what arrives is stamped by it.
    """
    limits = httpx.Limits(max_connections=streams + 1, keepalive_expiry=IDLE_CONNECTION_S)
    lean = LeanTransport(time.monotonic if clock is None else clock.monotonic)
    return httpx.AsyncClient(
        base_url=base_url,
        trust_env=False,
        follow_redirects=False,
        transport=lean if base_url.startswith("http://") else None,
        headers={"Accept-Encoding": "identity", "Accept": "text/event-stream", "Cache-Control": "no-store"},
        limits=limits,
        timeout=httpx.Timeout(stall_s, connect=CONNECT_S, pool=None),
    )


class _StreamFaultError(Exception):
    """Why a request does not count: a stable word, and the server's text."""

    def __init__(self, word: str, text: str) -> None:
        super().__init__(f"{word}: {text}")


@dataclass(slots=True)
class _Stream:
    """A request on its way. Times are seconds after t0."""

    clock: Clock
    dialect: RequestDialect
    stall_s: float
    t0: float
    answer: Answer = field(default_factory=Answer)
    chunks: list[tuple[float, int]] = field(default_factory=list)
    first_answer_s: float | None = None
    last_event_s: float = 0.0
    end_s: float | None = None
    head: bytes = b""

    def elapsed(self) -> float:
        return max(self.clock.monotonic() - self.t0, 0.0)

    def take(self, events: list[str], at: float) -> None:
        """Read events that came together at `at`."""
        answer = self.answer
        for data in events:
            said, thought, counted = self._answered(), len(answer.reasoning), answer.completion_tokens is not None
            answer.new_tokens = 0
            self.dialect.read(answer, data)
            if answer.error is not None:
                raise _StreamFaultError("aborted" if answer.finish_reason in ABORTED else "stream-error", answer.error)
            spoke = self._answered() > said
            if spoke or len(answer.reasoning) > thought or self._brought_tokens(counted):
                self.chunks.append((at, answer.new_tokens))
                if spoke and self.first_answer_s is None:
                    self.first_answer_s = at
        self.last_event_s = at

    def _answered(self) -> int:
        """Characters of the answer so far; a tool call is one too, reasoning is not."""
        return len(self.answer.text) + len(self.answer.tool_calls)

    def _brought_tokens(self, counted: bool) -> bool:
        """New tokens without new text, such as the end token's. A last chunk that counts what all the others brought
        is no such chunk: it only tells the usage."""
        return self.answer.new_tokens > 0 and (counted or not self.chunks)

    def check_stall(self, at: float) -> None:
        """Comments keep a connection open, but only events are progress."""
        if at - self.last_event_s > self.stall_s:
            raise _StreamFaultError("stall", f"no event for {at - self.last_event_s:.0f} s")


async def ask(
    client: httpx.AsyncClient,
    dialect: RequestDialect,
    prompt: Prompt,
    workload: Workload,
    *,
    clock: Clock,
    concurrency: int = 1,
    ignore_eos: bool = False,
    stall_s: float = STALL_S,
    origin: float | None = None,
    rate: float | None = None,
    held_s: float = 0.0,
    asked_before: int | None = None,
) -> RequestRecord:
    """Send `prompt`, read the stream to its end, and tell all of it.

    Args:
        client: from `open_client`.
        concurrency: requests in flight at this level, for the record.
        stall_s: seconds without an event after which the request is given up.
        origin: monotonic time at which the level began, for the record's `started_s`.
        ignore_eos: the answer is to have exactly the prompt's `max_tokens`; one of another length does not count.
        rate, held_s: of an open loop, for the record.
        asked_before: times that the prompt was sent before, for the record.

    Returns:
        A record; `error` says in a stable word and the server's text why it does not count: `connect`, `http-503`,
        `stream-error`, `cut`, `stall`, `empty`, `aborted`, `no-usage`, `wrong-length`, `transport`.
    """
    request = dialect.request(prompt, workload, ignore_eos=ignore_eos)
    body = json.dumps(request.body, ensure_ascii=False).encode()
    t0 = clock.monotonic()
    stream = _Stream(clock, dialect, stall_s, t0)
    error = None
    try:
        await _receive(client, request, body, stream)
        _judge(stream, prompt.max_tokens if ignore_eos else None)
    except _StreamFaultError as fault:
        error = str(fault)
    except (httpx.HTTPError, EventTooLargeError) as fault:
        error = _transport_error(fault, stream)
    record = _record(stream, prompt, error)
    return replace(
        record,
        concurrency=concurrency,
        started_s=0.0 if origin is None else t0 - origin,
        rate=rate,
        held_s=held_s,
        asked_before=asked_before,
    )


async def _receive(client: httpx.AsyncClient, request: HttpRequest, body: bytes, stream: _Stream) -> None:
    """Read the stream to its end mark, or to the end of the response where none comes."""
    headers = {"Content-Type": "application/json", **request.headers}
    decoder = SseDecoder()
    async with client.stream("POST", request.path, content=body, headers=headers) as response:
        if response.status_code != 200:
            text = await _body_text(response)
            raise _StreamFaultError(f"http-{response.status_code}", text or response.reason_phrase)
        chunks = _arrivals(response, stream.clock)
        async for now, data in chunks:
            at = max(now - stream.t0, 0.0)
            events = decoder.feed(data)
            if events:
                stream.take(events, at)
                if stream.answer.done:
                    break
            else:
                stream.check_stall(at)
            if not decoder.events and len(stream.head) < ERROR_CHARS:
                stream.head += data[:ERROR_CHARS]
        stream.take(decoder.close(), stream.elapsed())
        stream.end_s = stream.elapsed()
        await _read_out(chunks)


async def _read_out(chunks: AsyncIterator[tuple[float, bytes]]) -> None:
    """Take what follows the end mark, so that the connection can serve the next request; not for long."""
    with contextlib.suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(READ_OUT_S):
            async for _ in chunks:
                pass


def _arrivals(response: httpx.Response, clock: Clock) -> AsyncIterator[tuple[float, bytes]]:
    """The body with its times; decoded only where the server compressed it although it was asked not to."""
    arrivals: AsyncIterator[tuple[float, bytes]] | None = response.extensions.get(ARRIVALS)
    encoding = response.headers.get("content-encoding", "identity")
    return arrivals if arrivals is not None and encoding == "identity" else _decoded(response, clock)


async def _decoded(response: httpx.Response, clock: Clock) -> AsyncIterator[tuple[float, bytes]]:
    async for data in response.aiter_bytes():
        yield clock.monotonic(), data


async def _body_text(response: httpx.Response) -> str:
    """The beginning of an error answer, on one line."""
    data = b""
    async for part in response.aiter_bytes():
        data += part
        if len(data) > BODY_BYTES:
            break
    return " ".join(data[:BODY_BYTES].decode("utf-8", "replace").split())


def _judge(stream: _Stream, exact_tokens: int | None) -> None:
    """Whether a stream that ended by itself counts, and has the length that was asked for where one was.

    Without an end mark it counts only if it told its finish reason and its counts: then nothing can be missing.
    """
    answer = stream.answer
    if answer.finish_reason in ABORTED:
        raise _StreamFaultError("aborted", f"the engine gave the request up (finish reason {answer.finish_reason})")
    whole = answer.done or (answer.finish_reason is not None and answer.completion_tokens is not None)
    if not whole:
        said = " ".join(stream.head.decode("utf-8", "replace").split())
        came = f"the stream ended after {len(stream.chunks)} chunks, without an end mark"
        raise _StreamFaultError("cut", f"{came}: {said}" if said else came)
    if not stream.chunks:
        raise _StreamFaultError("empty", "the stream ended without a token")
    if not answer.completion_tokens:
        raise _StreamFaultError("no-usage", "the engine did not say how many tokens it made")
    if exact_tokens is not None and answer.completion_tokens != exact_tokens:
        text = f"exactly {exact_tokens} tokens were asked for, the engine made {answer.completion_tokens}"
        raise _StreamFaultError("wrong-length", text)


def _transport_error(fault: Exception, stream: _Stream) -> str:
    """The word for what httpx met, and its text."""
    if isinstance(fault, httpx.ConnectError | httpx.ConnectTimeout):
        word = "connect"
    elif isinstance(fault, httpx.ReadTimeout):
        word, fault = "stall", TimeoutError(f"no byte for {stream.stall_s:.0f} s")
    elif isinstance(fault, httpx.RemoteProtocolError | httpx.ReadError):
        word = "cut"
    else:
        word = "transport"
    text = str(fault) or type(fault).__name__
    return f"{word}: {text} (after {len(stream.chunks)} chunks)"


def _record(stream: _Stream, prompt: Prompt, error: str | None) -> RequestRecord:
    answer = stream.answer
    return RequestRecord(
        prompt_id=prompt.id,
        chunks=tuple(stream.chunks),
        end_s=stream.elapsed() if stream.end_s is None else stream.end_s,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        completion_tokens=answer.completion_tokens,
        verify_steps=answer.verify_steps,
        accepted_drafts=answer.accepted_drafts,
        proposed_drafts=answer.proposed_drafts,
        histogram=answer.histogram,
        finish_reason=answer.finish_reason,
        first_answer_s=stream.first_answer_s,
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        error=None if error is None else error[:ERROR_CHARS],
        server_ttft_s=answer.server_ttft_s,
        server_e2e_s=answer.server_e2e_s,
    )
