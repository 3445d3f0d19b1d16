"""The measuring: prompts, what a request looks like, what its answer tells, and the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.experiment import Workload


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. `id` pairs it between configs."""

    id: str
    text: str
    max_tokens: int = 512


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
        verify_steps, accepted_drafts, histogram: speculative counts of this request, when it said them.
        first_is_reasoning: the first token came as reasoning.
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
    histogram: tuple[int, ...] | None = None
    finish_reason: str | None = None
    error: str | None = None
    done: bool = False


class RequestDialect(Protocol):
    """What a request looks like and what its answer tells, for one engine. `passes` sees only this."""

    @property
    def name(self) -> str:
        """Which dialect it is, in a word; written down with every result."""
        ...

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        """The streaming request for `prompt`."""
        ...

    def read(self, answer: Answer, data: str) -> None:
        """Take the data of one server-sent event (without `data: `) into `answer`. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a run in the sandbox ended. verdict: ok, error, timeout, memory, output, no-isolation."""

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
