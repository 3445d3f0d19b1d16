"""The client and SGLang's dialects together: the keys that 0.5.23 really sends."""

import json

from fakes.sse_server import events, says, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.metrics import RequestRecord, itl
from ddconsole.core.ports import Prompt, RequestDialect
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect
from ddconsole.passes.client import ask, open_client


async def asked(dialect: RequestDialect, stream: bytes) -> RequestRecord:
    async with serving(says(stream)) as server, open_client(server.url) as client:
        return await ask(client, dialect, Prompt("p", "hello", 9), Workload(), clock=SystemClock())


def meta(tokens: int, **more: object) -> dict[str, object]:
    return {
        "id": "x",
        "prompt_tokens": 3,
        "cached_tokens": 1,
        "completion_tokens": tokens,
        "finish_reason": None,
    } | more


async def test_generate_with_cumulative_text() -> None:
    """Text and counts so far in every event; speculative counts in the last."""
    last = meta(
        6,
        finish_reason={"type": "stop", "matched": 2},
        spec_verify_ct=2,
        spec_num_correct_drafts=3,
        spec_correct_drafts_histogram=[0, 1, 1],
    )
    stream = events(
        {"text": "a", "meta_info": meta(1)},
        {"text": "a b c", "meta_info": meta(5)},
        {"text": "a b c", "meta_info": last},
        "[DONE]",
    )
    record = await asked(NativeDialect(), stream)
    assert (record.error, record.text, record.completion_tokens, record.verify_steps) == (None, "a b c", 6, 2)
    assert [tokens for _, tokens in record.chunks] == [1, 4, 1]
    assert (record.accepted_drafts, record.histogram, record.finish_reason) == (3, (0, 1, 1), "stop")
    assert (record.prompt_tokens, record.cached_tokens) == (3, 1)
    assert len(itl(record)) == 5


async def test_error_and_abort_keep_the_engines_words() -> None:
    """An error object in a 200 stream, and an abort with its message."""
    boom = events({"text": "a", "meta_info": meta(1)}, {"error": {"message": "out of memory", "code": 500}}, "[DONE]")
    abort = events(
        {"text": "a", "meta_info": meta(1, finish_reason={"type": "abort", "message": "shut down"})}, "[DONE]"
    )
    assert (await asked(NativeDialect(), boom)).error == "stream-error: out of memory"
    assert (await asked(NativeDialect(), abort)).error == "aborted: shut down"


def chunk(delta: dict[str, object] | None, tokens: int | None, **more: object) -> dict[str, object]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": more.pop("finish", None)}]
    usage = None if tokens is None else {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": 3 + tokens}
    return {"object": "chat.completion.chunk", "choices": choices, "usage": usage} | more


SPEC = {"sglext": {"spec_tokens_details": {"spec_verify_ct": 2, "spec_num_correct_drafts": 3}}}


async def test_chat_with_usage_in_every_chunk() -> None:
    """A role-only first chunk is no token; reasoning is; usage and speculative counts come in chunks of their own."""
    stream = events(
        chunk({"role": "assistant", "content": ""}, 0),
        chunk({"reasoning_content": "hm"}, 2),
        chunk({"content": "yes", "reasoning_content": None}, 6),
        chunk({}, 6, finish="stop"),
        chunk(None, None, **SPEC),
        chunk(None, 6),
        "[DONE]",
    )
    record = await asked(ChatDialect(), stream)
    assert (record.error, record.text, record.reasoning) == (None, "yes", "hm")
    assert [tokens for _, tokens in record.chunks] == [2, 4]
    assert (record.completion_tokens, record.verify_steps, record.accepted_drafts) == (6, 2, 3)
    assert record.first_answer_s == record.chunks[1][0]


async def test_chat_with_usage_only_at_the_end() -> None:
    """Counts are whole, and no chunk is passed off as a token."""
    stream = events(
        chunk({"role": "assistant", "content": None}, None),
        chunk({"content": "a"}, None),
        chunk({"content": "b"}, None, finish="stop"),
        chunk(None, 7),
        "[DONE]",
    )
    record = await asked(ChatDialect(), stream)
    assert (record.error, record.completion_tokens, len(record.chunks)) == (None, 7, 2)
    assert itl(record) == ()
    json.dumps(record.to_json(), allow_nan=False)
