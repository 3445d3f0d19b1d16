"""The life of a connection: opened, watched, lost, opened again. Work is given to it as steps that can be repeated."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, TypeVar

from ddconsole.core.errors import AnswerNeededError, UnreachableError
from ddconsole.core.events import Connection, Warned
from ddconsole.core.ports import notes_of
from ddconsole.runner.tasks import end_task
from ddconsole.runner.tunnel import forwarded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ddconsole.core.ports import Clock, Connector, Host
    from ddconsole.runner.journal import Journal

T = TypeVar("T")

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0
"""Seconds between tries to reconnect; doubled each time, with jitter so that consoles do not come in step."""

ANSWER_RETRY_S = 120.0
"""The same where a person has to answer: each try is a login that fails, and hosts bar who fails too often."""

PING_EVERY_S = 5.0
"""How often the round trip is measured, which is also how a dead line is noticed."""


class Session:
    """One connection to the profile's host, kept alive. Steps given to `on_host` survive a loss.

    `patient` keeps trying from the first connection on; otherwise the first failure is final.
    """

    def __init__(self, connector: Connector, journal: Journal, clock: Clock, *, patient: bool = False) -> None:
        self._connector = connector
        self._journal = journal
        self._clock = clock
        self._host: Host | None = None
        self._connecting = asyncio.Lock()
        self._keep_trying = patient
        self._ever_connected = False
        self._final: UnreachableError | None = None
        self._noted: set[str] = set()
        self._pinger: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()

    async def host(self) -> Host:
        """The connected host, reconnecting for as long as it takes once it had been reached.

        Raises:
            UnreachableError: the very first connection could not be made.
        """
        async with self._connecting:
            if self._final is not None:
                raise self._final  # who asks again must not make the user answer again
            if self._host is None:
                self._host = await self._connect()
                self.lost = asyncio.Event()
                self._pinger = asyncio.create_task(self._ping(self._host), name="ping")
            return self._host

    async def on_host(self, step: Callable[[Host], Awaitable[T]]) -> T:
        """Run `step`; when the connection is lost in it, run it again on the next one. It must bear that."""
        while True:
            host = await self.host()
            try:
                return await step(host)
            except UnreachableError as error:
                await self.give_up(host, error.what)

    @contextlib.asynccontextmanager
    async def forwarded(self, port: int) -> AsyncIterator[str]:
        """The base URL of a port on the host, through a local one.

        Raises:
            UnreachableError: the connection was lost, or forwarding is not allowed.
        """
        async with forwarded(await self.host(), port) as base_url:
            yield base_url

    async def give_up(self, host: Host, why: str) -> None:
        """Note that `host` is gone; the next `host()` connects again."""
        if self._host is not host:
            return
        self._host = None
        self.lost.set()
        await self._stop_pinging()
        await self._journal.emit(Connection("lost", detail=why))
        with contextlib.suppress(UnreachableError):
            await host.close()

    async def close(self) -> None:
        """Close the connection; what runs on the host goes on."""
        await self._stop_pinging()
        if self._host is not None:
            host, self._host = self._host, None
            with contextlib.suppress(UnreachableError):
                await host.close()
            await self._journal.emit(Connection("closed"))

    async def _connect(self) -> Host:
        delay = FIRST_RETRY_S
        while True:
            await self._journal.emit(Connection("connecting"))
            try:
                host, rtt = await self._opened()
            except UnreachableError as error:
                state = "lost" if self._ever_connected else "unreachable"
                await self._journal.emit(Connection(state, detail=error.what, advice=error.advice))
                if not self._keep_trying:
                    self._final = error
                    raise
                pause = ANSWER_RETRY_S if isinstance(error, AnswerNeededError) else delay
                await self._clock.sleep(pause * random.uniform(0.5, 1.0))
                delay = min(delay * 2, LAST_RETRY_S)
                continue
            self._keep_trying = self._ever_connected = True
            await self._journal.emit(Connection("connected", rtt_ms=round(rtt * 1000, 1)))
            await self._note(host)
            return host

    async def _opened(self) -> tuple[Host, float]:
        """A connection that has answered once, and its round trip in seconds."""
        host = await self._connector.connect()
        try:
            return host, await host.ping()
        except BaseException:
            with contextlib.suppress(UnreachableError):
                await host.close()
            raise

    async def _note(self, host: Host) -> None:
        """Say what the connection has to say, each thing once."""
        for note in notes_of(host):
            if note not in self._noted:
                self._noted.add(note)
                await self._journal.emit(Warned(note))

    async def _ping(self, host: Host) -> None:
        while True:
            await self._clock.sleep(PING_EVERY_S)
            try:
                rtt = await host.ping()
            except UnreachableError as error:
                self._pinger = None  # give_up must not cancel the task that it runs in
                await self.give_up(host, error.what)
                return
            self._journal.tell(Connection("connected", rtt_ms=round(rtt * 1000, 1)))

    async def _stop_pinging(self) -> None:
        pinger, self._pinger = self._pinger, None
        await end_task(pinger)
