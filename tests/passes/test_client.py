"""One request, streamed: counts and stamps where it counts, and a record with an error for every fault."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fakes.sse_server import HEAD, PlainDialect, Request, events, pieces, says, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.metrics import RequestRecord, itl
from ddconsole.core.ports import Answer, Prompt
from ddconsole.passes.client import ERROR_CHARS, ask, open_client

GOOD = ({"t": "a", "n": 1}, {"t": "bcd", "n": 4}, {"n": 4, "v": 2, "a": 2, "h": [0, 1, 1], "finish": "stop"}, "[DONE]")

Send = Callable[[bytes], Awaitable[None]]


class HearingDialect(PlainDialect):
    """Tells when it has read reasoning."""

    def __init__(self) -> None:
        self.heard_reasoning = asyncio.Event()

    def read(self, answer: Answer, data: str) -> None:
        super().read(answer, data)
        if answer.reasoning:
            self.heard_reasoning.set()


async def asked(url: str, stall_s: float = 10.0, **options: Any) -> RequestRecord:
    async with open_client(url, stall_s=stall_s) as client:
        return await ask(
            client, PlainDialect(), Prompt("p", "hello", 9), Workload(), clock=SystemClock(), stall_s=stall_s, **options
        )


async def answer_to(*parts: bytes, stall_s: float = 10.0) -> RequestRecord:
    async with serving(says(*parts)) as server:
        return await asked(server.url, stall_s)


async def test_counts_and_text() -> None:
    """Counts come from the engine, the text is whole, the histogram and finish reason are kept."""
    record = await answer_to(events(*GOOD))
    assert record.ok
    assert (record.text, record.completion_tokens, record.verify_steps, record.accepted_drafts) == ("abcd", 4, 2, 2)
    assert (record.histogram, record.finish_reason) == ((0, 1, 1), "stop")
    assert [tokens for _, tokens in record.chunks] == [1, 3]
    assert 0 < record.chunks[0][0] <= record.chunks[-1][0] <= record.end_s


async def test_bytes_cut_anywhere() -> None:
    """The same stream in pieces of 1, 3 and 7 bytes tells the same."""
    data = b": ping\n\n" + events(*GOOD).replace(b"\n\n", b"\r\n\r\n")
    for size in (1, 3, 7):
        record = await answer_to(*pieces(data, [size]))
        assert (record.ok, record.text, record.completion_tokens) == (True, "abcd", 4)


async def test_what_is_sent() -> None:
    """No compression is asked for, and the dialect's body goes out as JSON."""
    async with serving(says(events(*GOOD))) as server:
        await asked(server.url, ignore_eos=True)
    request = server.requests[0]
    assert request.headers["accept-encoding"] == "identity"
    assert (request.body["prompt"], request.body["max"], request.body["ignore_eos"]) == ("hello", 9, True)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tunnel is on loopback; a proxy of the environment cannot reach it."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await answer_to(events(*GOOD))).ok


async def test_first_token_is_reasoning() -> None:
    """TTFT starts at the first token of any kind; the first answer is told apart."""
    dialect = HearingDialect()

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD + events({"role": "assistant", "t": ""}) + events({"r": "hm", "n": 1}))
        await dialect.heard_reasoning.wait()
        await send(events({"t": "yes", "n": 2}, {"n": 2, "finish": "stop"}, "[DONE]"))

    async with serving(reply) as server, open_client(server.url) as client:
        record = await ask(client, dialect, Prompt("p", "hello", 9), Workload(), clock=SystemClock())
    assert record.first_answer_s is not None
    assert record.first_answer_s > record.chunks[0][0]
    assert (record.text, record.reasoning) == ("yes", "hm")


async def test_only_reasoning_has_no_first_answer() -> None:
    """max_tokens may end inside of the reasoning: a TTFT, and no answer."""
    record = await answer_to(events({"r": "hm", "n": 3}, {"n": 3, "finish": "length"}, "[DONE]"))
    assert record.ok
    assert record.first_answer_s is None
    assert record.text == ""


async def test_usage_only_at_the_end() -> None:
    """Content without counts is stamped with 0 tokens, and the usage chunk is no content."""
    record = await answer_to(events({"t": "a"}, {"t": "b"}, {"n": 7, "finish": "stop"}, "[DONE]"))
    assert record.ok
    assert record.completion_tokens == 7
    assert [tokens for _, tokens in record.chunks] == [0, 0]
    assert itl(record) == ()


async def test_no_end_mark_but_all_told() -> None:
    """A stream with finish reason and counts has nothing missing, [DONE] or not."""
    assert (await answer_to(events(*GOOD[:-1]))).ok


async def test_what_follows_the_end_mark_is_outside_of_the_time() -> None:
    """A server that keeps the response open after [DONE] does not lengthen the request."""
    forever = asyncio.Event()

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD + events(*GOOD))
        await forever.wait()

    async with serving(reply) as server:
        record = await asked(server.url)
    assert record.ok
    assert record.end_s < 0.5


FAULTS: dict[str, tuple[bytes, str, str]] = {
    "error after chunks": (
        events(*GOOD[:2], {"error": "EngineCore encountered an issue"}, "[DONE]"),
        "stream-error",
        "EngineCore encountered an issue",
    ),
    "error first": (events({"error": "boom"}), "stream-error", "boom"),
    "closed in the middle": (events(*GOOD[:2]), "cut", "after 2 chunks"),
    "only the end mark": (events("[DONE]"), "empty", "without a token"),
    "aborted": (events(GOOD[0], {"n": 1, "finish": "abort"}, "[DONE]"), "aborted", "abort"),
    "finished by an error": (events(GOOD[0], {"n": 1, "finish": "error"}, "[DONE]"), "aborted", "error"),
    "no usage": (events({"t": "a"}, {"t": "b", "finish": "stop"}, "[DONE]"), "no-usage", "did not say"),
    "zero tokens": (events({"t": "a", "n": 0, "finish": "stop"}, "[DONE]"), "no-usage", "did not say"),
    "nothing": (b"", "cut", "without an end mark"),
    "a page instead of a stream": (b"<html>gateway timeout</html>", "cut", "gateway timeout"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_fault_in_a_200_stream(name: str) -> None:
    """Each is a failed request with a stable word and the server's text."""
    data, word, text = FAULTS[name]
    record = await answer_to(data)
    assert not record.ok
    assert record.error is not None
    assert record.error.startswith(f"{word}: ")
    assert text in record.error


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_http_error_keeps_the_servers_text(status: int) -> None:
    """The status is in the word, the body in the text, and both are bounded."""
    body = json.dumps({"error": {"message": "context too long"}}).encode() + b" " * 10 + b"x" * 2000

    async def reply(_request: Request, send: Send) -> None:
        head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        await send(head.encode() + body)

    async with serving(reply) as server:
        record = await asked(server.url)
    assert record.error is not None
    assert record.error.startswith(f"http-{status}: ")
    assert "context too long" in record.error
    assert len(record.error) <= ERROR_CHARS


async def test_chunked_body_cut_by_a_reset() -> None:
    """A chunked response without its last chunk is cut, whatever was in it."""

    async def reply(_request: Request, send: Send) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        data = events(*GOOD[:2])
        await send(head + f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async with serving(reply) as server:
        record = await asked(server.url)
    assert record.error is not None
    assert record.error.startswith("cut: ")
    assert len(record.chunks) == 2


async def test_silence_is_a_stall() -> None:
    """No byte for longer than allowed."""
    forever = asyncio.Event()

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD + events(*GOOD[:1]))
        await forever.wait()

    async with serving(reply) as server:
        record = await asked(server.url, stall_s=0.2)
    assert record.error is not None
    assert record.error.startswith("stall: ")


async def test_comments_alone_are_a_stall() -> None:
    """Keep-alives hold the connection open, but they are no progress."""

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD + events(*GOOD[:1]))
        while True:
            await send(b": ping\n\n")
            await asyncio.sleep(0.02)

    async with serving(reply) as server:
        record = await asked(server.url, stall_s=0.2)
    assert record.error is not None
    assert record.error.startswith("stall: no event for")


async def test_nobody_listens() -> None:
    """A refused connection has its own word."""
    async with serving(says()) as server:
        url = server.url
    record = await asked(url)
    assert record.error is not None
    assert record.error.startswith("connect: ")


async def test_unasked_compression_is_read() -> None:
    """A server that compresses all the same is understood."""
    data = gzip.compress(events(*GOOD))

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + data)

    async with serving(reply) as server:
        record = await asked(server.url)
    assert (record.ok, record.text) == (True, "abcd")


async def test_cancelling_ends_the_request() -> None:
    """A cancelled pass leaves no connection behind."""
    arrived, forever = asyncio.Event(), asyncio.Event()

    async def reply(_request: Request, send: Send) -> None:
        await send(HEAD)
        arrived.set()
        await forever.wait()

    async with serving(reply) as server:
        task = asyncio.create_task(asked(server.url))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
