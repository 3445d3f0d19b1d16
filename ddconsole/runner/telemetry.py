"""GPU samples at one a second, over one long-lived channel that is opened again whenever it ends or falls silent."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.core.events import GpuSampled, Warned
from ddconsole.core.gpu import QUERY_FIELDS, GpuParser, query_command
from ddconsole.core.gpu_list import bad_field
from ddconsole.core.gpu_unified import MEMINFO, parse_meminfo, shares_host_memory, with_host_memory
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.gpu import GpuSample, GpuTick
    from ddconsole.core.gpu_unified import HostMemory
    from ddconsole.core.ports import ByteStream, Clock, Host
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
"""Seconds before nvidia-smi is started again; doubled while it does not stay."""

STEADY_S = 10.0
"""A run that brought cards for so long was a good one: the next may start at once."""

SILENT_S = 30.0
"""Without a byte for so long it hangs. Without persistence mode the first answer of eight cards takes over ten."""

MEMORY_EVERY_S = 2.0
"""How often the host's memory is read where a card has none of its own."""

MEMORY_S = 5.0
"""Seconds that reading it may take."""


async def watch_gpus(session: Session, journal: Journal, clock: Clock) -> None:
    """Publish samples until cancelled. A host without nvidia-smi says so, and everything else works."""
    loop = QueryLoop(journal, clock)
    delay = FIRST_RETRY_S
    while True:
        began = clock.monotonic()
        try:
            good = await session.on_host(loop.run)
        except HostError as error:
            why = f" ({error.evidence[0]})" if error.evidence else ""
            journal.show(GpuSampled(problem=f"nvidia-smi cannot be run on this host{why}"))
            good = False
        if good and clock.monotonic() - began >= STEADY_S:
            delay = FIRST_RETRY_S
        await clock.sleep(delay)
        delay = min(delay * 2, LAST_RETRY_S)


@dataclass(slots=True)
class QueryLoop:
    """What is learned of a host's nvidia-smi from one run of it to the next.

    Attributes:
        fields: what is asked; a field that the driver does not know is not asked again.
        lost: cards that were lost in the last run; the next asks the others alone, the one after that asks all again.
        known: the latest of each card ever seen.
        odd: cards and fields whose numbers were not sane, each of which has been said.
        memory: the host's, where a card shares it; read at `memory_at`.
    """

    journal: Journal
    clock: Clock
    fields: tuple[str, ...] = QUERY_FIELDS
    lost: tuple[GpuSample, ...] = ()
    known: dict[int, GpuSample] = field(default_factory=dict)
    odd: set[tuple[int, str]] = field(default_factory=set)
    memory: HostMemory | None = None
    memory_at: float | None = None

    async def run(self, host: Host) -> bool:
        """One run of nvidia-smi, to its end or until it is silent. True when it brought at least one living card."""
        parser, argv = self._next_run()
        stream = await host.stream(argv)
        latest: dict[int, GpuSample] = {}
        told = False
        try:
            async for chunk in self._chunks(stream):
                ticks = parser.feed(chunk)
                self._remark(parser)
                await self._read_memory(host, ticks)
                told |= self._take(ticks, latest)
            told |= self._take(parser.finish(), latest)
        finally:
            with contextlib.suppress(UnreachableError):
                await stream.close()
        if not told:
            self.journal.show(GpuSampled(problem="nvidia-smi ended without a sample: is it installed on the host?"))
        self.lost = tuple(card for card in latest.values() if card.lost is not None and card not in parser.lost)
        return any(card.lost is None for card in latest.values())

    def _next_run(self) -> tuple[GpuParser, tuple[str, ...]]:
        """A parser and a command: without the cards that ended the last run, if there are others."""
        gone, self.lost = self.lost, ()
        others = tuple(sorted(self.known.keys() - {card.index for card in gone}))
        if not others:
            gone = ()
        parser = GpuParser(self.fields, expected=len(others) or None, lost=gone, known=self.known, odd=self.odd)
        return parser, query_command(fields=self.fields, only=others if gone else ())

    def _take(self, ticks: list[GpuTick], latest: dict[int, GpuSample]) -> bool:
        """Learn from ticks, and show the newest: the older ones of a burst were late already."""
        for tick in ticks:
            latest.update({card.index: card for card in tick.samples})
            self.journal.under_load.take(tick.samples)
            refused = bad_field(tick.problem.text) if tick.problem is not None else None
            if refused in self.fields[1:]:
                self.fields = tuple(name for name in self.fields if name != refused)
        for tick in ticks[-1:]:
            samples = tuple(with_host_memory(card, self.memory) for card in tick.samples)
            data = replace(tick, samples=samples).to_json()
            self.journal.show(GpuSampled(data["gpus"], data["problem"]))
        return bool(ticks)

    def _remark(self, parser: GpuParser) -> None:
        """A number that is none is said once, and kept with the run."""
        for text in parser.remarks:
            self.journal.post(Warned(text))
        parser.remarks.clear()

    async def _read_memory(self, host: Host, ticks: list[GpuTick]) -> None:
        """The host's memory, for cards that have none of their own; unknown while it cannot be read."""
        now = self.clock.monotonic()
        recent = self.memory_at is not None and now - self.memory_at < MEMORY_EVERY_S
        if recent or not any(shares_host_memory(card) for tick in ticks[-1:] for card in tick.samples):
            return
        self.memory_at = now
        try:
            self.memory = parse_meminfo((await host.run(MEMINFO, timeout=MEMORY_S)).stdout)
        except HostError:
            self.memory = None

    async def _chunks(self, stream: ByteStream) -> AsyncIterator[bytes]:
        """The stream's bytes; ends when it has been silent for too long, and says so."""
        chunks = stream.chunks()
        while True:
            following = asyncio.ensure_future(anext(chunks, None))
            silence = asyncio.create_task(self.clock.sleep(SILENT_S), name="silence of nvidia-smi")
            try:
                await asyncio.wait({following, silence}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end_task(silence)
                if not following.done():
                    await end_task(following)
            if following.cancelled():
                self.journal.show(GpuSampled(problem=f"nvidia-smi said nothing for {SILENT_S:.0f} s; started again"))
                return
            chunk = following.result()
            if chunk is None:
                return
            yield chunk
