"""The throughput pass: the same prompts at each concurrency level (closed loop) and at each rate (open loop)."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from ddconsole.core.levels import summarise_level
from ddconsole.core.loads import ClosedLoop, Load, LoadedLevel, OpenLoop
from ddconsole.core.quality import Level, QualityFinding
from ddconsole.passes.base import PassResult, Progress, check_prompts, pass_summary
from ddconsole.passes.crosscheck import CrossCheck
from ddconsole.passes.load import LoadWatch, closed_loop, warm_up
from ddconsole.passes.openloop import open_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.levels import Objectives
    from ddconsole.core.ports import Prompt
    from ddconsole.core.profile import ThroughputPass
    from ddconsole.passes.base import PassContext

CLOCK_JUMP_S = 2.0
"""The wall clock may move this far against the monotonic one before the level is marked."""


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
        width = max(plan.concurrency, default=1)
        warm_error = await warm_up(context, self._cycled(plan.warmup * width), width, ignore_eos=plan.exact_tokens)
        flushed = [await context.flush() if context.flush else None]
        check = await CrossCheck.begin(context)
        levels = [await self._level(context, self._loads[0], progress)]
        for load in self._loads[1:]:
            if not context.another():
                break
            flushed.append(await context.flush() if context.flush else None)
            levels.append(await self._level(context, load, progress))
        summary = pass_summary(progress.records, levels) | self._said(context, warm_error, flushed)
        summary["cut"] = [level.load.label for level in levels if len(level.records) < plan.requests]
        summary["left_out"] = [load.label for load in self._loads[len(levels) :]]
        summary["cross_check"] = await check.end(progress.records)
        summary["findings"] += [finding.to_json() for finding in (*check.findings, *_jumps(levels))]
        return PassResult(self.name, summary, tuple(progress.records))

    def _said(self, context: PassContext, warm_error: str | None, flushed: Sequence[bool | None]) -> dict[str, Any]:
        """What the pass was, beside what it found."""
        return {
            "dialect": context.dialect.name,
            "workload": context.workload.to_json(),
            "prompts": len(self._prompts),
            "max_tokens": self._plan.max_tokens,
            "exact_tokens": self._plan.exact_tokens,
            "warmup": self._plan.warmup,
            "warmup_error": warm_error,
            "cache_flushed": None if None in flushed else all(flushed),
        }

    def _cycled(self, count: int) -> list[Prompt]:
        return list(islice(cycle(self._prompts), count))

    async def _level(self, context: PassContext, load: Load, progress: Progress) -> LoadedLevel:
        prompts, exact = self._cycled(self._plan.requests), self._plan.exact_tokens
        watch, clock = LoadWatch(), context.clock
        wall, monotonic = clock.now(), clock.monotonic()
        async with watch.watching():
            if isinstance(load, OpenLoop):
                records, wall_s = await open_loop(context, prompts, load, progress.add, ignore_eos=exact)
            else:
                records, wall_s = await closed_loop(context, prompts, load.concurrency, progress.add, ignore_eos=exact)
        jump_s = (clock.now() - wall).total_seconds() - (clock.monotonic() - monotonic)
        summary = summarise_level(records, wall_s, load.concurrency, objectives=self._objectives, load=watch.result())
        return LoadedLevel(load, summary, tuple(records), jump_s)


def _jumps(levels: Sequence[LoadedLevel]) -> list[QualityFinding]:
    """A warning for levels in which this machine slept, or its clock was set."""
    labels = [level.load.label for level in levels if abs(level.clock_jump_s) > CLOCK_JUMP_S]
    if not labels:
        return []
    text = f"this machine slept, or its clock was set, during {', '.join(labels)}"
    return [QualityFinding(Level.WARN, "clock-jump", text)]
