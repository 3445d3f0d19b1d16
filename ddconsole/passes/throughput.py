"""The throughput pass: the same prompts at each concurrency level, closed loop."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING

from ddconsole.core.levels import summarise_level
from ddconsole.passes.base import PassResult, Progress, pass_summary
from ddconsole.passes.load import LoadWatch, closed_loop, warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.levels import LevelSummary, Objectives
    from ddconsole.core.ports import Prompt
    from ddconsole.core.profile import ThroughputPass
    from ddconsole.passes.base import PassContext


class ThroughputMeasure:
    """N requests at each concurrency level over a prompt set, cycled, so that configs and repeats pair by prompt."""

    name = "throughput"

    def __init__(self, plan: ThroughputPass, prompts: Sequence[Prompt], objectives: Objectives) -> None:
        self._plan = plan
        self._prompts = tuple(prompts)
        self._objectives = objectives

    @property
    def total(self) -> int:
        """Requests over all levels."""
        return len(self._plan.concurrency) * self._plan.requests

    def refusal(self) -> str | None:
        """It can be measured anywhere."""
        return None

    async def run(self, context: PassContext) -> PassResult:
        """Warm up, then measure level by level. The cache is emptied before each level where the context can."""
        progress = Progress(context, self.total)
        width = max(self._plan.concurrency)
        warm_error = await warm_up(context, self._cycled(self._plan.warmup * width), width)
        levels = []
        flushed = []
        for concurrency in self._plan.concurrency:
            flushed.append(await context.flush() if context.flush else None)
            levels.append(await self._level(context, concurrency, progress))
        summary = pass_summary(progress.records, levels) | {
            "prompts": len(self._prompts),
            "max_tokens": self._plan.max_tokens,
            "warmup": self._plan.warmup,
            "warmup_error": warm_error,
            "cache_flushed": None if None in flushed else all(flushed),
        }
        return PassResult(self.name, summary, tuple(progress.records))

    def _cycled(self, count: int) -> list[Prompt]:
        return list(islice(cycle(self._prompts), count))

    async def _level(self, context: PassContext, concurrency: int, progress: Progress) -> LevelSummary:
        prompts = self._cycled(self._plan.requests)
        watch = LoadWatch()
        async with watch.watching():
            records, wall_s = await closed_loop(context, prompts, concurrency, progress.add)
        return summarise_level(records, wall_s, concurrency, objectives=self._objectives, load=watch.result())
