"""The closed loop, and what it costs this machine."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.levels import ClientLoad
from ddconsole.core.stats import percentile
from ddconsole.passes.base import warmup_prompt
from ddconsole.passes.client import ask, open_client
from ddconsole.passes.helpers import CpuOfHelpers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Prompt
    from ddconsole.passes.base import PassContext

LAG_EVERY_S = 0.1
"""How often the event loop's lag is sampled: seldom enough not to be part of what it measures."""


class LoadWatch:
    """Measures the CPU share of this process and of its ssh, and the event loop's lag, while a level runs."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._cpu = self._wall = 0.0

    async def _sample(self) -> None:
        while True:
            due = time.perf_counter() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            self._lags.append(max(time.perf_counter() - due, 0.0))

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Sample while the body runs. What was there before is no matter for the garbage collector meanwhile: its walk
        through a whole screen's objects would hold the loop up for tens of milliseconds.
        """
        gc.freeze()
        cpu, wall, helpers = time.process_time(), time.perf_counter(), CpuOfHelpers()
        sampler = asyncio.create_task(self._sample(), name="load-watch")
        try:
            yield
        finally:
            sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampler
            gc.unfreeze()
            self._cpu += time.process_time() - cpu + helpers.since()
            self._wall += time.perf_counter() - wall

    def result(self) -> ClientLoad:
        """What was measured."""
        return ClientLoad(self._cpu / self._wall if self._wall else None, percentile(self._lags, 0.99))


class Uses:
    """Counts how often each prompt is sent between two flushes.

    Args:
        flushed: whether the prefix cache was emptied before; without that a first use says nothing.
    """

    def __init__(self, flushed: bool | None) -> None:
        self._flushed = flushed
        self._sent: Counter[str] = Counter()

    def of(self, prompt: Prompt) -> int | None:
        """The `asked_before` of a request that is sent now."""
        before = self._sent[prompt.id]
        self._sent[prompt.id] += 1
        return before if before or self._flushed else None


async def closed_loop(
    context: PassContext,
    prompts: Sequence[Prompt],
    concurrency: int,
    on_record: Callable[[RequestRecord], None],
    *,
    ignore_eos: bool = False,
    flushed: bool | None = None,
) -> tuple[list[RequestRecord], float]:
    """Ask every prompt, `concurrency` at a time: each stream takes the next prompt as soon as its last one ended.

    The context may say that it is enough, and then no further one is asked.

    Args:
        flushed: the prefix cache was emptied before, so that the first use of a prompt is cold.

    Returns:
        The records in the order they ended, and the wall time from the first request sent to the last response's end.
    """
    records: list[RequestRecord] = []
    uses = Uses(flushed)
    queue = _until_enough(context, prompts, records)
    async with open_client(
        context.base_url, streams=concurrency, stall_s=context.stall_s, clock=context.clock
    ) as client:
        origin = context.clock.monotonic()

        async def stream() -> None:
            for prompt in queue:
                record = await ask(
                    client,
                    context.dialect,
                    prompt,
                    context.workload,
                    clock=context.clock,
                    concurrency=concurrency,
                    ignore_eos=ignore_eos,
                    stall_s=context.stall_s,
                    origin=origin,
                    asked_before=uses.of(prompt),
                )
                records.append(record)
                on_record(record)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(prompts))):
                group.create_task(stream())
    return records, max((record.started_s + record.end_s for record in records), default=0.0)


async def warm_up(
    context: PassContext, prompts: Sequence[Prompt], concurrency: int, *, ignore_eos: bool = False
) -> str | None:
    """Ask the same shapes without counting them. Returns the first error; the measured requests will show it too."""
    whole = replace(context, enough=None)
    shapes = [warmup_prompt(prompt) for prompt in prompts]
    records, _ = await closed_loop(whole, shapes, concurrency, _unheard, ignore_eos=ignore_eos)
    return next((record.error for record in records if record.error is not None), None)


def _until_enough(
    context: PassContext, prompts: Sequence[Prompt], records: Sequence[RequestRecord]
) -> Iterator[Prompt]:
    """The prompts, until the context has enough."""
    for prompt in prompts:
        if context.enough is not None and context.enough(records, len(prompts)):
            return
        yield prompt


def _unheard(_record: RequestRecord) -> None:
    """Warm-up requests are told to nobody."""
