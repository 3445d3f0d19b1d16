"""The boot of an engine that is to be left serving: watched without a session, until it is proved or has failed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import Failure
from ddconsole.engines.launch.logs import last_lines
from ddconsole.runner.port_holder import names_port, port_held
from ddconsole.runner.tasks import end_task
from ddconsole.runner.tunnel import forwarded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ddconsole.core.config import Config
    from ddconsole.core.ports import BootTracker, Host, Identity, Launched, Liveness
    from ddconsole.runner.bench import Bench

LOOK_EVERY_S: Final = 2.0
LEAST_WAIT_S: Final = 600.0
READY_FACTOR: Final = 3.0
"""An engine that takes so many times the boot that the profile expects is not waited for any longer."""

LOG_LINES: Final = 20_000
"""So much of a dead engine's log is read for its cause: more than a boot prints."""

LATE: Final = "not-ready"
"""Cause of a failure that may yet become ready: the engine is left running."""


async def until_proved(
    bench: Bench, host: Host, launched: Launched, config: Config, say: Callable[[str], None]
) -> Identity | Failure:
    """Wait until the engine is ready, then prove contracts 2 and 3. `say` gets each phase as it begins."""
    limit = max(LEAST_WAIT_S, READY_FACTOR * bench.profile.expect.boot_s)
    began, phase = bench.clock.monotonic(), None
    async with _followed(bench, host, launched) as tracker:
        while bench.clock.monotonic() - began < limit:
            liveness = await bench.launcher.liveness(host, launched)
            if not liveness.alive:
                return await _cause(bench, host, launched, liveness)
            progress = tracker.progress
            if progress.phase is not phase:
                phase = progress.phase
                say(f"{bench.clock.monotonic() - began:4.0f} s  {phase.value}")
            if (progress.fired_up or progress.target is not None) and await ready(bench, host, launched):
                return await _proved(bench, host, launched, config, tracker)
            await bench.clock.sleep(LOOK_EVERY_S)
    advice = f"`ddconsole engine {bench.name} log` shows what it does, `stop` ends it"
    return Failure(LATE, f"it is not ready after {limit:.0f} s, and was left running", advice=advice)


async def ready(bench: Bench, host: Host, launched: Launched) -> bool:
    """Whether what answers on its port calls itself ready; whose answer that is, is not looked at."""
    async with forwarded(host, launched.port) as base_url:
        return await bench.engine.ready(base_url)


@contextlib.asynccontextmanager
async def _followed(bench: Bench, host: Host, launched: Launched) -> AsyncIterator[BootTracker]:
    """A tracker that is fed with the log from its first byte on."""
    tracker = bench.engine.tracker()
    stream = await bench.launcher.follow(host, launched, 0)

    async def read() -> None:
        async for chunk in stream.chunks():
            tracker.feed(chunk, bench.clock.monotonic())

    task = asyncio.create_task(read(), name="follow-promoted")
    try:
        yield tracker
    finally:
        await stream.close()
        await end_task(task)  # a lost line is told by whatever asks the host next


async def _cause(bench: Bench, host: Host, launched: Launched, end: Liveness) -> Failure:
    """Why it died, by its whole log."""
    tracker = bench.engine.tracker()
    tracker.feed((await last_lines(host, launched, LOG_LINES)).encode() + b"\n", 0.0)
    if names_port(tracker.facts.bind_failed, launched.port):
        return await port_held(host, launched, tracker.facts)
    return tracker.failure(end.exit_status, end.notes)


async def _proved(
    bench: Bench, host: Host, launched: Launched, config: Config, tracker: BootTracker
) -> Identity | Failure:
    owned, who = await bench.launcher.owns_port(host, launched)
    if not owned:
        return await port_held(host, launched, tracker.facts, who)
    async with forwarded(host, launched.port) as base_url:
        identity = await bench.engine.identify(base_url, host, launched, config, tracker.facts)
        if isinstance(identity, Failure):
            return identity
        spoken = await bench.engine.speculates(base_url, config)
    return spoken if isinstance(spoken, Failure) else identity
