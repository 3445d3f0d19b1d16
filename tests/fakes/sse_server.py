"""An HTTP server whose every byte is scripted, and a dialect that reads what it says."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddconsole.core.experiment import Workload
from ddconsole.core.ports import Answer, HttpRequest, Prompt

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass
class Request:
    """What a client sent."""

    headers: dict[str, str]
    body: dict[str, Any]
    path: str = ""


@dataclass
class Server:
    """Where it listens, and what it was sent. `reply` gets each request and a way to send bytes."""

    reply: Callable[[Request, Callable[[bytes], Awaitable[None]]], Awaitable[None]]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    open_now: int = 0
    most_open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = Request(headers, json.loads(body or b"{}"), head[0].split(" ")[1])
            self.requests.append(request)
            self.open_now += 1
            self.most_open = max(self.most_open, self.open_now)
            try:
                await self._answer(request, writer)
            finally:
                self.open_now -= 1

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        await self.reply(request, send)


@contextlib.asynccontextmanager
async def serving(reply: Callable[..., Awaitable[None]]) -> AsyncIterator[Server]:
    """A server on a free loopback port, gone at the end with all its connections."""
    server = Server(reply)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await server.serve(reader, writer)
        finally:
            tasks.discard(task)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listening.wait_closed()
        await asyncio.sleep(0)  # closed transports let go of their sockets in the next turn of the loop


def events(*items: Any) -> bytes:
    """Server-sent events of JSON values; a string stands for itself."""
    texts = (item if isinstance(item, str) else json.dumps(item) for item in items)
    return b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)


def says(*parts: bytes) -> Callable[..., Awaitable[None]]:
    """A reply that sends a whole 200 stream at once, piece by piece."""

    async def reply(_request: Request, send: Callable[[bytes], Awaitable[None]]) -> None:
        await send(HEAD)
        for part in parts:
            await send(part)

    return reply


def answering(text_of: Callable[[Request], str], *, steps_per_token: float = 0.25) -> Callable[..., Awaitable[None]]:
    """A reply that streams a text word by word, with true counts."""

    async def reply(request: Request, send: Callable[[bytes], Awaitable[None]]) -> None:
        words = text_of(request).split(" ")
        await send(HEAD)
        for number, word in enumerate(words, 1):
            await send(events({"t": word if number == 1 else f" {word}", "n": number}))
            await asyncio.sleep(0)
        steps = max(round(len(words) * steps_per_token), 1)
        await send(events({"n": len(words), "v": steps, "a": len(words) - steps, "finish": "stop"}, "[DONE]"))

    return reply


class PlainDialect:
    """`{"t": text, "r": reasoning, "n": tokens so far, "v": steps, "a": accepted, "finish": …, "error": …}`."""

    name = "plain"

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        body = {"prompt": prompt.text, "id": prompt.id, "max": prompt.max_tokens, "temperature": workload.temperature}
        return HttpRequest("/ask", body | {"ignore_eos": ignore_eos})

    def read(self, answer: Answer, data: str) -> None:
        if data == "[DONE]":
            answer.done = True
            return
        event = json.loads(data)
        answer.text += event.get("t", "")
        answer.reasoning += event.get("r", "")
        if "n" in event:
            answer.new_tokens = event["n"] - (answer.completion_tokens or 0)
            answer.completion_tokens = event["n"]
        answer.verify_steps = event.get("v", answer.verify_steps)
        answer.accepted_drafts = event.get("a", answer.accepted_drafts)
        answer.histogram = tuple(event["h"]) if "h" in event else answer.histogram
        answer.finish_reason = event.get("finish", answer.finish_reason)
        answer.error = event.get("error", answer.error)


def pieces(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """`data` cut into pieces of these sizes, the last size repeated."""
    cut, rest = [], data
    for size in [*sizes, *[sizes[-1]] * len(data)]:
        if not rest:
            break
        cut.append(rest[:size])
        rest = rest[size:]
    return cut
