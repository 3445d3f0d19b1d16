"""The transport: connections used again, faults under httpx's names, and stamps of the moment of arrival."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from ddconsole.passes.wire import ARRIVALS, HELD_BYTES, LeanTransport

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handle: Handle) -> AsyncIterator[tuple[str, list[int]]]:
    """A raw server; its URL, and a growing list with the number of each connection."""
    connections: list[int] = []
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        connections.append(len(connections))
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await handle(reader, writer)
        tasks.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        await asyncio.sleep(0)


def client(url: str, *, read_s: float = 5.0, now: Callable[[], float] | None = None) -> httpx.AsyncClient:
    transport = LeanTransport(now) if now else LeanTransport()
    return httpx.AsyncClient(base_url=url, transport=transport, timeout=httpx.Timeout(read_s), trust_env=False)


def saying(*answers: bytes) -> Handle:
    """A server that says the next of `answers` to each request of a connection, and then closes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()

    return handle


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def test_a_connection_serves_again() -> None:
    """Whole answers leave it usable, by length and by chunks, and httpx's own API reads them."""
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    async with listening(saying(OK, chunked, OK)) as (url, connections), client(url) as http:
        assert [(await http.get("/")).text for _ in range(3)] == ["hello"] * 3
    assert len(connections) == 1


async def test_a_server_that_hangs_up_on_what_it_said_to_keep() -> None:
    """It closes behind each answer, a moment after it seems to: no request is lost to that, and none sent twice."""
    asked = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.write(OK)

    async with listening(handle) as (url, connections), client(url) as http:
        assert [(await http.get("/")).text for _ in range(5)] == ["hello"] * 5
    assert asked == 5
    assert len(connections) == 5


@pytest.mark.parametrize(("answer", "waits_s"), [(b"HTTP/1.1 2", 0.0), (b"", 5.0)])
async def test_a_death_over_a_request_is_not_taken_for_that(answer: bytes, waits_s: float) -> None:
    """It began to answer, or it had the request for a while: asking again would do the work twice."""
    now = [100.0]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")
        now[0] += waits_s
        writer.write(answer)

    async with listening(handle) as (url, connections), client(url, now=lambda: now[0]) as http:
        await http.get("/")
        with pytest.raises(httpx.TransportError):
            await http.get("/")
    assert len(connections) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloUNASKED",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ],
)
async def test_a_connection_that_cannot_serve_again_does_not(answer: bytes) -> None:
    """The server wants it closed, said more than was asked, or ends the body by closing."""
    async with listening(saying(answer)) as (url, connections), client(url) as http:
        assert [(await http.get("/")).text for _ in range(2)] == ["hello", "hello"]
    assert len(connections) == 2


async def test_a_connection_that_grew_old_is_not_used() -> None:
    """The server closes idle ones soon; a request must not find that out."""
    now = [100.0]
    async with listening(saying(OK, OK)) as (url, connections), client(url, now=lambda: now[0]) as http:
        await http.get("/")
        now[0] += 3.0
        await http.get("/")
    assert len(connections) == 2


async def test_a_response_given_up_ends_its_connection() -> None:
    """Whoever stops reading in the middle leaves nothing behind for the next request."""
    closed = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
        await reader.read()
        closed.set()

    async with listening(handle) as (url, connections), client(url) as http:
        for _ in range(2):
            closed.clear()
            async with http.stream("GET", "/") as response:
                assert await anext(response.aiter_raw()) == b"hello"
            await asyncio.wait_for(closed.wait(), 5)
    assert len(connections) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Le", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", httpx.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, httpx.RemoteProtocolError),
    ],
)
async def test_bad_answers_have_httpxs_names(answer: bytes, error: type[Exception]) -> None:
    """Cut, of another protocol, badly framed, without an end."""
    async with listening(saying(answer)) as (url, _), client(url) as http:
        with pytest.raises(error):
            await http.get("/")


async def test_a_reset_is_a_read_error() -> None:
    """Not a clean end."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with listening(handle) as (url, _), client(url) as http:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await http.get("/")


async def test_interim_answers_are_passed_over() -> None:
    """100 and 103 announce the answer."""
    answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
    async with listening(saying(answer)) as (url, _), client(url) as http:
        response = await http.get("/")
    assert (response.status_code, response.text) == (200, "hello")


async def test_silence_is_a_read_timeout() -> None:
    """Before the head and in the body; bytes that come keep it from going off."""
    go = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if len(connections) > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
        await go.wait()

    async with listening(handle) as (url, connections), client(url, read_s=0.1) as http:
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                await http.get("/")


async def test_each_piece_has_the_time_of_its_arrival() -> None:
    """Not that of its reading: a reader who comes late finds the true times."""
    sent, looked = asyncio.Event(), asyncio.Event()
    now = [100.0]

    def clock() -> float:
        looked.set()
        return now[0]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"a", b"b"):
            now[0] += 1.0
            looked.clear()
            writer.write(part)
            await looked.wait()
        now[0] += 100.0
        sent.set()

    async with listening(handle) as (url, _), client(url, now=clock) as http, http.stream("GET", "/") as response:
        await asyncio.wait_for(sent.wait(), 5)
        assert [piece async for piece in response.extensions[ARRIVALS]] == [(102.0, b"a"), (103.0, b"b")]


@pytest.mark.parametrize(
    "last",
    [
        (b"data: [DONE]\n\n",),
        (b"data: [DO", b"NE]\n\n"),
        (b"data: x\n\ndata: [DO", b"NE]", b"\n\n"),
    ],
)
async def test_pieces_wait_for_each_other_and_the_end_mark_for_nothing(last: tuple[bytes, ...]) -> None:
    """A reader is not woken for each of a fast stream's pieces; an end mark that is cut anywhere comes at once."""
    go, looked = asyncio.Event(), asyncio.Event()
    waits = 0

    def clock() -> float:
        looked.set()
        return 100.0  # no time passes: nothing but the end mark can wake the reader

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for part in (*[b"data: {}\n\n"] * 20, *last):
            looked.clear()
            writer.write(part)
            await looked.wait()
        await go.wait()

    async with listening(handle) as (url, _), client(url, now=clock) as http, http.stream("GET", "/") as response:
        read = b""
        pieces = response.extensions[ARRIVALS]
        while b"[DONE]" not in read:
            waiting = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0)
            waits += not waiting.done()
            read += (await asyncio.wait_for(waiting, 5))[1]
    assert read.count(b"data: {}") == 20
    assert waits <= 4
    go.set()


async def test_a_piece_does_not_wait_for_the_next_one() -> None:
    """A stream that is slow is read as it comes: each piece is told though nothing follows it."""
    read = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for number in range(3):
            writer.write(b"data: %d\n\n" % number)
            await writer.drain()
            await read.wait()
            read.clear()

    async with listening(handle) as (url, _), client(url) as http, http.stream("GET", "/") as response:
        pieces = response.extensions[ARRIVALS]
        for number in range(3):
            assert (await asyncio.wait_for(anext(pieces), 5))[1] == b"data: %d\n\n" % number
            read.set()


async def test_a_slow_reader_holds_the_sender_back() -> None:
    """What waits is bounded, and nothing of it is lost."""
    total = HELD_BYTES * 3

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        for _ in range(total // 65536):
            writer.write(b"x" * 65536)
            await writer.drain()

    async with listening(handle) as (url, _), client(url) as http, http.stream("GET", "/") as response:
        got = 0
        async for data in response.aiter_raw():
            got += len(data)
            await asyncio.sleep(0)
    assert got == total


async def test_nobody_listens() -> None:
    """httpx's own name for it."""
    async with listening(saying(OK)) as (url, _):
        pass
    async with client(url) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get("/")
