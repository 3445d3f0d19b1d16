"""The measuring: prompts, what a request looks like, what its answer tells, and the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.experiment import Workload


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. `id` pairs it between configs.

    Attributes:
        text: the question; of a chat, what its messages say, one after the other, to be looked at and not to be sent.
        seed: of the sampling, where several answers to one question are drawn; None leaves it to the engine.
        messages: a whole chat as an OpenAI-style endpoint takes it, `{"role", "content", …}` each; empty for a
            question that is put by `text` alone.
    """

    id: str
    text: str
    max_tokens: int = 512
    seed: int | None = None
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as the dialect wants it: POST `path` with `body` as JSON, and `headers` such as a bearer token."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """What a stream has told so far; the dialect fills it in, chunk by chunk.

    Attributes:
        new_tokens: tokens that the last chunk added, 0 when it did not say.
        completion_tokens: so far, from usage or cumulative counts; None while the engine has not said.
        verify_steps, accepted_drafts, proposed_drafts, histogram: speculative counts of this request, when it said
            them.
        tool_calls: the text of tool calls so far: output as much as content is.
        server_ttft_s, server_e2e_s: what the engine measured of this request itself, seconds, when it said so.
        error: the engine's own words for a failure inside a 200 stream.
    """

    text: str = ""
    reasoning: str = ""
    new_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    verify_steps: int | None = None
    accepted_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] | None = None
    finish_reason: str | None = None
    tool_calls: str = ""
    server_ttft_s: float | None = None
    server_e2e_s: float | None = None
    error: str | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class DecodeTick:
    """One periodic line of an engine's log about decoding.

    Attributes:
        running: requests that decoded.
        tokens_per_s: since the line before, pauses included.
        accept_len: acceptance length of that stretch, the bonus token included; None without speculation.
    """

    running: int
    tokens_per_s: float
    accept_len: float | None = None


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """What an engine says of itself at one moment; None for what it does not say.

    Attributes:
        tokens, steps: output tokens and verify steps since its start, over all requests.
        lifetime_tau: its own acceptance length, over what its version says.
        ticks: decode lines of its log since the pass began.
    """

    tokens: float | None = None
    steps: float | None = None
    lifetime_tau: float | None = None
    ticks: tuple[DecodeTick, ...] = ()

    @property
    def seen_ticks(self) -> int:
        """Decode lines so far."""
        return len(self.ticks)


@runtime_checkable
class SelfReporting(Protocol):
    """An engine that tells of itself while it is measured. Not every engine is one."""

    async def counts(self, base_url: str) -> ServerCounts | None:
        """Its counters now; None when it has none or cannot be asked. Never raises."""
        ...

    def decode_tick(self, line: str) -> DecodeTick | None:
        """What a line of its log says of decoding; None for any other line."""
        ...


class RequestDialect(Protocol):
    """What a request looks like and what its answer tells, for one engine. `passes` sees only this."""

    @property
    def name(self) -> str:
        """Which dialect it is, in a word; written down with every result."""
        ...

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        """The streaming request for `prompt`.

        Raises:
            UsageError: the prompt is a chat, and only plain text can be asked here.
        """
        ...

    def read(self, answer: Answer, data: str) -> None:
        """Take the data of one server-sent event (without `data: `) into `answer`. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a run in the sandbox ended.

    verdict: ok, error, timeout, memory, output, processes, network, home, files, parent, children, signalled,
    no-isolation.
    """

    verdict: str
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0


class Sandbox(Protocol):
    """Runs a model's code where it can do no harm: limits on time, memory, processes and output; no home."""

    @property
    def isolation(self) -> str:
        """What holds it: `bubblewrap`, `namespace`, `rlimits`."""
        ...

    async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
        """Run `source` with the isolated interpreter, and end all its children."""
        ...
