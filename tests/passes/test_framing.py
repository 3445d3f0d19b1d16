"""HTTP/1.1 responses cut anywhere: heads, and the three framings of a body."""

import pytest
from fakes.sse_server import pieces
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.passes.framing import (
    MAX_HEAD_BYTES,
    BadFramingError,
    ChunkedBody,
    SizedBody,
    UntilClose,
    body_of,
    parse_head,
)


def chunked(payloads: list[bytes], trailer: bytes = b"") -> bytes:
    """The payloads as chunks, extensions and odd cases of hexadecimal digits among them."""
    parts = [b"%X;name=value\r\n%b\r\n" % (len(data), data) for data in payloads if data]
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(1, 9), min_size=1))
def test_chunked_bodies_cut_anywhere(payloads: list[bytes], sizes: list[int]) -> None:
    """Whatever the cuts, the payload is whole, the end is seen, and what follows is no part of it."""
    body = ChunkedBody()
    data = chunked(payloads, b"Trailer: x\r\n") + b"NEXT"
    got, rest = b"", b""
    for piece in pieces(data, sizes):
        if body.ended:
            rest += piece
        else:
            got += body.feed(piece)
            rest += body.after
    assert got == b"".join(payloads)
    assert body.ended
    assert rest == b"NEXT"


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1))
def test_one_chunk_at_a_time(payloads: list[bytes]) -> None:
    """The short way that nearly all pieces take reads the same as the long one."""
    body = ChunkedBody()
    assert [body.feed(b"%x\r\n%b\r\n" % (len(data), data)) for data in payloads] == payloads
    assert body.feed(b"0\r\n\r\n") == b""
    assert body.ended


@pytest.mark.parametrize(
    "data",
    [
        b"xyz\r\n",
        b"-1\r\n",
        b"0x5\r\n",
        b"1_0\r\n",
        b"\r\nabc",
        b"+3\r\n",
        b"3\r\nabcdef\r\n",
        b"9" * (MAX_HEAD_BYTES + 1),
    ],
)
def test_bad_chunks(data: bytes) -> None:
    """A size that is none, a chunk longer than it says, a line without an end."""
    with pytest.raises(BadFramingError):
        ChunkedBody().feed(data)


def test_a_cut_chunked_body_is_not_whole() -> None:
    """The connection ended before the last chunk."""
    body = ChunkedBody()
    body.feed(b"5\r\nhello\r\n")
    assert not body.close()


def test_sized_and_until_close() -> None:
    """A length ends the body and leaves the rest; without one it is all that comes."""
    sized = SizedBody(5)
    assert (sized.feed(b"he"), sized.ended, sized.close()) == (b"he", False, False)
    assert (sized.feed(b"lloNEXT"), sized.ended, sized.after) == (b"llo", True, b"NEXT")
    endless = UntilClose()
    assert (endless.feed(b"any"), endless.ended, endless.close(), endless.ended) == (b"any", False, True, True)


def test_heads() -> None:
    """Status, reason with spaces or none, headers by name in any case, and whether the connection stays."""
    head = parse_head(b"HTTP/1.1 503 Service Unavailable\r\nContent-Type:  text/plain \r\nX: a: b")
    assert (head.status, head.reason, head.keep_alive) == (503, b"Service Unavailable", True)
    assert (head.first(b"content-type"), head.first(b"x"), head.first(b"y")) == (b"text/plain", b"a: b", None)
    assert parse_head(b"HTTP/1.1 200").reason == b""
    assert not parse_head(b"HTTP/1.1 200 OK\r\nConnection: Close").keep_alive
    assert not parse_head(b"HTTP/1.0 200 OK").keep_alive
    assert parse_head(b"HTTP/1.0 200 OK\r\nConnection: keep-alive").keep_alive


@pytest.mark.parametrize(
    "data", [b"", b"HTTP/2 200", b"ICY 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 2x0 OK", b"HTTP/1.1 200 OK\r\nno colon"]
)
def test_what_is_no_head(data: bytes) -> None:
    """Another protocol on the port."""
    with pytest.raises(BadFramingError):
        parse_head(data)


def test_which_framing() -> None:
    """By RFC 9112: chunked goes before a length, 204 has no body."""
    ok = b"HTTP/1.1 200 OK\r\n"
    assert isinstance(body_of(parse_head(ok + b"Transfer-Encoding: Chunked\r\nContent-Length: 3")), ChunkedBody)
    assert isinstance(body_of(parse_head(ok + b"Content-Length: 3")), SizedBody)
    assert isinstance(body_of(parse_head(ok)), UntilClose)
    assert body_of(parse_head(b"HTTP/1.1 204 No Content")).ended
    with pytest.raises(BadFramingError):
        body_of(parse_head(ok + b"Content-Length: many"))
