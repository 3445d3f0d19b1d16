"""A counted budget of channels.

sshd allows `MaxSessions` (10 by default) commands at a time on one connection. Short commands queue for a free
channel. Long streams leave one free for them; when there is no room for a stream, it gets a connection of its own.
A host that allows fewer than we assume tells us by refusing a channel, and is believed from then on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Line(Protocol):
    """A connection, whichever program holds it."""

    @property
    def alive(self) -> bool:
        """It has not been closed or lost."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


L = TypeVar("L", bound=Line)

CHANNELS = 8
"""Channels at a time on one connection, below OpenSSH's default MaxSessions of 10."""

TIDY_TRIES, TIDY_S = 8, 0.05
"""sshd counts a session for a moment longer than its channel is open; tries, and seconds that the first waits."""

MAX_LANES = 4
"""Connections at a time: the first, and those for streams that found no room."""


@dataclass(slots=True)
class Lane(Generic[L]):
    """One connection and its channels in use. `served`: it has opened one, so a host without any is told at once."""

    link: L
    limit: int
    spare: bool = False
    served: bool = False
    short: int = 0
    long: int = 0

    @property
    def used(self) -> int:
        """Channels in use."""
        return self.short + self.long

    def has_room(self, *, long: bool) -> bool:
        """Whether one more fits; a stream on the first connection leaves a channel for short commands."""
        kept = 1 if long and not self.spare else 0
        return self.link.alive and self.used < self.limit - kept


@dataclass(slots=True)
class Lanes(Generic[L]):
    """All connections to one host."""

    host: str
    first: Lane[L]
    open_link: Callable[[], Awaitable[L]]
    channels: int = CHANNELS
    _others: list[Lane[L]] = field(default_factory=list)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take(self, *, long: bool) -> Lane[L]:
        """A channel's place, waited for if need be. It is given back by `give_back`.

        Raises:
            HostError: no connection has room, and none will have.
            UnreachableError: the connection is lost, or one more was needed and could not be opened.
        """
        while (lane := self._with_room(long)) is None:
            if long or not any(lane.short for lane in (self.first, *self._others)):
                await self._one_more(long)
            else:
                self._freed.clear()
                await self._freed.wait()
        _count(lane, long, 1)
        return lane

    def _with_room(self, long: bool) -> Lane[L] | None:
        if not self.first.link.alive:
            raise UnreachableError(f"the connection to {self.host} is lost", advice="The console connects again.")
        return next((lane for lane in (self.first, *self._others) if lane.has_room(long=long)), None)

    async def _one_more(self, long: bool) -> None:
        async with self._opening:
            if self._with_room(long) is not None:
                return  # another command has opened one meanwhile
            if sum(lane.link.alive for lane in self._others) + 1 >= MAX_LANES:
                raise HostError(
                    f"{self.host} has no channel left for one more command",
                    evidence=(f"{self.first.limit} sessions at a time on one connection, {MAX_LANES} connections",),
                    advice="Raise `MaxSessions` in the host's sshd_config.",
                )
            self._others.append(Lane(await self.open_link(), self.channels, spare=True))

    async def refused(self, lane: Lane[L], *, long: bool, times: int) -> bool:
        """The host refused a channel on `lane`, for the `times`th time in a row; whether to try again.

        Its limit is what else is open. When nothing else is, it may not have tidied up the last one yet.
        """
        self.give_back(lane, long=long)
        if lane.used:
            lane.limit = lane.used
            return True
        if lane.served and times < TIDY_TRIES:
            await asyncio.sleep(TIDY_S * times)
            return True
        return False

    def give_back(self, lane: Lane[L], *, long: bool) -> None:
        """A channel is closed."""
        _count(lane, long, -1)
        self._freed.set()

    async def close(self) -> None:
        """Close all connections."""
        for lane in (*self._others, self.first):
            await lane.link.close()


def _count(lane: Lane[L], long: bool, change: int) -> None:
    if long:
        lane.long += change
    else:
        lane.short += change
