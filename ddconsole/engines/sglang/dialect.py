"""How SGLang is asked and how its answers are read: its own `/generate`, and `/v1/chat/completions`.

`/generate` tells verify steps in every version, but takes the prompt as it is. The chat endpoint applies the model's
template, which thinking models need, and tells verify steps from 0.5.20 on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.errors import UsageError
from ddconsole.core.ports import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.experiment import Workload
    from ddconsole.core.ports import Answer, Prompt, RequestDialect
    from ddconsole.core.profile import Profile

CHAT_SINCE: Final = (0, 5, 20)
"""The first version whose chat answers can carry verify steps (`return_spec_tokens_details`)."""

ACCEPTED_KEYS: Final = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
"""Accepted drafts of a request: 0.5.12 and later, 0.5.11, 0.5.10."""

PROPOSED_KEYS: Final = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
"""Drafts offered to the target, in the same versions."""

HISTOGRAM_KEYS: Final = ("spec_correct_drafts_histogram", "spec_accept_histogram")
"""Steps by the number of drafts they accepted: 0.5.12 and later, older."""

BAD_ENDS: Final = ("abort", "error")
"""Finish reasons that make a 200 stream a failed request."""


def parse_version(text: str | None) -> tuple[int, ...] | None:
    """(0, 5, 23) of `0.5.23+ddtree`; None for what is no release."""
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", text or "")
    return None if match is None else tuple(int(part or 0) for part in match.groups())


def dialect_for(version: str | None, profile: Profile) -> RequestDialect:
    """The dialect to measure with: chat where it tells verify steps, `/generate` elsewhere and before it is known."""
    known = parse_version(version)
    if known is not None and known >= CHAT_SINCE:
        return ChatDialect(model=profile.engine.model, headers=auth_headers(profile, admin=False))
    return native_dialect(profile)


def native_dialect(profile: Profile) -> NativeDialect:
    """`/generate`, whose text is cumulative unless the profile turned that off."""
    flags = {name.replace("_", "-"): value for name, value in profile.engine.args.items()}
    incremental = flags.get("incremental-streaming-output") == "true"
    return NativeDialect(incremental=incremental, headers=auth_headers(profile, admin=False))


def auth_headers(profile: Profile, *, admin: bool) -> dict[str, str]:
    """The bearer token that the profile starts the engine with; `admin` endpoints refuse the plain key."""
    keys = {name.replace("_", "-"): value for name, value in profile.engine.args.items()}
    key = (keys.get("admin-api-key") if admin else None) or keys.get("api-key")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _decoded(answer: Answer, data: str) -> dict[str, Any] | None:
    """The event's object; None at the end, for what is no object, and after an error was noted."""
    answer.new_tokens = 0
    if data.strip() == "[DONE]":
        answer.done = True
        return None
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        answer.error = answer.error or f"an event that is no JSON: {data[:120]!r}"
        return None
    if not isinstance(event, dict):
        answer.error = answer.error or f"an event that is no object: {data[:120]!r}"
        return None
    if event.get("error") is not None:
        answer.error = error_text(event["error"])
        return None
    return event


def error_text(error: Any) -> str:
    """The engine's own words, of `"boom"` as of `{"message": …, "type": …, "code": …}`."""
    if isinstance(error, dict):
        error = error.get("message") or json.dumps(error)
    return str(error)[:500] or "the engine answered with an error"


def _count(value: Any) -> int | None:
    """A count as JSON gives it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _take_spec(answer: Answer, meta: Mapping[str, Any]) -> None:
    """Verify steps, accepted drafts and histogram, whatever this version calls them."""
    steps = _count(meta.get("spec_verify_ct"))
    if steps is not None:
        answer.verify_steps = steps
    answer.accepted_drafts = _first_count(meta, ACCEPTED_KEYS, answer.accepted_drafts)
    answer.proposed_drafts = _first_count(meta, PROPOSED_KEYS, answer.proposed_drafts)
    histogram = next((meta[key] for key in HISTOGRAM_KEYS if isinstance(meta.get(key), list)), None)
    if histogram is not None and all(_count(value) is not None for value in histogram):
        answer.histogram = tuple(histogram)


def _first_count(meta: Mapping[str, Any], keys: tuple[str, ...], before: int | None) -> int | None:
    """The count under the first of `keys` that has one."""
    return next((meta[key] for key in keys if _count(meta.get(key)) is not None), before)


def _seconds(value: Any, before: float | None) -> float | None:
    """A duration as JSON gives it; `before` for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < 1e9 else before


def _take_finish(answer: Answer, reason: Any) -> None:
    """`{"type": "stop"}` as well as `"stop"`; an abort is an error with its own words."""
    if reason is None:
        return
    kind = reason.get("type") if isinstance(reason, dict) else reason
    answer.finish_reason = str(kind)
    if answer.finish_reason in BAD_ENDS and answer.error is None:
        words = reason.get("message") if isinstance(reason, dict) else None
        answer.error = str(words or f"the engine ended the request: {answer.finish_reason}")[:500]


def _take_total(answer: Answer, total: Any) -> int:
    """Note the cumulative count of output tokens; returns how many are new."""
    known = _count(total)
    if known is None:
        return 0
    new = max(known - (answer.completion_tokens or 0), 0)
    answer.completion_tokens = max(known, answer.completion_tokens or 0)
    return new


@dataclass(frozen=True, slots=True)
class NativeDialect:
    """`POST /generate`. Each event carries the text and the token count so far.

    Attributes:
        incremental: the engine runs with `--incremental-streaming-output`: each event carries only new text.
    """

    incremental: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "sglang-generate"

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        """The streaming request for `prompt`, without a chat template.

        Raises:
            UsageError: the prompt is a chat, which only the model's template turns into text.
        """
        if prompt.messages:
            raise UsageError(
                f"the prompt {prompt.id!r} has messages, and /generate takes plain text",
                evidence=("this engine's version tells no verify steps at its chat endpoint",),
                advice="give the prompts as `text`, with the template's marks in it where the model needs them",
            )
        sampling: dict[str, Any] = {"max_new_tokens": prompt.max_tokens, "temperature": workload.temperature}
        if ignore_eos:
            sampling["ignore_eos"] = True
        if prompt.seed is not None:
            sampling["sampling_seed"] = prompt.seed
        body = {"text": prompt.text, "sampling_params": sampling, "stream": True}
        return HttpRequest("/generate", body, self.headers)

    def read(self, answer: Answer, data: str) -> None:
        """Take one event into `answer`."""
        event = _decoded(answer, data)
        if event is None:
            return
        text = event.get("text")
        if isinstance(text, str):
            answer.text = answer.text + text if self.incremental else text
        meta = event.get("meta_info")
        if not isinstance(meta, dict):
            return
        answer.new_tokens = _take_total(answer, meta.get("completion_tokens"))
        answer.prompt_tokens = _known(meta.get("prompt_tokens"), answer.prompt_tokens)
        answer.cached_tokens = _known(meta.get("cached_tokens"), answer.cached_tokens)
        if "spec_verify_ct" in meta:  # in the last chunk alone; a look for all spellings in each would cost
            _take_spec(answer, meta)
        if meta.get("finish_reason") is not None:
            _take_finish(answer, meta["finish_reason"])
            answer.server_e2e_s = _seconds(meta.get("e2e_latency"), answer.server_e2e_s)
            answer.server_ttft_s = _seconds(meta.get("first_token_latency"), answer.server_ttft_s)


def _known(value: Any, before: int | None) -> int | None:
    """The new count where there is one."""
    count = _count(value)
    return before if count is None else count


def _first_choice(choices: list[Any]) -> dict[str, Any] | None:
    """The choice at index 0; we ask for one, and what else an engine sends is not part of it."""
    return next((one for one in choices if isinstance(one, dict) and one.get("index", 0) == 0), None)


def _call_text(calls: Any) -> str:
    """Names and arguments of tool calls in one delta; one space where a call opens without either."""
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    parts = [str(one.get(key) or "") for one in functions if isinstance(one, dict) for key in ("name", "arguments")]
    return "".join(parts) or " "


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """`POST /v1/chat/completions`, with usage in every chunk and verify steps at the end (0.5.20 and later)."""

    model: str = "default"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "sglang-chat"

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        """The streaming request for `prompt`, under the model's own chat template."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(one) for one in prompt.messages] or [{"role": "user", "content": prompt.text}],
            "max_tokens": prompt.max_tokens,
            "temperature": workload.temperature,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_spec_tokens_details": True,
            "chat_template_kwargs": {"thinking": workload.thinking},
        }
        if ignore_eos:
            body["ignore_eos"] = True
        if prompt.seed is not None:
            body["seed"] = prompt.seed
        return HttpRequest("/v1/chat/completions", body, self.headers)

    def read(self, answer: Answer, data: str) -> None:
        """Take one event into `answer`."""
        event = _decoded(answer, data)
        if event is None:
            return
        choices = event.get("choices")
        choice = _first_choice(choices) if isinstance(choices, list) else None
        brought = choice is not None and self._take_choice(answer, choice)
        self._take_usage(answer, event.get("usage"), brought=brought, last=choice is None)
        extra = event.get("sglext")
        details = extra.get("spec_tokens_details") if isinstance(extra, dict) else None
        if isinstance(details, dict):
            _take_spec(answer, details)

    @staticmethod
    def _take_choice(answer: Answer, choice: Mapping[str, Any]) -> bool:
        """Content and reasoning of one chunk; whether it brought tokens. The first chunk has a role and no content."""
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        content = delta.get("content")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(content, str):
            answer.text += content
        if isinstance(reasoning, str):
            answer.reasoning += reasoning
        calls = delta.get("tool_calls")
        if calls:
            answer.tool_calls += _call_text(calls)
        _take_finish(answer, choice.get("finish_reason"))
        meta = choice.get("meta_info")
        if isinstance(meta, dict):
            _take_spec(answer, meta)
        return bool(content or reasoning or calls or choice.get("finish_reason"))

    @staticmethod
    def _take_usage(answer: Answer, usage: Any, *, brought: bool, last: bool) -> None:
        """Cumulative usage. A chunk without content leaves its tokens to the next one; the last has the total."""
        if not isinstance(usage, dict):
            return
        answer.prompt_tokens = _known(usage.get("prompt_tokens"), answer.prompt_tokens)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            answer.cached_tokens = _known(details.get("cached_tokens"), answer.cached_tokens)
        if brought or last:
            new = _take_total(answer, usage.get("completion_tokens"))
            answer.new_tokens = new if brought else 0
