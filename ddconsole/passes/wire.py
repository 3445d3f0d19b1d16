"""A transport for httpx that costs a quarter of its own for each chunk, and stamps bytes when they arrive.

A stream of single tokens through httpx's own transport costs some 250 µs of CPU a chunk on a small machine, most of it
in layers that a loopback tunnel does not need. On a machine that serves and measures, that is time taken from the
engine; and with many streams it is the client that saturates. Here a chunk costs a callback, and its time is that of
the callback, not of the moment at which some task got to read it.

HTTP/1.1 over plain TCP to one origin, which is what the tunnel is; httpx's own transport serves everything else.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

import httpx

from ddconsole.passes.framing import MAX_HEAD_BYTES, BadFramingError, body_of, parse_head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ddconsole.passes.framing import ChunkedBody, Head, SizedBody, UntilClose

IDLE_CONNECTION_S = 2.0
"""How long an unused connection is kept: below the 5 s after which uvicorn closes it, so that none is found dead."""

HUNG_UP_S = 1.0
"""A connection that is used again and closed within this time, without a byte of an answer, was closed before it was
asked: some servers (llama.cpp's) say keep-alive and hang up behind each stream."""

HELD_BYTES = 4 * 1024 * 1024
"""Bytes that wait to be read before the sender is held back."""

BUFFER_BYTES = 64 * 1024
"""Read at once."""

UNREAD_S = 0.1
"""How long pieces may wait for their reader. They have their times already, so nothing is measured by it; but reading
ten at once costs a fraction of reading each, above all on a machine whose caches the engine has just swept."""

END_MARK = b"[DONE]"
"""What the last event of most streams says: whoever waits for it is told at once."""

ARRIVALS = "ddconsole.arrivals"
"""Key of a response's extensions: an async iterator of (monotonic seconds, bytes), each with the time it arrived."""


class LeanTransport(httpx.AsyncBaseTransport):
    """Connections to one origin, used again while they are fresh.

    A server that hung up on one which it had said to keep is asked again on a fresh one, and from then on every request
    gets a fresh one.

    Args:
        now: the clock of the stamps, seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._idle: list[_Connection] = []
        self._keeps = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and wait for the head of the response.

        Raises:
            httpx.TransportError: as httpx's own transport does.
        """
        limits = request.extensions.get("timeout", {})
        data, read_s = _wire_bytes(request, await request.aread()), limits.get("read")
        connection = self._reusable()
        head = None if connection is None else await self._asked_again(connection, data, read_s)
        if connection is None or head is None:
            connection = await self._connect(request, limits.get("connect"))
            head = await self._asked(connection, data, read_s)
        stream = _Body(connection, self._give_back)
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": head.reason, ARRIVALS: stream.arrivals()}
        return httpx.Response(head.status, headers=list(head.headers), stream=stream, extensions=extensions)

    async def _asked(self, connection: _Connection, data: bytes, limit_s: float | None) -> Head:
        try:
            return await connection.ask(data, limit_s)
        except BaseException:
            connection.close()
            raise

    async def _asked_again(self, connection: _Connection, data: bytes, limit_s: float | None) -> Head | None:
        """The head of a response on a connection that has served before; None where the server had hung up on it."""
        try:
            return await self._asked(connection, data, limit_s)
        except httpx.TransportError:
            if not connection.hung_up:
                raise
            self._keeps = False
            return None

    async def aclose(self) -> None:
        """Close what is idle."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _reusable(self) -> _Connection | None:
        """The freshest idle connection that the server has not closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and self._now() - connection.idle_since < IDLE_CONNECTION_S:
                return connection
            connection.close()
        return None

    def _give_back(self, connection: _Connection) -> None:
        if connection.usable and self._keeps:
            connection.idle_since = self._now()
            self._idle.append(connection)
        else:
            connection.close()

    async def _connect(self, request: httpx.Request, limit_s: float | None) -> _Connection:
        loop = asyncio.get_running_loop()
        port = request.url.port or 80
        try:
            async with asyncio.timeout(limit_s):
                _, connection = await loop.create_connection(lambda: _Connection(self._now), request.url.host, port)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("the connection was not made in time") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection


def _wire_bytes(request: httpx.Request, body: bytes) -> bytes:
    """The request as it goes out; httpx has put Host and Content-Length into the headers."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % header for header in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class _Body(httpx.AsyncByteStream):
    """The body of one response; closing it gives the connection back, or ends it where the body had not ended."""

    def __init__(self, connection: _Connection, give_back: Callable[[_Connection], None]) -> None:
        self._connection: _Connection | None = connection
        self._give_back = give_back

    async def arrivals(self) -> AsyncIterator[tuple[float, bytes]]:
        """(time, bytes), as they arrived."""
        connection = self._connection
        while connection is not None:
            arrived = await connection.arrived()
            if arrived is None:
                return
            yield arrived

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for _, data in self.arrivals():
            yield data

    async def aclose(self) -> None:
        """No more of it is wanted."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._give_back(connection)


class _Connection(asyncio.BufferedProtocol):
    """One TCP connection: a request, its response, and then perhaps the next."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._transport: asyncio.Transport | None = None
        self._head: Head | None = None
        self._body: ChunkedBody | SizedBody | UntilClose | None = None
        self._start = b""
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._held = 0
        self._paused = False
        self._error: httpx.TransportError | None = None
        self._lost = False
        self._unasked = False
        self._reader: asyncio.Future[None] | None = None
        self._cut = False
        self._limit_s: float | None = None
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._soon: asyncio.TimerHandle | None = None
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """The last response is whole, nothing was said behind it, and both sides want to go on."""
        whole = self._body is not None and self._body.ended and not self._body.after and not self._unasked
        return whole and not self._lost and self._error is None and self._head is not None and self._head.keep_alive

    @property
    def hung_up(self) -> bool:
        """The other side was gone before what was asked last could have reached it."""
        silent = self._lost and self._head is None and not self._start
        return silent and self._now() - self._heard_at < HUNG_UP_S

    async def ask(self, data: bytes, limit_s: float | None) -> Head:
        """Send a request and wait for the head of its response.

        Args:
            limit_s: seconds without a byte after which it is given up, now and in the body.
        """
        assert self._transport is not None
        if self._lost:
            raise httpx.ReadError("the connection was lost")
        self._head, self._body, self._start = None, None, b""
        self._pieces.clear()
        self._limit_s, self._heard_at = limit_s, self._now()
        self._watch_silence()
        self._transport.write(data)
        return await self._answered()

    async def _answered(self) -> Head:
        while self._head is None:
            await self._news()
        return self._head

    async def arrived(self) -> tuple[float, bytes] | None:
        """The next piece of the body with its time; None at its end."""
        while not self._pieces:
            if self._body is not None and self._body.ended:
                self._stop_watching()
                return None
            await self._news()
        at, data = self._pieces.popleft()
        self._held -= len(data)
        if self._paused and self._held < HELD_BYTES // 2:
            self._paused = False
            if self._transport is not None and not self._lost:
                self._transport.resume_reading()
        return at, data

    def close(self) -> None:
        """End the connection."""
        self._stop_watching()
        if self._transport is not None:
            self._transport.abort()

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to be put: the same place each time, which is cheaper than a fresh one."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes, stamped before anything else is done with them."""
        at = self._heard_at = self._now()
        data, began = self._view[:nbytes].tobytes(), self._body is None
        try:
            payload = self._read_body(data) if self._body is not None else self._read_start(data)
        except BadFramingError as error:
            self._fail(httpx.RemoteProtocolError(str(error)))
            return
        if payload:
            self._pieces.append((at, payload))
            self._held += len(payload)
            if self._held > HELD_BYTES and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        if began or not self._can_wait(payload):
            self._wake()
        elif self._pieces and self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(UNREAD_S, self._wake)

    def connection_lost(self, error: Exception | None) -> None:
        """The other side is gone."""
        self._lost = True
        self._stop_watching()
        if self._body is None or not self._body.close():
            words = "the connection was reset" if error is not None else "the connection ended before the response did"
            self._fail(httpx.ReadError(words) if error is not None else httpx.RemoteProtocolError(words))
        self._wake()

    def _can_wait(self, payload: bytes) -> bool:
        """Whether the reader can be told of a piece later: with the next ones, or by whatever ends the response.

        Not of a piece that is cut in the middle of a line or that follows such a one, for an end mark may lie across
        both.
        """
        if self._body is None or self._body.ended or self._paused:
            return False
        if not payload:
            return True
        before, self._cut = self._cut, not payload.endswith(b"\n")
        return not (before or self._cut or END_MARK in payload)

    # --- reading

    def _read_start(self, data: bytes) -> bytes:
        """Look for the head; returns what of the body came with it."""
        self._start += data
        while (end := self._start.find(b"\r\n\r\n")) >= 0:
            head, rest = parse_head(self._start[:end]), self._start[end + 4 :]
            if head.status >= 200:
                self._head, self._body, self._start = head, body_of(head), b""
                return self._read_body(rest) if rest else b""
            self._start = rest  # 100 and its kind announce, and are no answer
        if len(self._start) > MAX_HEAD_BYTES:
            raise BadFramingError(f"a head of more than {MAX_HEAD_BYTES} bytes")
        return b""

    def _read_body(self, data: bytes) -> bytes:
        assert self._body is not None
        if self._body.ended:
            self._unasked = True
            return b""
        return self._body.feed(data)

    async def _news(self) -> None:
        """Wait until something has come; raises what went wrong once all that came before it is read."""
        if self._error is not None:
            raise self._error
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _wake(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _fail(self, error: httpx.TransportError) -> None:
        if self._error is None:
            self._error = error
        self._wake()

    # --- silence

    def _watch_silence(self) -> None:
        """One timer for the whole response, set again when it goes off too early: cheaper than one a chunk."""
        self._stop_watching()
        if self._limit_s is not None:
            left = max(self._heard_at + self._limit_s - self._now(), 0.001)
            self._watch = asyncio.get_running_loop().call_later(left, self._look_for_silence)

    def _look_for_silence(self) -> None:
        assert self._limit_s is not None
        if self._now() - self._heard_at < self._limit_s:
            self._watch_silence()
        else:
            self._fail(httpx.ReadTimeout(f"no byte for {self._limit_s:.0f} s"))

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
