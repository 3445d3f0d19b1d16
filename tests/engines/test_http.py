"""Ready, server_info, flush, abort, and the first request, against an engine that answers as told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Identity, Launched
from ddconsole.core.progress import BootFacts
from ddconsole.engines.engine import make_engine, make_launcher
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.sglang.engine import SglangEngine
from ddconsole.engines.sglang.http import EngineHttp
from ddconsole.engines.sglang.speculation import tokens_to_ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

DATA = Path(__file__).parent / "data"
BASE = "http://127.0.0.1:1"
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
OFF = Config(Algorithm.OFF)


def answering(
    routes: dict[str, int | tuple[int, str] | type[Exception]], seen: list[httpx.Request] | None = None
) -> httpx.MockTransport:
    """A server by path: a status, a status with a body, or an error of the connection; else 404."""

    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        answer = routes.get(request.url.path, 404)
        if isinstance(answer, type):
            raise answer("no", request=request)  # type: ignore[call-arg]  # httpx errors take the request
        status, body = answer if isinstance(answer, tuple) else (answer, "")
        return httpx.Response(status, text=body)

    return httpx.MockTransport(handle)


@pytest.mark.parametrize(
    ("routes", "ready"),
    [
        ({"/ready": 200}, True),
        ({"/ready": 503, "/health": 200}, False),
        ({"/health": 200}, True),
        ({"/health": 503}, False),
        ({}, False),
        ({"/ready": httpx.ConnectError}, False),
        ({"/ready": httpx.RemoteProtocolError}, False),
        ({"/ready": httpx.ReadTimeout}, False),
        ({"/ready": httpx.ReadError}, False),
    ],
)
async def test_ready_is_ready_or_health_and_everything_else_is_not_yet(
    routes: dict[str, int | type[Exception]], ready: bool
) -> None:
    """`/ready` where the version has it; refused, dropped and 503 are the engine loading."""
    assert await EngineHttp(BASE, transport=answering(dict(routes))).ready() is ready


async def test_a_proxy_of_the_environment_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx would send loopback through it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client = EngineHttp(BASE).client(5)
    assert client.trust_env is False
    assert client._mounts == {}
    await client.aclose()


@pytest.mark.parametrize(
    ("routes", "info", "why"),
    [
        ({"/server_info": (200, '{"version": "1"}')}, {"version": "1"}, ""),
        ({"/get_server_info": (200, '{"version": "0"}')}, {"version": "0"}, ""),
        ({"/server_info": 500}, None, "HTTP 500"),
        ({"/server_info": (200, "x")}, None, "not JSON"),
        ({"/server_info": (200, "[]")}, None, "not an object"),
        ({"/server_info": httpx.ReadTimeout}, None, "ReadTimeout: no"),
    ],
)
async def test_server_info_by_both_names(
    routes: dict[str, int | tuple[int, str] | type[Exception]], info: dict[str, str] | None, why: str
) -> None:
    """And why it could not be read."""
    assert await EngineHttp(BASE, transport=answering(routes)).server_info() == (info, why)


async def test_flush_says_whether_it_was_done(make_profile: MakeProfile) -> None:
    """400 while requests are pending."""
    for answer, done in ((200, True), (400, False), (httpx.ConnectError, False)):
        engine = SglangEngine(make_profile(), {}, transport=answering({"/flush_cache": answer}))
        assert await engine.flush(BASE) is done


async def test_abort_aborts_all_and_never_raises(make_profile: MakeProfile) -> None:
    """With the engine's key where the profile has one."""
    seen: list[httpx.Request] = []
    profile = make_profile({"args": {"api-key": "k3y"}})
    await SglangEngine(profile, {}, transport=answering({}, seen)).abort(BASE)
    assert json.loads(seen[0].content) == {"rid": "", "abort_all": True}
    assert seen[0].headers["authorization"] == "Bearer k3y"
    await SglangEngine(profile, {}, transport=answering({"/abort_request": httpx.ConnectError})).abort(BASE)


def native_stream(tokens: int, **meta: int) -> tuple[int, str]:
    """A `/generate` stream of two events."""
    first = {"text": "a\u2028", "meta_info": {"completion_tokens": 1, "finish_reason": None}}
    last = {"text": "a\u2028b", "meta_info": {"completion_tokens": tokens, "finish_reason": {"type": "length"}, **meta}}
    events = [json.dumps(event, ensure_ascii=False) for event in (first, last)] + ["[DONE]"]
    return 200, "".join(f"data: {event}\n\n" for event in events)


async def test_a_first_request_with_verify_steps_proves_speculation(make_profile: MakeProfile) -> None:
    """2b tokens were asked for, whatever the text; a line separator inside the JSON is no line end."""
    seen: list[httpx.Request] = []
    transport = answering({"/generate": native_stream(16, spec_verify_ct=4)}, seen)
    record = await SglangEngine(make_profile(), {}, transport=transport).speculates(BASE, TREE)
    assert isinstance(record, RequestRecord)
    assert (record.completion_tokens, record.verify_steps, record.text) == (16, 4, "a\u2028b")
    assert [tokens for _, tokens in record.chunks] == [1, 15]
    sampling = json.loads(seen[0].content)["sampling_params"]
    assert sampling == {"max_new_tokens": 16, "temperature": 0.0, "ignore_eos": True}


@pytest.mark.parametrize(
    ("answer", "config", "cause", "said"),
    [
        (native_stream(16), TREE, "drafter-never-engaged", "without one verify step"),
        (native_stream(16, spec_verify_ct=0), TREE, "drafter-never-engaged", "never engaged"),
        (native_stream(3, spec_verify_ct=1), TREE, "first-request", "3 of 16 tokens"),
        ((503, "The request queue is full."), TREE, "first-request", "HTTP 503: The request queue is full."),
        ((200, 'data: {"error": {"message": "boom"}}\n\n'), TREE, "first-request", "boom"),
        ((200, 'data: {"text": "x", "meta_info": {"completion_tokens": 16}}\n\n'), TREE, "first-request", "finish"),
        (httpx.RemoteProtocolError, TREE, "first-request", "RemoteProtocolError"),
    ],
)
async def test_what_does_not_prove_it_is_a_failure_with_a_name(
    make_profile: MakeProfile, answer: tuple[int, str] | type[Exception], config: Config, cause: str, said: str
) -> None:
    """A drafter that never engaged is never a low score."""
    failure = await SglangEngine(make_profile(), {}, transport=answering({"/generate": answer})).speculates(
        BASE, config
    )
    assert isinstance(failure, Failure)
    assert failure.cause == cause
    assert said in failure.what


async def test_without_a_drafter_tokens_are_enough(make_profile: MakeProfile) -> None:
    """algorithm=off has no verify steps."""
    engine = SglangEngine(make_profile(), {}, transport=answering({"/generate": native_stream(16)}))
    assert isinstance(await engine.speculates(BASE, OFF), RequestRecord)


def test_two_blocks_are_asked_for() -> None:
    """The first token alone comes from prefill."""
    assert tokens_to_ask(Config(Algorithm.CHAIN, 32)) == 64
    assert tokens_to_ask(TREE) == 16


async def identified(engine: SglangEngine) -> Identity | Failure:
    """Identify against a process of this machine that is not there: its environment is not readable."""
    launched = Launched("process", 2**22 + 1, 1, 1, "b", "t", "/l", "/s", 30000)
    facts = BootFacts(block_size=8, budget=12, window=2048, verify_width=13)
    return await engine.identify(BASE, LocalHost(), launched, TREE, facts)


def kimi(make_profile: MakeProfile) -> Profile:
    """The profile that the recorded engine was started with."""
    return make_profile({"model": "/models/Kimi-K2.6", "drafter": "SubSir/Kimi-K2.6-DFlash-tmp-long"})


async def test_identify_learns_the_dialect_and_masks_the_key(make_profile: MakeProfile) -> None:
    """Version 0.5.23 answers chat with verify steps; its api_key does not come through."""
    info = (DATA / "server_info.json").read_text()
    engine = SglangEngine(kimi(make_profile), {}, transport=answering({"/server_info": (200, info)}))
    assert engine.dialect.name == "sglang-generate"
    identity = await identified(engine)
    assert isinstance(identity, Identity)
    assert engine.dialect.name == "sglang-chat"
    assert identity.server_info["api_key"] == "***"
    assert "do-not-show" not in repr(identity)


async def test_a_chat_endpoint_that_counts_nothing_gives_way_to_generate(make_profile: MakeProfile) -> None:
    """A fork can be older than its version says."""
    chat = json.dumps({"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}],
                       "usage": {"completion_tokens": 16}})  # fmt: skip
    routes = {
        "/server_info": (200, (DATA / "server_info.json").read_text()),
        "/v1/chat/completions": (200, f"data: {chat}\n\ndata: [DONE]\n\n"),
        "/generate": native_stream(16, spec_verify_ct=4),
    }
    engine = SglangEngine(kimi(make_profile), {}, transport=answering(dict(routes)))
    await identified(engine)
    record = await engine.speculates(BASE, TREE)
    assert isinstance(record, RequestRecord)
    assert record.verify_steps == 4
    assert engine.dialect.name == "sglang-generate"


def test_the_registry_makes_what_the_profile_names(make_profile: MakeProfile) -> None:
    """Engine and launcher by kind."""
    profile = make_profile({"port": "auto"}, launcher={"kind": "process"})
    engine = make_engine(profile, {"HF_TOKEN": "x"})
    assert isinstance(engine, SglangEngine)
    assert engine.port is None
    assert engine.plan(TREE, 30005).secret_env == {"HF_TOKEN": "x"}
    assert engine.effective(TREE).topk == 2
    assert isinstance(make_launcher(profile), ProcessLauncher)
