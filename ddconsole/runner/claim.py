"""The host held for one run: its lease taken, renewed while the run lasts, and given back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError, RefusedError, UnreachableError, UnwritableLeaseError
from ddconsole.core.events import Warned
from ddconsole.runner.tasks import end_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.runner.bench import Bench
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session

BEAT_S = 10.0
"""How often the lease is renewed; it expires after a minute, so several beats may be missed."""

RELEASE_S = 5.0
"""Seconds that giving the lease back may take: it expires by itself when the host does not answer."""


class Claim:
    """Keeps the lease of a host. `on_lost` is called once when another console has taken it over meanwhile."""

    def __init__(self, bench: Bench, session: Session, journal: Journal, on_lost: Callable[[], object]) -> None:
        self._bench = bench
        self._session = session
        self._journal = journal
        self._on_lost = on_lost
        self._beat: asyncio.Task[None] | None = None

    @property
    def held(self) -> bool:
        """It was taken in this run and not given back."""
        return self._beat is not None

    async def take(self, *, to_end: bool = False) -> None:
        """Make sure that the host is ours, as before everything that starts or ends an engine.

        `to_end` an engine of ours it is enough that nobody else holds the host: a full disk must not keep it alive.

        Raises:
            RefusedError: another console holds it.
            HostError: the lease cannot be written there, or not be read.
        """
        try:
            await self._session.on_host(self._bench.lease.take)
        except UnwritableLeaseError:
            if to_end:
                return
            raise
        if self._beat is None:
            self._beat = asyncio.create_task(self._renew(), name="renew-lease")

    async def release(self) -> None:
        """Give it back; a host that does not answer lets it expire."""
        beat, self._beat = self._beat, None
        if beat is None:
            return
        await end_task(beat)
        with contextlib.suppress(HostError, UnreachableError, TimeoutError):
            async with asyncio.timeout(RELEASE_S):
                await self._bench.lease.release(await self._session.host())

    async def _renew(self) -> None:
        while True:
            await self._bench.clock.sleep(BEAT_S)
            try:
                await self._session.on_host(self._bench.lease.take)
            except HostError as error:
                await self._journal.emit(Warned(f"{error.what}: the next beat tries again"))
            except RefusedError as error:
                await self._journal.emit(Warned(f"{error.what} now: what ran here is left to it"))
                self._on_lost()
                return
