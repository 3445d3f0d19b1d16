"""Whole chats in a user's JSONL file: read strictly, asked as they are, and refused where they cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.sse_server import serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.errors import UsageError
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.ports import Prompt
from ddconsole.core.profile import QualityPass, ThroughputPass
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect
from ddconsole.passes.base import PassContext, warmup_prompt
from ddconsole.passes.prompts import load_prompts
from ddconsole.passes.quality import QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure

CHAT = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "Name a tree."},
    {"role": "assistant", "content": "Oak."},
    {"role": "user", "content": "Another.", "name": "ada"},
]


def loaded(folder: Path, *entries: object) -> tuple[Prompt, ...]:
    file = folder / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, entries)))
    return load_prompts(str(file), 50)


def test_a_chat_is_a_prompt(tmp_path: Path) -> None:
    """Beside plain lines; its text is what was said in it, for people to look at."""
    chat, plain = loaded(tmp_path, {"id": "a", "messages": CHAT, "max_tokens": 9}, {"text": "one"})
    assert chat.messages == tuple(CHAT)
    assert chat.text == "You are terse.\n\nName a tree.\n\nOak.\n\nAnother."
    assert (chat.id, chat.max_tokens, plain.messages) == ("a", 9, ())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"messages": "hello"}, "line 1: messages: expected a list"),
        ({"messages": []}, "line 1: messages: expected a list"),
        ({"messages": ["hello"]}, "line 1: messages[0]: expected a role and a content of text"),
        ({"messages": [{"role": "user"}]}, "line 1: messages[0]"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": " "}]}, "line 1: messages[1]"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "line 1: messages[0]"),
        ({"messages": CHAT, "text": "x"}, "line 1: expected either messages or text, got both"),
        ({"id": "a"}, "line 1: expected text under text or prompt or messages"),
    ],
)
def test_what_is_no_chat_is_named(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    """With its line, and the message of it."""
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, entry)
    assert words in caught.value.what


def test_the_chat_endpoint_gets_the_messages_as_they_are() -> None:
    """Names and whatever else stands in them too; a plain prompt is one message of the user's."""
    dialect = ChatDialect(model="m")
    asked = dialect.request(Prompt("a", "seen by nobody", messages=tuple(CHAT)), Workload()).body
    assert asked["messages"] == CHAT
    assert dialect.request(Prompt("b", "one"), Workload()).body["messages"] == [{"role": "user", "content": "one"}]


def test_a_warm_up_of_a_chat_shares_no_prefix_with_it() -> None:
    """The same shape, marked at its first word; the chat itself is not touched."""
    warm = warmup_prompt(Prompt("a", "x", 500, messages=tuple(CHAT)))
    assert [one["role"] for one in warm.messages] == ["system", "user", "assistant", "user"]
    assert warm.messages[0]["content"] == "(warm-up) You are terse."
    assert warm.messages[1:] == tuple(CHAT[1:])
    assert CHAT[0]["content"] == "You are terse."


@pytest.mark.parametrize("kind", ["throughput", "quality"])
async def test_an_engine_that_takes_plain_text_alone_is_asked_nothing(kind: str) -> None:
    """A chat put as bare text would measure another prompt; the pass is refused, and says what to do."""
    prompts = (Prompt("plain", "one"), Prompt("chat", "x", messages=tuple(CHAT)))
    measure = {
        "throughput": ThroughputMeasure(ThroughputPass(), prompts, Objectives()),
        "quality": QualityMeasure(QualityPass(), prompts),
    }[kind]

    async def reply(*_: object) -> None:
        raise AssertionError("nothing is to be asked")

    async with serving(reply) as server:
        context = PassContext(server.url, NativeDialect(), Workload(), SystemClock(), lambda *_: None)
        with pytest.raises(UsageError, match="'chat' has messages, and /generate takes plain text") as caught:
            await measure.run(context)
        assert server.requests == []
    assert caught.value.advice
