"""The throughput pass: the same prompts at each concurrency level (closed loop) and at each rate (open loop)."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from ddconsole.core.loads import ClosedLoop, Load, LoadedLevel, OpenLoop
from ddconsole.passes.base import PassResult, Progress, check_prompts, pass_summary
from ddconsole.passes.crosscheck import CrossCheck
from ddconsole.passes.level import clock_findings, flushed, measure_level
from ddconsole.passes.load import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.levels import Objectives
    from ddconsole.core.ports import Prompt
    from ddconsole.core.profile import ThroughputPass
    from ddconsole.passes.base import PassContext

RATE_BURST = 16
"""Streams with which a rate is warmed up, at most. How many it will have in flight is rate × latency, which is not
known before; as many as its cap allows could ask as much as the level itself."""


class ThroughputMeasure:
    """N requests at each level over a prompt set, cycled, so that configs and repeats pair by prompt."""

    name = "throughput"

    def __init__(self, plan: ThroughputPass, prompts: Sequence[Prompt], objectives: Objectives) -> None:
        self._plan = plan
        self._prompts = tuple(prompts)
        self._objectives = objectives
        closed = [ClosedLoop(concurrency) for concurrency in plan.concurrency]
        rates = [OpenLoop(rate, plan.arrivals, plan.max_in_flight, plan.seed) for rate in plan.rate]
        self._loads: tuple[Load, ...] = (*closed, *rates)

    @property
    def total(self) -> int:
        """Requests over all levels."""
        return len(self._loads) * self._plan.requests

    def refusal(self) -> str | None:
        """It can be measured anywhere."""
        return None

    async def run(self, context: PassContext) -> PassResult:
        """Warm up, then measure level by level. The cache is emptied before each level where the context can.

        Raises:
            UsageError: the prompts are chats, and this engine takes plain text alone.
        """
        check_prompts(context.dialect, self._prompts, context.workload)
        plan, progress = self._plan, Progress(context, self.total)
        warm_error = await self._warm_up(context)
        emptied = [await flushed(context)]
        check = await CrossCheck.begin(context)
        levels = [await self._level(context, self._loads[0], progress, emptied[0])]
        for load in self._loads[1:]:
            if not context.another():
                break
            emptied.append(await flushed(context))
            levels.append(await self._level(context, load, progress, emptied[-1]))
        summary = pass_summary(progress.records, levels) | self._said(context, warm_error, emptied)
        summary["cut"] = [level.load.label for level in levels if len(level.records) < plan.requests]
        summary["left_out"] = [load.label for load in self._loads[len(levels) :]]
        summary["cross_check"] = await check.end(progress.records)
        summary["findings"] += [finding.to_json() for finding in (*check.findings, *clock_findings(levels))]
        return PassResult(self.name, summary, tuple(progress.records))

    async def _warm_up(self, context: PassContext) -> str | None:
        """Each width that will be measured, in its own width: where all answers are of one length a wide batch never
        becomes a narrow one. The first error, or None."""
        errors = [
            await warm_up(context, self._cycled(self._plan.warmup * width), width, ignore_eos=self._plan.exact_tokens)
            for width in self._warm_widths()
        ]
        return next((error for error in errors if error is not None), None)

    def _warm_widths(self) -> list[int]:
        """Streams of each warm-up: the levels' own, and for rates a burst."""
        plan = self._plan
        bursts = [min(plan.max_in_flight, plan.requests, RATE_BURST)] if plan.rate else []
        return list(dict.fromkeys((*plan.concurrency, *bursts)))

    def _said(self, context: PassContext, warm_error: str | None, emptied: Sequence[bool | None]) -> dict[str, Any]:
        """What the pass was, beside what it found."""
        return {
            "dialect": context.dialect.name,
            "workload": context.workload.to_json(),
            "prompts": len(self._prompts),
            "max_tokens": self._plan.max_tokens,
            "exact_tokens": self._plan.exact_tokens,
            "warmup": self._plan.warmup,
            "warmup_error": warm_error,
            "cache_flushed": None if None in emptied else all(emptied),
        }

    def _cycled(self, count: int) -> list[Prompt]:
        return list(islice(cycle(self._prompts), count))

    async def _level(self, context: PassContext, load: Load, progress: Progress, emptied: bool | None) -> LoadedLevel:
        return await measure_level(
            context,
            load,
            self._cycled(self._plan.requests),
            progress,
            emptied=emptied,
            objectives=self._objectives,
            ignore_eos=self._plan.exact_tokens,
        )
