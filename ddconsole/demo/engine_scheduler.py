"""The toy engine's scheduler: requests decode in lock-step batches that share the simulated step time."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddconsole.demo.engine_boot import KV_TOKENS
from ddconsole.demo.language import END

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ddconsole.demo.cost import CostModel
    from ddconsole.demo.decode import Generation, Step
    from ddconsole.demo.engine_log import EngineLog

CACHED_PROMPTS = 64
"""Prompts that the prefix cache keeps."""


@dataclass(frozen=True, slots=True)
class Update:
    """A request has come further: tokens so far, and why it ended if it has (SGLang's finish_reason)."""

    completion_tokens: int
    finish: dict[str, Any] | None = None


@dataclass(slots=True)
class Job:
    """One request in the engine. Times are `time.time()` seconds, None until they have happened.

    Attributes:
        came_at, told_at: for the step log, on the monotonic clock: when it came, when each step was told.
    """

    rid: str
    prompt: tuple[int, ...]
    generation: Generation
    received_at: float = field(default_factory=time.time)
    started_at: float | None = None
    first_token_at: float | None = None
    finished_at: float | None = None
    cached_tokens: int = 0
    aborted: bool = False
    steps: list[tuple[int, int | None, int]] = field(default_factory=list)
    came_at: float = field(default_factory=time.monotonic)
    told_at: list[float] = field(default_factory=list)
    _updates: asyncio.Queue[Update] = field(default_factory=asyncio.Queue)

    def tell(self, update: Update) -> None:
        """Hand an update to whoever reads `updates`."""
        self._updates.put_nowait(update)

    async def updates(self) -> AsyncIterator[Update]:
        """Updates as they come; the last one has `finish` set."""
        while True:
            update = await self._updates.get()
            yield update
            if update.finish:
                return


@dataclass(slots=True)
class SpecWindow:
    """Accepted drafts and verify steps of some stretch; each request's step counts once."""

    steps: int = 0
    accepted: int = 0
    tokens: int = 0

    def add(self, other: SpecWindow) -> None:
        """Take another stretch in."""
        self.steps += other.steps
        self.accepted += other.accepted
        self.tokens += other.tokens

    @property
    def accept_length(self) -> float:
        """1 + accepted / steps, or 0 without steps."""
        return 1 + self.accepted / self.steps if self.steps else 0.0


@dataclass(slots=True)
class Totals:
    """Counters since start, for /metrics."""

    requests: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    verify_calls: int = 0


class Scheduler:
    """Admits, prefills and decodes. `run` is its one task; everything else is called on the same loop."""

    def __init__(
        self,
        cost: CostModel,
        log: EngineLog,
        computed: Callable[[float], None],
        *,
        max_running: int,
        log_interval: int,
        cache_prompts: bool = True,
        step_log: str | None = None,
    ) -> None:
        """`computed` is told the seconds that the cards were busy; `step_log` is a file for the truth of each step."""
        self.totals = Totals()
        self.lifetime = SpecWindow()
        """Since the start or the last flush, counted at the log's ticks only, as SGLang does."""
        self.last_window = SpecWindow()
        self.last_throughput = 0.0
        self.running: list[Job] = []
        self.waiting: deque[Job] = deque()
        self._cost = cost
        self._log = log
        self._computed = computed
        self._max_running = max_running
        self._log_interval = log_interval
        self._cache: deque[tuple[int, ...]] | None = deque(maxlen=CACHED_PROMPTS) if cache_prompts else None
        self._step_log = Path(step_log) if step_log else None
        self._window = SpecWindow()
        self._forwards = 0
        self._ticked_at = time.monotonic()
        self._work = asyncio.Event()

    @property
    def idle(self) -> bool:
        """No request is waiting or running."""
        return not self.running and not self.waiting

    @property
    def context_tokens(self) -> int:
        """Tokens in the KV cache that running requests hold."""
        return sum(job.generation.context_tokens for job in self.running)

    def submit(self, job: Job) -> None:
        """Queue a request."""
        self.totals.requests += 1
        self.waiting.append(job)
        self._work.set()

    def abort(self, rids: Iterable[str] | None) -> None:
        """Mark requests as aborted, all of them with None; they end at the next step."""
        wanted = None if rids is None else set(rids)
        for job in [*self.waiting, *self.running]:
            if wanted is None or job.rid in wanted:
                job.aborted = True
        self._work.set()

    def flush(self) -> bool:
        """Empty the prefix cache and reset the speculative counts; False when requests are in flight."""
        if not self.idle:
            self._log.rank(
                0,
                f"Cache not flushed because there are pending requests. #queue-req: {len(self.waiting)}, "
                f"#running-req: {len(self.running)}",
            )
            return False
        if self._cache is not None:
            self._cache.clear()
        self.lifetime, self._window, self._forwards = SpecWindow(), SpecWindow(), 0
        self._log.rank(0, "Cache flushed successfully!")
        return True

    async def run(self) -> None:
        """Work for ever."""
        while True:
            if self.idle:
                self._work.clear()
                await self._work.wait()
            self._drop_aborted()
            if self.waiting and len(self.running) < self._max_running:
                await self._prefill()
            elif self.running:
                await self._decode()

    def _drop_aborted(self) -> None:
        for job in [job for job in [*self.waiting, *self.running] if job.aborted]:
            self.totals.aborted += 1
            self._end(job, {"type": "abort", "message": "Aborted by the client.", "status_code": None})
        self.waiting = deque(job for job in self.waiting if not job.aborted)
        self.running = [job for job in self.running if not job.aborted]

    async def _prefill(self) -> None:
        began = time.monotonic()
        batch = [self.waiting.popleft() for _ in range(min(len(self.waiting), self._max_running - len(self.running)))]
        for job in batch:
            job.started_at = time.time()
            job.cached_tokens = self._cached(job.prompt)
        new = sum(len(job.prompt) - job.cached_tokens for job in batch)
        steps = [(job, job.generation.prefill()) for job in batch]
        await self._spend(began, self._cost.prefill_s(new))
        cached = sum(job.cached_tokens for job in batch)
        self.totals.prompt_tokens += sum(len(job.prompt) for job in batch)
        self.totals.cached_tokens += cached
        self._log.rank(
            0,
            f"Prefill batch, #new-seq: {len(batch)}, #new-token: {new}, #cached-token: {cached}, "
            f"token usage: {self.context_tokens / KV_TOKENS:.2f}, #running-req: {len(self.running)}, "
            f"#queue-req: {len(self.waiting)}, #pending-token: 0, cuda graph: False, "
            f"input throughput (token/s): {new / max(time.monotonic() - began, 1e-6):.2f}",
        )
        self.running += batch
        for job, step in steps:
            job.first_token_at = time.time()
            self._deliver(job, step)

    async def _decode(self) -> None:
        began = time.monotonic()
        steps = [(job, job.generation.step()) for job in self.running]
        drafted = steps[0][1].accepted is not None
        contexts = [job.generation.context_tokens for job, _ in steps]
        await self._spend(began, self._cost.step_s([step.width for _, step in steps], contexts, drafted=drafted))
        for job, step in steps:
            self._count(step)
            job.steps.append((step.width, step.accepted, len(step.tokens)))
            self._deliver(job, step)
        self._forwards += 1
        if self._forwards % self._log_interval == 0:
            self._tick(len(steps))

    async def _spend(self, began: float, seconds: float) -> None:
        """Wait until `seconds` after `began`; our own computing is part of them."""
        self._computed(seconds)
        await asyncio.sleep(max(began + seconds - time.monotonic(), 0))

    def _count(self, step: Step) -> None:
        self._window.tokens += len(step.tokens)
        if step.accepted is not None:
            self._window.steps += 1
            self._window.accepted += step.accepted
            self.totals.verify_calls += 1

    def _tick(self, running: int) -> None:
        """SGLang's periodic line; the first one after a pause counts the pause in its throughput, as SGLang's does."""
        now = time.monotonic()
        self.last_throughput = self._window.tokens / max(now - self._ticked_at, 1e-6)
        used = self.context_tokens
        spec = ""
        if self._window.steps:
            depth = next((len(job.generation.counts.histogram) - 1 for job in self.running), 0)
            rate = self._window.accepted / (self._window.steps * depth) if depth else 0.0
            spec = f"accept len: {self._window.accept_length:.2f}, accept rate: {rate:.2f}, "
        self._log.rank(
            0,
            f"Decode batch, #running-req: {running}, #token: {used}, token usage: {used / KV_TOKENS:.2f}, {spec}"
            f"cuda graph: True, gen throughput (token/s): {self.last_throughput:.2f}, #queue-req: {len(self.waiting)}",
        )
        self.lifetime.add(self._window)
        self.last_window, self._window, self._ticked_at = self._window, SpecWindow(), now

    def _deliver(self, job: Job, step: Step) -> None:
        """Tell the request's reader about a step, and end the request if this was its last one."""
        job.told_at.append(time.monotonic())
        self.totals.generation_tokens += len(step.tokens)
        ended = job.generation.finish
        if ended is None:
            job.tell(Update(len(job.generation.output)))
            return
        self.running.remove(job)
        length = len(job.generation.output)
        self._end(job, {"type": "stop", "matched": END} if ended == "stop" else {"type": "length", "length": length})

    def _end(self, job: Job, finish: dict[str, Any]) -> None:
        job.finished_at = time.time()
        if self._cache is not None and job.started_at is not None:
            self._cache.append(job.prompt)
        if self._step_log:
            self._write_steps(self._step_log, job)
        job.tell(Update(len(job.generation.output), finish))

    def _cached(self, prompt: tuple[int, ...]) -> int:
        """Tokens of `prompt` that some cached prompt begins with; at least one token is always computed."""
        longest = max((_common_prefix(prompt, other) for other in self._cache or ()), default=0)
        return min(longest, len(prompt) - 1)

    @staticmethod
    def _write_steps(path: Path, job: Job) -> None:
        """The truth of a request, for tests: each step as [verified, accepted drafts, tokens added].

        `came_s`, and `told_s` of the prefill and of each step, are moments of this machine's monotonic clock.
        """
        record = {
            "rid": job.rid,
            "prompt_tokens": len(job.prompt),
            "completion_tokens": len(job.generation.output),
            "steps": job.steps,
            "came_s": job.came_at,
            "told_s": job.told_at,
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _common_prefix(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return length
