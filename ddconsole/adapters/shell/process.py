"""Guarded commands over any kind of process: what the ssh and the local host have in common.

A process is reached through `Piped`; whether bytes travel through a channel or a pipe makes no difference here.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from ddconsole.adapters.shell import (
    CANNOT_EXECUTE,
    GRACE_S,
    NOT_FOUND,
    Mode,
    StartFilter,
    command_name,
    escape_bytes,
    unframe,
)
from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.core.ports import Completed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

CHUNK = 65_536
"""The most bytes of one read."""

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""The most that a short command may print; more is a mistake (a log asked for whole), and memory is not for that."""

END_S = GRACE_S + 3.0
"""Seconds in which the guard has ended its command; after that the channel is given up."""


class Piped(Protocol):
    """A started process: two outputs, one input."""

    async def read_stdout(self) -> bytes:
        """Some bytes, or none at the end.

        Raises:
            UnreachableError: the connection is lost.
        """
        ...

    async def read_stderr(self) -> bytes:
        """As `read_stdout`."""
        ...

    async def write(self, data: bytes) -> None:
        """Give input."""
        ...

    def end_input(self) -> None:
        """End the input: the guard ends its command. Returns at once; never raises."""
        ...

    async def wait(self) -> int | None:
        """The exit status as a shell would give it (128 + the signal), or None when the connection was lost."""
        ...

    def abandon(self) -> None:
        """Let go, at the end of every use: drop the channel, or kill what is left. Never raises; once is enough."""
        ...


async def put_down(piped: Piped) -> None:
    """End the command and wait until its process is gone, reading what it still has to say, for at most END_S."""
    piped.end_input()
    try:
        async with asyncio.timeout(END_S):
            await _together(_drain(piped.read_stdout), _drain(piped.read_stderr), piped.wait())
    except (TimeoutError, UnreachableError):
        pass  # the process is given up below, in either case
    finally:
        piped.abandon()


async def _together(*work: Coroutine[Any, Any, Any]) -> None:
    """Run all of `work`; the first error ends the rest and is raised as it is, not in a group."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _drain(read: Callable[[], Awaitable[bytes]]) -> None:
    while await read():
        pass


async def run_guarded(
    piped: Piped, argv: Sequence[str], *, host: str, marker: str, mode: Mode, stdin: bytes = b""
) -> Completed:
    """See a short command to its end.

    Raises:
        UnreachableError: the connection was lost before its status was known.
        HostError: it was never started, or printed more than MAX_OUTPUT_BYTES.
    """
    out, err = bytearray(), bytearray()
    line = escape_bytes(stdin).encode() + b"\n" if mode is Mode.FEED else b""
    await _together(
        piped.write(line),
        _collect(piped.read_stdout, out, argv, host),
        _collect(piped.read_stderr, err, argv, host),
    )
    return _completed(bytes(out), bytes(err), await piped.wait(), argv, host=host, marker=marker)


def _completed(out: bytes, err: bytes, status: int | None, argv: Sequence[str], *, host: str, marker: str) -> Completed:
    stdout, stderr = unframe(out, marker), unframe(err, marker)
    if stdout is None and status is not None:
        raise not_started(host, argv, out + err)
    if stdout is None or (stdout.status is None and status is None):
        raise lost(host, argv)
    known = status if stdout.status is None else stdout.status
    return Completed(known, _text(stdout.data), _text(stderr.data if stderr else err))


async def _collect(read: Callable[[], Awaitable[bytes]], into: bytearray, argv: Sequence[str], host: str) -> None:
    while data := await read():
        into += data
        if len(into) > MAX_OUTPUT_BYTES:
            raise HostError(
                f"`{command_name(argv)}` on {host} printed more than {MAX_OUTPUT_BYTES // 2**20} MiB and was ended",
                advice="Nothing that the console asks for is that long; see what the command prints there.",
            )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def lost(host: str, argv: Sequence[str]) -> UnreachableError:
    """The connection went away under a command."""
    return UnreachableError(
        f"the connection to {host} was lost",
        evidence=(f"while `{command_name(argv)}` ran",),
        advice="What was started on the host goes on; the console connects again.",
    )


def not_started(host: str, argv: Sequence[str], noise: bytes) -> HostError:
    """The login shell ended without running the command."""
    said = [line.strip() for line in _text(noise).splitlines() if line.strip()]
    return HostError(
        f"the login shell of {host} ended without running `{command_name(argv)}`",
        evidence=tuple(said[-5:]),
        advice=f"See what `ssh {host} true` prints; start-up files must not exit, exec or wait for input.",
    )


def timed_out(host: str, argv: Sequence[str], seconds: float) -> HostError:
    """A short command took too long."""
    return HostError(
        f"`{command_name(argv)}` did not end within {seconds:g} s on {host} and was ended",
        advice="The host may be overloaded, or the driver stuck; try the command there by hand.",
    )


class PipedInput:
    """The input half of `Piped`, for a process of this machine."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def write(self, data: bytes) -> None:
        """Give input. A command that does not take it says so by its outcome."""
        with contextlib.suppress(ConnectionError):
            self._stdin.write(data)
            await self._stdin.drain()

    def end_input(self) -> None:
        """The guard sees the end, and ends its command."""
        self._stdin.close()


class OneReader:
    """Lets several tasks read one output in turn, which neither asyncio nor asyncssh allows by itself."""

    def __init__(self, read: Callable[[int], Awaitable[bytes]]) -> None:
        self._read = read
        self._turn = asyncio.Lock()

    async def __call__(self) -> bytes:
        """Some bytes, or none at the end."""
        async with self._turn:
            return await self._read(CHUNK)


class GuardedStream:
    """The `ByteStream` of a long-running command: bytes as they arrive, the first greeting of a shell left out."""

    def __init__(self, piped: Piped, argv: Sequence[str], *, host: str, marker: str) -> None:
        self._piped = piped
        self._argv = tuple(argv)
        self._host = host
        self._marker = marker
        self._out = StartFilter(marker)
        self._err = StartFilter(marker)
        self._stderr = b""
        self._errors = asyncio.create_task(self._keep_errors(), name=f"stderr of {command_name(argv)}")
        self._ending: asyncio.Task[None] | None = None

    @property
    def stderr(self) -> str:
        """The last of what the command said on standard error, at most 4,000 bytes."""
        return _text(self._stderr.partition(b"\n" + self._marker.encode() + b" ")[0])

    @property
    def closed(self) -> bool:
        """It has been closed, and its command is gone."""
        return self._ending is not None and self._ending.done()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive, cut anywhere. Ends when the command ends or the stream is closed.

        Raises:
            UnreachableError: the connection was lost.
            HostError: the program could not be run at all.
        """
        said_nothing = True
        while data := await self._piped.read_stdout():
            if own := self._out.feed(data):
                said_nothing = False
                yield own
        if self._ending is None:
            await self._judge(said_nothing)

    async def _judge(self, said_nothing: bool) -> None:
        """The output has ended by itself: was that the command's doing?"""
        await asyncio.wait({self._errors})
        status = await self._piped.wait()
        await self.close()
        if status is None:
            raise lost(self._host, self._argv)
        if not self._out.started:
            raise not_started(self._host, self._argv, self._out.noise + self._err.noise)
        if said_nothing and status in (CANNOT_EXECUTE, NOT_FOUND):
            raise HostError(
                f"`{self._argv[0]}` cannot be run on {self._host}",
                evidence=tuple(filter(None, self.stderr.splitlines()))[:5],
                advice="Is it installed there, and on the PATH of a login without a terminal?",
            )

    async def _keep_errors(self) -> None:
        try:
            while data := await self._piped.read_stderr():
                self._stderr = (self._stderr + self._err.feed(data))[-4000:]
        except UnreachableError:
            pass  # `chunks` tells it

    async def close(self) -> None:
        """End the command on the host too, and wait until it is gone. Closing twice is one closing."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name=f"close {command_name(self._argv)}")
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._errors.cancel()
        await asyncio.wait({self._errors})
        await put_down(self._piped)
