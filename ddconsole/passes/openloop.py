"""The open loop: requests go out when they are due, whether or not the engine keeps up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ddconsole.core.arrivals import due_times
from ddconsole.core.early import MIN_ASKED
from ddconsole.passes.client import ask, open_client
from ddconsole.passes.load import Uses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

    from ddconsole.core.loads import OpenLoop
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Prompt
    from ddconsole.passes.base import PassContext


async def open_loop(
    context: PassContext,
    prompts: Sequence[Prompt],
    load: OpenLoop,
    on_record: Callable[[RequestRecord], None],
    *,
    ignore_eos: bool = False,
    flushed: bool | None = None,
) -> tuple[list[RequestRecord], float]:
    """Ask every prompt when it is due; at most `load.cap` are in flight, and what is due beyond that waits.

    The context may say that it is enough, and then no further one is asked. What would be due behind the end of the
    time box is not waited for, once `MIN_ASKED` are sent.

    Args:
        flushed: the prefix cache was emptied before, so that the first use of a prompt is cold.

    Returns:
        The records in the order they ended, and the wall time from the first request sent to the last response's end.
    """
    async with (
        open_client(context.base_url, streams=load.cap, stall_s=context.stall_s, clock=context.clock) as client,
        asyncio.TaskGroup() as group,
    ):
        sender = _Sender(context, client, load, on_record, ignore_eos, Uses(flushed))
        await sender.send_all(prompts, group)
    return sender.records, max((record.started_s + record.end_s for record in sender.records), default=0.0)


class _Sender:
    """Sends requests at their due times and collects the records."""

    def __init__(
        self,
        context: PassContext,
        client: httpx.AsyncClient,
        load: OpenLoop,
        on_record: Callable[[RequestRecord], None],
        ignore_eos: bool,
        uses: Uses,
    ) -> None:
        self._context = context
        self._client = client
        self._load = load
        self._on_record = on_record
        self._ignore_eos = ignore_eos
        self._uses = uses
        self._free = asyncio.Semaphore(load.cap)
        self._origin = context.clock.monotonic()
        self._held_until = 0.0
        self._sent = 0
        self.records: list[RequestRecord] = []

    async def send_all(self, prompts: Sequence[Prompt], group: asyncio.TaskGroup) -> None:
        """Start each request as a task of `group` when it is due and there is a place for it."""
        clock, context = self._context.clock, self._context
        load = self._load
        for prompt, due in zip(prompts, due_times(load.arrivals, load.rate, len(prompts), load.seed), strict=True):
            wait = max(self._origin + due - clock.monotonic(), 0.0)
            if self._too_late(wait):
                return
            if wait:
                await clock.sleep(wait)
            if context.enough is not None and context.enough(self.records, len(prompts)):
                return
            held_s = await self._place(due)
            if self._too_late(0.0):
                self._free.release()
                return
            self._sent += 1
            group.create_task(self._ask(prompt, held_s))

    def _too_late(self, wait: float) -> bool:
        """The time box is used up in `wait` seconds. An engine that answers nothing in time still gets no more."""
        left = self._context.time_left()
        return left is not None and left <= wait and self._sent >= MIN_ASKED

    async def _place(self, due: float) -> float:
        """Wait for a free place; how long the cap held this request, seconds.

        A request that became due while an earlier one was held was held by the cap too. A timer that goes off late is
        not the cap's doing: that is the event loop's lag, told apart.
        """
        capped = self._free.locked() or due < self._held_until
        await self._free.acquire()
        now = self._context.clock.monotonic() - self._origin
        if not capped:
            return 0.0
        self._held_until = now
        return max(now - due, 0.0)

    async def _ask(self, prompt: Prompt, held_s: float) -> None:
        context = self._context
        try:
            record = await ask(
                self._client,
                context.dialect,
                prompt,
                context.workload,
                clock=context.clock,
                concurrency=0,
                ignore_eos=self._ignore_eos,
                stall_s=context.stall_s,
                origin=self._origin,
                rate=self._load.rate,
                held_s=held_s,
                asked_before=self._uses.of(prompt),
            )
        finally:
            self._free.release()
        self.records.append(record)
        self._on_record(record)
