"""A console over scripted parts: the runner is driven through every turn, and what it published is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from fakes.scripted import Script, ScriptedPass, make_bench

from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Place, Queue, Remove
from ddconsole.runner.console import Console


def tree(budget: int = 12, block_size: int = 8) -> Config:
    return Config(Algorithm.TREE, block_size, budget, 6, 2048)


class World:
    """A console over scripted parts, with everything that was published."""

    def __init__(self, folder: Path, script: Script, passes: Sequence[ScriptedPass]) -> None:
        self.script = script
        self.bench = make_bench(folder, script)
        self.console = Console(self.bench, lambda text, queue: Remove((text,)), patient=False)
        self.seen: list[events.Event] = []
        self._news = asyncio.Event()
        self.console.feed.subscribe(self._see)
        self.passes = passes

    def _see(self, event: events.Event) -> None:
        self.seen.append(event)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait, looking again at each event, until the condition holds."""
        async with asyncio.timeout(30):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def add(self, *configs: Config) -> Queue:
        drafts = tuple(Draft(config) for config in configs)
        return await self.console.edit(Add(drafts, Origin(), Place()))

    async def drain(self, *, resume: bool = False, limit: int | None = None) -> str:
        await self.console.begin(waits=False, resume=resume)
        return (await self.console.drain(limit)).reason

    def of(self, kind: type[events.Body]) -> list[events.Body]:
        return [event.body for event in self.seen if isinstance(event.body, kind)]

    def outcomes(self) -> list[str]:
        return [body.outcome for body in self.of(events.ExperimentFinished)]  # type: ignore[attr-defined]


Opened = Callable[..., AbstractAsyncContextManager[World]]
