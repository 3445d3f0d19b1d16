"""HTTP/1.1 responses out of bytes that are cut anywhere: the head, and the body by each of its three framings. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MAX_HEAD_BYTES = 64 * 1024
"""A head, or the line of a chunk's size with its extensions, may be this long."""


class BadFramingError(ValueError):
    """The bytes are no HTTP/1.1 response."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers, names as they came."""

    status: int
    reason: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    keep_alive: bool

    def first(self, name: bytes) -> bytes | None:
        """The value of the first header of that lower-case name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


def parse_head(data: bytes) -> Head:
    """The head in `data`, which ends before its empty line.

    Raises:
        BadFramingError: it is none.
    """
    first, *lines = data.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    code, _, reason = rest.partition(b" ")
    if not version.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit():
        raise BadFramingError(f"not a status line: {first[:80]!r}")
    headers = tuple(_header(line) for line in lines if line)
    said = b"".join(value for name, value in headers if name.lower() == b"connection").lower()
    keep_alive = b"close" not in said and (version != b"HTTP/1.0" or b"keep-alive" in said)
    return Head(int(code), reason, headers, keep_alive)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not name or name != name.strip():
        raise BadFramingError(f"not a header: {line[:80]!r}")
    return name, value.strip()


class ChunkedBody:
    """`Transfer-Encoding: chunked`; extensions and trailers are passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0
        self._trailers = False
        self.ended = False
        self.after = b""
        """What came behind the end."""

    def feed(self, data: bytes) -> bytes:
        """The payload in `data`.

        Raises:
            BadFramingError: a chunk without a size, or without its end.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        elif not self._left and not self._trailers:
            payload = _one_chunk(data)
            if payload:
                return payload
        out: list[bytes] = []
        at = 0
        while at < len(data) and not self.ended:
            before = at
            at = self._take(data, at, out)
            if at == before:
                break
        if self.ended:
            self.after = data[at:]
        else:
            self._rest = data[at:]
            _bounded(self._rest)
        return out[0] if len(out) == 1 else b"".join(out)

    def close(self) -> bool:
        """The connection ended: whether the body had."""
        return self.ended

    def _take(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Read one part from `at` on; returns where the next one begins, `at` where this one is not whole yet."""
        if self._left > 2:
            end = min(at + self._left - 2, len(data))
            out.append(data[at:end])
            self._left -= end - at
            return end
        if self._left:
            return self._close_chunk(data, at)
        end = data.find(b"\r\n", at)
        if end < 0:
            return at
        if self._trailers:
            self.ended = end == at
        else:
            self._open_chunk(data[at:end])
        return end + 2

    def _open_chunk(self, line: bytes) -> None:
        size = _hexadecimal(line.partition(b";")[0].strip())
        if size is None:
            raise BadFramingError(f"not the size of a chunk: {line[:80]!r}")
        self._trailers = size == 0
        self._left = size + 2 if size else 0

    def _close_chunk(self, data: bytes, at: int) -> int:
        """The line end behind a chunk's payload."""
        if len(data) - at < self._left:
            return at
        if data[at : at + self._left] != b"\r\n":
            raise BadFramingError("a chunk is longer than it says")
        at, self._left = at + self._left, 0
        return at


def _one_chunk(data: bytes) -> bytes | None:
    """The payload of bytes that are exactly one chunk, as a server that flushes each event sends them; None else."""
    end = data.find(b"\r\n", 0, 10)
    if end < 1 or _hexadecimal(data[:end]) != len(data) - end - 4 or not data.endswith(b"\r\n"):
        return None
    return data[end + 2 : -2]


def _hexadecimal(digits: bytes) -> int | None:
    """The number; None for what int() takes and HTTP does not, such as `0x5`, `1_0` and `+3`."""
    return int(digits, 16) if digits and not digits.strip(b"0123456789abcdefABCDEF") else None


class SizedBody:
    """`Content-Length`."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.ended = length == 0
        self.after = b""

    def feed(self, data: bytes) -> bytes:
        """The payload in `data`."""
        taken, self.after = data[: self._left], data[self._left :]
        self._left -= len(taken)
        self.ended = self._left == 0
        return taken

    def close(self) -> bool:
        """The connection ended: whether the body had."""
        return self.ended


class UntilClose:
    """Neither: the body is all that comes until the connection ends."""

    ended = False
    after = b""

    def feed(self, data: bytes) -> bytes:
        """All of it."""
        return data

    def close(self) -> bool:
        """The end of the connection is that of the body."""
        self.ended = True
        return True


def body_of(head: Head) -> ChunkedBody | SizedBody | UntilClose:
    """How the body behind `head` is framed (RFC 9112, section 6.3).

    Raises:
        BadFramingError: a length that is no number.
    """
    if head.status in (204, 304):
        return SizedBody(0)
    if b"chunked" in (head.first(b"transfer-encoding") or b"").lower():
        return ChunkedBody()
    length = head.first(b"content-length")
    if length is None:
        return UntilClose()
    if not length.isdigit():
        raise BadFramingError(f"not a length: {length[:80]!r}")
    return SizedBody(int(length))


def _bounded(rest: bytes) -> None:
    if len(rest) > MAX_HEAD_BYTES:
        raise BadFramingError(f"a line of more than {MAX_HEAD_BYTES} bytes")
