"""GPU samples at one a second, over one long-lived channel that is opened again whenever it ends."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.core.events import GpuSampled
from ddconsole.core.gpu import GpuParser, query_command

if TYPE_CHECKING:
    from ddconsole.core.gpu import GpuTick
    from ddconsole.core.ports import Clock, Host
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
"""Seconds before nvidia-smi is started again; doubled while it brings nothing."""


async def watch_gpus(session: Session, journal: Journal, clock: Clock) -> None:
    """Publish samples until cancelled. A host without nvidia-smi says so, and everything else works."""
    delay = FIRST_RETRY_S
    while True:
        try:
            seen = await session.on_host(lambda host: _read(host, journal))
            if not seen:
                journal.show(GpuSampled(problem="nvidia-smi ended without a sample: is it installed on the host?"))
        except HostError as error:
            why = f" ({error.evidence[0]})" if error.evidence else ""
            journal.show(GpuSampled(problem=f"nvidia-smi cannot be run on this host{why}"))
            seen = False
        delay = FIRST_RETRY_S if seen else min(delay * 2, LAST_RETRY_S)
        await clock.sleep(delay)


async def _read(host: Host, journal: Journal) -> bool:
    """Read one run of the loop to its end. True when it brought at least one card."""
    stream = await host.stream(query_command())
    parser = GpuParser()
    seen = False
    try:
        async for chunk in stream.chunks():
            ticks = parser.feed(chunk)
            seen = seen or any(tick.samples for tick in ticks)
            if ticks:
                _show(ticks[-1], journal)
        for tick in parser.finish():
            seen = seen or bool(tick.samples)
            _show(tick, journal)
    finally:
        with contextlib.suppress(UnreachableError):
            await stream.close()
    return seen


def _show(tick: GpuTick, journal: Journal) -> None:
    """Only the newest tick of a burst is now; older ones were late already."""
    data = tick.to_json()
    journal.show(GpuSampled(data["gpus"], data["problem"]))
