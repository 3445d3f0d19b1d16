"""One level of any pass, measured the same way: cache, load, the client's own cost, and this machine's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.levels import summarise_level
from ddconsole.core.loads import ClosedLoop, Load, LoadedLevel, OpenLoop
from ddconsole.core.quality import Level, QualityFinding
from ddconsole.passes.load import LoadWatch, closed_loop
from ddconsole.passes.openloop import open_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.levels import Objectives
    from ddconsole.core.ports import Prompt
    from ddconsole.passes.base import PassContext, Progress

ONE = ClosedLoop(1)
"""The load of the passes that look at one request at a time."""

CLOCK_JUMP_S = 2.0
"""The wall clock may move this far against the monotonic one before the level is marked."""


async def flushed(context: PassContext) -> bool | None:
    """Empty the prefix cache: whether the engine did; None where it is left alone."""
    return await context.flush() if context.flush else None


async def measure_level(
    context: PassContext,
    load: Load,
    prompts: Sequence[Prompt],
    progress: Progress,
    *,
    emptied: bool | None,
    objectives: Objectives | None = None,
    ignore_eos: bool = False,
) -> LoadedLevel:
    """Ask the prompts under a load and sum them up.

    Args:
        emptied: what `flushed` said right before, with nothing asked since.
    """
    watch, clock = LoadWatch(), context.clock
    wall, monotonic = clock.now(), clock.monotonic()
    async with watch.watching():
        if isinstance(load, OpenLoop):
            records, wall_s = await open_loop(
                context, prompts, load, progress.add, ignore_eos=ignore_eos, flushed=emptied
            )
        else:
            records, wall_s = await closed_loop(
                context, prompts, load.concurrency, progress.add, ignore_eos=ignore_eos, flushed=emptied
            )
    jump_s = (clock.now() - wall).total_seconds() - (clock.monotonic() - monotonic)
    summary = summarise_level(records, wall_s, load.concurrency, objectives=objectives, load=watch.result())
    return LoadedLevel(load, summary, tuple(records), jump_s, context.round_trip_s)


def clock_findings(levels: Sequence[LoadedLevel]) -> list[QualityFinding]:
    """A warning for levels in which this machine slept, or its clock was set."""
    labels = [level.load.label for level in levels if abs(level.clock_jump_s) > CLOCK_JUMP_S]
    if not labels:
        return []
    text = f"this machine slept, or its clock was set, during {', '.join(labels)}"
    return [QualityFinding(Level.WARN, "clock-jump", text)]
