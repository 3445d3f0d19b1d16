"""What requests look like and what answers tell, in every version's spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.experiment import Workload
from ddconsole.core.ports import Answer, Prompt
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect, dialect_for, parse_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.profile import Profile

DATA = Path(__file__).parent / "data"
PROMPT = Prompt("p1", "hello", 64)


def read_all(dialect: NativeDialect | ChatDialect, *events: Any) -> tuple[Answer, list[int]]:
    """The answer after all events, and the tokens that each of them added."""
    answer, added = Answer(), []
    for event in events:
        dialect.read(answer, event if isinstance(event, str) else json.dumps(event))
        added.append(answer.new_tokens)
    return answer, added


def events_of(name: str) -> list[str]:
    """The data of a recorded stream."""
    lines = (DATA / name).read_text().splitlines()
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


def test_the_native_stream_is_cumulative() -> None:
    """15 tokens in 5 chunks over 4 verify steps: τ 3.75."""
    answer, added = read_all(NativeDialect(), *events_of("generate-stream.sse"))
    assert added == [1, 5, 4, 3, 2, 0]
    assert answer.text == "def add(a, b):\n    return a + b\n\nprint(add(2, 3))"
    assert (answer.completion_tokens, answer.verify_steps, answer.accepted_drafts) == (15, 4, 10)
    assert answer.histogram == (0, 1, 1, 1, 1)
    assert (answer.prompt_tokens, answer.cached_tokens) == (18, 0)
    assert (answer.finish_reason, answer.error, answer.done) == ("stop", None, True)


def test_an_incremental_native_stream_is_joined() -> None:
    """With `--incremental-streaming-output` each event has only what is new."""
    events = [{"text": text, "meta_info": {"completion_tokens": n}} for n, text in enumerate(("a", "ab", "c"), 1)]
    answer, added = read_all(NativeDialect(incremental=True), *events)
    assert answer.text == "aabc"
    assert added == [1, 1, 1]


@pytest.mark.parametrize(
    ("meta", "accepted", "histogram"),
    [
        ({"spec_accept_token_num": 7, "spec_accept_histogram": [1, 2]}, 7, (1, 2)),
        ({"spec_accepted_drafts": 7, "spec_accept_histogram": [1, 2]}, 7, (1, 2)),
        ({"spec_num_correct_drafts": 7, "spec_accepted_drafts": 9, "spec_correct_drafts_histogram": [3]}, 7, (3,)),
        ({"spec_num_correct_drafts": "many", "spec_correct_drafts_histogram": [None]}, None, None),
    ],
)
def test_each_versions_names_of_the_speculative_counts(
    meta: dict[str, Any], accepted: int | None, histogram: tuple[int, ...] | None
) -> None:
    """0.5.10, 0.5.11, 0.5.12 and later; nonsense is unknown."""
    event = {"text": "x", "meta_info": {"completion_tokens": 9, "spec_verify_ct": 2, **meta}}
    answer, _ = read_all(NativeDialect(), event)
    assert (answer.verify_steps, answer.accepted_drafts, answer.histogram) == (2, accepted, histogram)


@pytest.mark.parametrize("dialect", [NativeDialect(), ChatDialect()])
@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"error": {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}},
         "EngineCore encountered an issue"),
        ({"error": "boom"}, "boom"),
        ({"error": {"code": 3}}, '{"code": 3}'),
        ("not json", "no JSON"),
        ("[1]", "no object"),
    ],
)  # fmt: skip
def test_an_error_inside_a_stream_keeps_its_words(dialect: NativeDialect | ChatDialect, event: Any, words: str) -> None:
    """HTTP 200 and then a failure; the end that follows does not heal it."""
    answer, added = read_all(dialect, event, "[DONE]")
    assert answer.error is not None
    assert words in answer.error
    assert answer.done
    assert added == [0, 0]


def test_an_aborted_request_is_an_error() -> None:
    """finish_reason abort, with the engine's reason."""
    reason = {"type": "abort", "message": "out of KV cache"}
    answer, _ = read_all(NativeDialect(), {"text": "", "meta_info": {"finish_reason": reason}})
    assert (answer.finish_reason, answer.error) == ("abort", "out of KV cache")


def test_the_chat_stream_of_a_real_engine() -> None:
    """Role-only first chunk, usage in a last chunk without choices: its tokens belong to no chunk."""
    answer, added = read_all(ChatDialect(), *events_of("chat-stream.sse"))
    assert answer.text == "The Paris."
    assert answer.finish_reason == "stop"
    assert (answer.completion_tokens, answer.prompt_tokens) == (8, 37)
    assert answer.verify_steps is None
    assert not any(added)


def chunk(delta: dict[str, Any], tokens: int | None = None, **choice: Any) -> dict[str, Any]:
    """A chat chunk with usage so far."""
    usage = None if tokens is None else {"prompt_tokens": 5, "completion_tokens": tokens}
    return {"choices": [{"index": 0, "delta": delta, **choice}], "usage": usage}


def test_continuous_usage_gives_each_chunk_its_tokens() -> None:
    """The role's token counts with the first content; several tokens a chunk."""
    answer, added = read_all(
        ChatDialect(),
        chunk({"role": "assistant", "content": ""}, 1),
        chunk({"content": "a"}, 1),
        chunk({"content": "bcd"}, 5),
        chunk({}, 6, finish_reason="stop"),
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}},
        {"choices": [], "sglext": {"spec_tokens_details": {"spec_verify_ct": 2, "spec_num_correct_drafts": 4}}},
        "[DONE]",
    )
    assert added == [0, 1, 4, 1, 0, 0, 0]
    assert (answer.completion_tokens, answer.verify_steps, answer.accepted_drafts) == (6, 2, 4)


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"reasoning": "hm"},
                                   {"reasoning_content": "hm", "reasoning": "hm"}])  # fmt: skip
def test_reasoning_has_two_names_and_counts_once(delta: dict[str, Any]) -> None:
    """It is no answer, and its tokens are tokens."""
    answer, added = read_all(ChatDialect(), chunk(delta, 2))
    assert (answer.reasoning, answer.text, added) == ("hm", "", [2])


@pytest.mark.parametrize(
    "event", [{}, {"choices": None}, {"choices": [None]}, {"choices": [{}]}, chunk({"content": None}), {"usage": 3},
              {"choices": [{"delta": None}]}, {"sglext": []}, {"meta_info": [], "text": 3}, {"error": None}]
)  # fmt: skip
@pytest.mark.parametrize("dialect", [NativeDialect(), ChatDialect()])
def test_odd_events_change_nothing(dialect: NativeDialect | ChatDialect, event: dict[str, Any]) -> None:
    """No crash, no token, no error."""
    answer, added = read_all(dialect, event)
    assert (answer.text, answer.error, added) == ("", None, [0])


@settings(deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["choices", "delta", "usage", "meta_info", "text", "content", "finish_reason",
                                       "completion_tokens", "sglext", "spec_tokens_details", "spec_verify_ct"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_reading_never_raises(event: Any) -> None:
    """Whatever JSON an engine sends."""
    for dialect in (NativeDialect(), NativeDialect(incremental=True), ChatDialect()):
        read_all(dialect, event)


def test_the_native_request() -> None:
    """The prompt as it is."""
    request = NativeDialect().request(PROMPT, Workload(temperature=0.5), ignore_eos=True)
    assert request.path == "/generate"
    assert request.body == {
        "text": "hello",
        "sampling_params": {"max_new_tokens": 64, "temperature": 0.5, "ignore_eos": True},
        "stream": True,
    }


def test_the_chat_request() -> None:
    """Template on, thinking as the workload says, verify steps asked for."""
    body = ChatDialect("kimi").request(PROMPT, Workload(thinking=True)).body
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["chat_template_kwargs"] == {"thinking": True}
    assert body["return_spec_tokens_details"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert "ignore_eos" not in body


@pytest.mark.parametrize(
    ("version", "name"),
    [(None, "sglang-generate"), ("0.5.11", "sglang-generate"), ("0.5.18.post1", "sglang-generate"),
     ("0.5.20", "sglang-chat"), ("0.5.23+ddtree", "sglang-chat"), ("1.0", "sglang-chat"), ("main", "sglang-generate")],
)  # fmt: skip
def test_chat_is_used_where_it_tells_verify_steps(
    make_profile: Callable[..., Profile], version: str | None, name: str
) -> None:
    """From 0.5.20 on; before the version is known, `/generate`."""
    assert dialect_for(version, make_profile()).name == name


def test_versions() -> None:
    """Releases, local parts, and what is none."""
    assert parse_version("v0.5.23+ddtree.g1a2b") == (0, 5, 23)
    assert parse_version("unknown") is None


@pytest.mark.parametrize("key", ["spec_draft_token_num", "spec_proposed_drafts", "spec_num_proposed_drafts"])
def test_each_versions_name_of_the_proposed_drafts(key: str) -> None:
    """0.5.10, 0.5.11, 0.5.12 and later; in both endpoints."""
    details = {"spec_verify_ct": 2, key: 14}
    native, _ = read_all(NativeDialect(), {"text": "x", "meta_info": {"completion_tokens": 9, **details}})
    chat, _ = read_all(ChatDialect(), {"choices": [], "sglext": {"spec_tokens_details": details}})
    assert (native.proposed_drafts, chat.proposed_drafts) == (14, 14)


def test_the_engines_own_times_of_a_request() -> None:
    """`e2e_latency` in every version, `first_token_latency` with --enable-metrics; nonsense is unknown."""
    meta = {"completion_tokens": 9, "finish_reason": {"type": "stop"}, "e2e_latency": 0.5, "first_token_latency": 0.1}
    answer, _ = read_all(NativeDialect(), {"text": "x", "meta_info": meta})
    assert (answer.server_e2e_s, answer.server_ttft_s) == (0.5, 0.1)
    odd, _ = read_all(
        NativeDialect(), {"text": "x", "meta_info": meta | {"e2e_latency": "soon", "first_token_latency": -1}}
    )
    assert (odd.server_e2e_s, odd.server_ttft_s) == (None, None)


def test_tool_calls_are_output_and_a_second_choice_is_not() -> None:
    """Names and arguments are kept; a choice that was not asked for is passed over."""
    call = {"index": 0, "delta": {"tool_calls": [{"function": {"name": "run", "arguments": '{"a": 1}'}}]}}
    other = {"index": 1, "delta": {"content": "not ours"}}
    answer, _ = read_all(ChatDialect(), {"choices": [other, call]}, {"choices": [other]})
    assert (answer.tool_calls, answer.text) == ('run{"a": 1}', "")
    opening, _ = read_all(ChatDialect(), {"choices": [{"delta": {"tool_calls": [{"id": "x"}]}}]})
    assert opening.tool_calls == " "
