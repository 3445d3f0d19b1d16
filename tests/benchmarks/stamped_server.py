"""A chat server that stamps every chunk with the moment it sends it: the truth that a client is measured against.

    python -m tests.benchmarks.stamped_server [SCRIPT]

Prints its port and serves until its standard input closes. The request's `script` says what it does, or SCRIPT where a
request has none: `{"ttft_s": 0.2, "gap_s": 0.01, "chunks": 100, "tokens": 4}`. Each chunk
holds `tokens` more tokens in its cumulative usage and `sent`, the monotonic clock of this machine when it was written.
A gap of 0 writes as fast as it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
import time
from typing import Any

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
    b"Cache-Control: no-store\r\n\r\n"
)
SCRIPT = {"ttft_s": 0.05, "gap_s": 0.02, "chunks": 12, "tokens": 4}
"""What a request without a script gets."""

WORDS = ["quick", "brown", "fox", "jumps"]
"""What each token says."""


def _framed(event: str) -> bytes:
    """One server-sent event as one chunk of the body."""
    data = f"data: {event}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunk(text: str, tokens: int, sent: float, finish: str | None = None) -> str:
    """What SGLang's chat endpoint sends with `continuous_usage_stats`, and the stamp."""
    choice = {
        "index": 0,
        "delta": {"reasoning_content": None, "content": text},
        "logprobs": None,
        "finish_reason": finish,
        "matched_stop": None,
    }
    usage = {"prompt_tokens": 20, "total_tokens": 20 + tokens, "completion_tokens": tokens, "reasoning_tokens": 0}
    head = {"id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "object": "chat.completion.chunk", "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage, "sent": sent}, separators=(",", ":"))


async def _stream(writer: asyncio.StreamWriter, script: dict[str, Any]) -> None:
    """Write the scripted chunks, each at its due time."""
    writer.write(HEAD)
    due = time.monotonic() + script["ttft_s"]
    tokens, text = 0, " " + " ".join((WORDS * script["tokens"])[: script["tokens"]])
    for _ in range(script["chunks"]):
        if writer.transport.is_closing():
            return
        wait = due - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        tokens += script["tokens"]
        writer.write(_framed(_chunk(text, tokens, time.monotonic())))
        if writer.transport.get_write_buffer_size() > 65536 or not script["gap_s"]:
            await writer.drain()
        due += script["gap_s"]
    details = {"spec_verify_ct": script["chunks"], "spec_num_correct_drafts": tokens - script["chunks"]}
    last = json.dumps({"choices": [], "sglext": {"spec_tokens_details": details}})
    writer.write(_framed(_chunk("", tokens, time.monotonic(), "stop")) + _framed(last) + _framed("[DONE]"))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, default: dict[str, Any]) -> None:
    """Requests of one connection, one after the other."""
    with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or "0")
            body = json.loads(await reader.readexactly(length) or b"{}")
            await _stream(writer, default | body.get("script", {}))


async def main() -> None:
    """Serve until standard input closes."""
    default = SCRIPT | (json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    server = await asyncio.start_server(lambda r, w: _serve(r, w, default), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    gc.freeze()
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
