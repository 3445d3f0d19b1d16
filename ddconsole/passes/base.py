"""What a pass is given, what it gives back, and the Protocol that every pass fulfils."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from ddconsole.core.boots import prompt_sums
from ddconsole.core.quality import inspect_records
from ddconsole.passes.client import STALL_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ddconsole.core.experiment import Workload
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Clock, Prompt, RequestDialect, ServerCounts

WARMUP_MARK = "(warm-up)"
"""In front of a warm-up's text, so that it shares no prefix with a measured prompt."""

ERRORS_KEPT = 5
"""Different errors that a summary tells."""


def _unbounded() -> None:
    """Without a time box there is no end to it."""


def _always() -> bool:
    """Nothing keeps a level from being measured."""
    return True


@dataclass(frozen=True, slots=True)
class PassContext:
    """An engine that is ready, and who wants to hear of each request.

    Attributes:
        base_url: where the engine answers, `http://127.0.0.1:PORT`.
        on_request: called with (record, requests done, requests in all) as each measured request ends.
        flush: empties the engine's prefix cache between levels, False when it refused; None leaves it alone.
        stall_s: seconds without an event after which one request is given up.
        counts: reads the engine's own counters, for the cross-check; None where it has none.
        enough: asked before each request with the level's records so far and its size; True asks no further one.
        time_left: seconds until the suite's time box is used up, at or below zero when it is; None without a box.
        another: asked before each level but the first; False leaves it and those behind it out.
        round_trip_s: of a request without work, measured before the pass; None where nothing answered.
    """

    base_url: str
    dialect: RequestDialect
    workload: Workload
    clock: Clock
    on_request: Callable[[RequestRecord, int, int], None]
    flush: Callable[[], Awaitable[bool]] | None = None
    stall_s: float = STALL_S
    enough: Callable[[Sequence[RequestRecord], int], bool] | None = None
    counts: Callable[[], Awaitable[ServerCounts | None]] | None = None
    time_left: Callable[[], float | None] = _unbounded
    another: Callable[[], bool] = _always
    round_trip_s: float | None = None


@dataclass(frozen=True, slots=True)
class PassResult:
    """A finished pass: its summary (JSON values, units in the names) and the records behind it."""

    name: str
    summary: dict[str, Any]
    records: tuple[RequestRecord, ...] = ()


class MeasuringPass(Protocol):
    """One measurement of a ready engine."""

    @property
    def name(self) -> str:
        """`coding`, `throughput`, `quality`."""
        ...

    @property
    def total(self) -> int:
        """Requests that it will send, warm-up not counted."""
        ...

    def refusal(self) -> str | None:
        """Why it cannot be measured on this machine, or None; asked before an engine is started for it."""
        ...

    async def run(self, context: PassContext) -> PassResult:
        """Measure. Faults of single requests are records with an error, never exceptions."""
        ...


class Progress:
    """Counts the requests of a pass as they end and tells the context."""

    def __init__(self, context: PassContext, total: int) -> None:
        self._context = context
        self._total = total
        self.records: list[RequestRecord] = []

    def add(self, record: RequestRecord) -> None:
        """A measured request ended."""
        self.records.append(record)
        self._context.on_request(record, len(self.records), self._total)


class Summarised(Protocol):
    """A level that tells its figures."""

    def to_json(self) -> dict[str, Any]:
        """Units in the names, None for what is unknown."""
        ...


def pass_summary(records: Sequence[RequestRecord], levels: Sequence[Summarised]) -> dict[str, Any]:
    """What every pass tells: counts, errors in the server's words, alarms, levels, and what pairs prompts.

    `by_prompt` holds the totals of each prompt's concurrency-1 requests that count (`boots.PROMPT_SUMS`), for comparing
    configs.
    """
    errors = Counter(record.error for record in records if record.error is not None)
    return {
        "requests": len(records),
        "failed": sum(errors.values()),
        "errors": [{"text": text, "count": count} for text, count in errors.most_common(ERRORS_KEPT)],
        "findings": [finding.to_json() for finding in inspect_records(records)],
        "levels": [level.to_json() for level in levels],
        "by_prompt": prompt_sums(records),
    }


def check_prompts(dialect: RequestDialect, prompts: Sequence[Prompt], workload: Workload) -> None:
    """Refuse prompts that this dialect cannot put, before the first request is sent.

    Raises:
        UsageError: a chat where only plain text can be asked.
    """
    for prompt in prompts:
        dialect.request(prompt, workload)


def warmup_prompt(prompt: Prompt) -> Prompt:
    """The same shape as `prompt`, its length too, without its prefix: a warm-up must not put a measured prompt into the
    prefix cache."""
    chat = prompt.messages and (
        {**prompt.messages[0], "content": f"{WARMUP_MARK} {prompt.messages[0]['content']}"},
        *prompt.messages[1:],
    )
    return replace(
        prompt,
        id=f"warm-up:{prompt.id}",
        text=f"{WARMUP_MARK} {prompt.text}",
        messages=chat,
    )
