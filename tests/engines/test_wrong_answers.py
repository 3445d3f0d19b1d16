"""Garbage from the engine's port, or somebody else's answers there: a word on why, in time, and never an exception."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.ports import Launched
from ddconsole.core.profile import Profile
from ddconsole.core.progress import BootFacts
from ddconsole.engines.sglang import http as http_module
from ddconsole.engines.sglang import speculation
from ddconsole.engines.sglang.engine import SglangEngine
from ddconsole.engines.sglang.http import ANSWER_LIMIT, EngineHttp

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
PROFILE = Profile.model_validate(
    {"schema": "1", "host": "local", "engine": {"command": ["x"], "model": "M", "drafter": "D"}}
)

GARBAGE: dict[str, tuple[bytes, str]] = {
    "a web page": (b"<html>nginx</html>", "not JSON"),
    "nothing": (b"", "not JSON"),
    "a list": (b"[]", "not an object"),
    "a number": (b"1e999", "not an object"),
    "too deep": (b"[" * 100_000, "not JSON"),
    "no text": (b"\xff\xfe\x00\x01", "not JSON"),
    "a huge number": (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON"),
    "half an object": (b'{"version": "0.5.23', "not JSON"),
    "a flood": (b" " * (ANSWER_LIMIT + 1), "MiB"),
}

ODD_INFO: dict[str, bytes] = {
    "an empty object": b"{}",
    "objects for words": b'{"version": {"a": []}, "speculative_num_draft_tokens": {"x": 1}, "model_path": [1]}',
    "nulls": b'{"version": null, "speculative_algorithm": null, "internal_states": null}',
    "numbers for words": b'{"version": 5, "speculative_algorithm": 7, "command": 3, "internal_states": [1, null]}',
    "not a number": b'{"speculative_num_draft_tokens": NaN, "speculative_ddtree_budget": Infinity}',
    "half a letter": b'{"version": "\\ud800", "model_path": "\\udfff"}',
    "escapes": b'{"version": "\\u001b]52;c;aGk=\\u0007", "speculative_algorithm": "\\u001b[2J"}',
    "another engine": b'{"engine": "vllm", "version": "0.9"}',
}


def answering(body: bytes, status: int = 200) -> httpx.MockTransport:
    return httpx.MockTransport(lambda request: httpx.Response(status, content=body))


class SilentHost:
    """A host that knows nothing of the process."""

    name = "silent"

    async def run(self, argv: object, *, stdin: bytes = b"", timeout: float = 30.0) -> object:
        from ddconsole.core.ports import Completed

        return Completed(0, "")


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_from_server_info_is_told_in_a_word(name: str) -> None:
    """And a port that answers anything is not ready by that alone."""
    body, why = GARBAGE[name]
    info, said = await EngineHttp("http://x", transport=answering(body)).server_info()
    assert info is None
    assert why in said


@pytest.mark.parametrize("name", [*GARBAGE, *ODD_INFO])
async def test_identify_never_raises_and_proves_nothing_by_garbage(name: str) -> None:
    """A failure with a name, or what is asked stands as not proved."""
    body = ODD_INFO.get(name) or GARBAGE[name][0]
    engine = SglangEngine(PROFILE, {}, transport=answering(body))
    launched = Launched("process", 1, 1, 1, "b", "t", "/l", "/s", 30000)
    found = await engine.identify("http://x", SilentHost(), launched, TREE, BootFacts())  # type: ignore[arg-type]
    if isinstance(found, Failure):
        assert found.cause
    else:
        assert any("block size" in word for word in found.unproved)


@pytest.mark.parametrize("name", GARBAGE)
async def test_the_first_request_ends_in_a_failure_with_a_name(name: str) -> None:
    """Whatever answers it."""
    body, _ = GARBAGE[name]
    engine = SglangEngine(PROFILE, {}, transport=answering(body))
    found = await engine.speculates("http://x", TREE)
    assert isinstance(found, Failure)
    assert found.cause == "first-request"


DRIPS = {
    "silent": b"",
    "drips a body for ever": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    "drips a head for ever": b"HTTP/1.1 200 OK\r\nX: ",
    "no http": b"SSH-2.0-OpenSSH_9.2\r\n",
}


@asynccontextmanager
async def dripping(begin: bytes) -> AsyncIterator[str]:
    """A server that says `begin`, then an event of nothing every 20 ms, and never ends."""
    tasks: set[asyncio.Task[None]] = set()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            writer.write(begin)
            while begin:
                writer.write(b'data: {"text": "", "meta_info": {"completion_tokens": 0}}\n\n')
                await writer.drain()
                await asyncio.sleep(0.02)
            await asyncio.Event().wait()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("manner", DRIPS)
async def test_a_port_that_never_comes_to_an_end_is_given_up(manner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that keep coming must not hold a boot for ever: each question has a limit as a whole."""
    monkeypatch.setattr(http_module, "HEALTH_TIMEOUT_S", 0.3)
    monkeypatch.setattr(speculation, "FIRST_REQUEST_TIMEOUT_S", 0.3)
    async with dripping(DRIPS[manner]) as url, asyncio.timeout(10):
        http = EngineHttp(url)
        assert not await http.ready()
        info, why = await http.server_info()
        assert info is None
        assert why
        found = await SglangEngine(PROFILE, {}).speculates(url, TREE)
        assert isinstance(found, Failure)
        assert found.cause == "first-request"
