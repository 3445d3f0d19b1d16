"""Time, and the GPU host: commands, streams, forwarded ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime


class Clock(Protocol):
    """Time, so that tests can turn the hands."""

    def now(self) -> datetime:
        """The wall clock, UTC. For stamps only; durations come from `monotonic`."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let `seconds` of this clock pass."""
        ...


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended. `status` is None when the connection was lost before it was known."""

    status: int | None
    stdout: str
    stderr: str = ""

    @property
    def ok(self) -> bool:
        """It ended with status 0."""
        return self.status == 0


class ByteStream(Protocol):
    """The output of a long-running command on the host."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive, cut anywhere. Ends when the command ends.

        Raises:
            UnreachableError: the connection was lost.
            HostError: the program could not be run at all.
        """
        ...

    async def close(self) -> None:
        """End the command on the host too; leave nothing behind."""
        ...


class Forward(Protocol):
    """A local loopback port that leads to a port on the host's loopback."""

    @property
    def local_port(self) -> int:
        """The port on 127.0.0.1 of this machine."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class Host(Protocol):
    """A GPU host: this machine, or one behind ssh. Every command is an argv; nothing unquoted meets a shell."""

    @property
    def name(self) -> str:
        """As the profile has it: an ssh alias, `local`, or `demo`."""
        ...

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        """Run a short command to its end.

        Raises:
            UnreachableError: the connection is lost.
            HostError: it did not end within `timeout` seconds (it has been ended).
        """
        ...

    async def stream(self, argv: Sequence[str]) -> ByteStream:
        """Start a long-running command and read its standard output."""
        ...

    async def forward(self, port: int) -> Forward:
        """Reach 127.0.0.1:`port` of the host through a local port."""
        ...

    async def ping(self) -> float:
        """Round trip in seconds.

        Raises:
            UnreachableError: the connection is lost.
        """
        ...

    async def close(self) -> None:
        """Close the connection. What was started on the host goes on."""
        ...


def notes_of(host: Host) -> tuple[str, ...]:
    """What the connection to `host` has to say, a sentence each: an option that is not heeded, a dead agent.

    A capability that a host may have (`notes`); nothing for those that have it not.
    """
    notes: tuple[str, ...] = getattr(host, "notes", ())
    return notes


class Lease(Protocol):
    """The right to start and end engines on a host, held by one console among all machines; it expires by itself."""

    async def take(self, host: Host) -> None:
        """Take it, or renew it.

        Raises:
            RefusedError: another console holds it; the text says which.
            UnwritableLeaseError: nobody else holds it, and it cannot be written there: enough to end what is ours.
            HostError: whose it is cannot be told.
        """
        ...

    async def release(self, host: Host) -> None:
        """Give it back, if it is still ours."""
        ...


class Connector(Protocol):
    """Opens a connection to the profile's host; called again after a loss."""

    async def connect(self) -> Host:
        """A fresh connection.

        Raises:
            UnreachableError: with what failed, the evidence, and the remedy.
        """
        ...
