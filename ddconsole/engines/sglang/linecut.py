"""Log bytes cut anywhere become clean text: blocks of plain lines, odd lines, and the states of a bar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_LIMIT: Final = 65_536
"""Bytes of one line that are read; the rest of it is dropped, and never read as a fresh line."""

PEEK_LIMIT: Final = 2_000
"""Bytes of an unfinished piece that may be a progress bar."""

BLOCK_SIZE: Final = 16_384
"""Bytes of plain lines that are passed on together: enough to pay for a look at the whole, few enough that one line
that needs care makes but few others take the longer way."""

_PLAIN: Final = bytes(range(0x20, 0x7F)) + b"\n"
"""Printable ASCII and the line end: nothing to clean, nothing to decode."""

_ENDS = re.compile(rb"\r\n|\n|\r(?!\Z)")
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and the other strings: titles, links
    r"|\x1b[ -/]*[0-~]?"
)


def clean(text: str) -> str:
    """`text` without escape sequences, control characters and direction overrides; odd spaces become plain ones."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    shown = (char if char.isprintable() else " " if char.isspace() else "" for char in text.replace("\t", "    "))
    return "".join(shown)


class Piece(NamedTuple):
    """Text up to a line end. `kept` is False when a carriage return ended it: a terminal would overwrite it."""

    text: str
    kept: bool


class Redrawn(NamedTuple):
    """States that a terminal would show over each other, each with its `\\r`; printable, shorter than PIECE_LIMIT."""

    text: str


Cut: TypeAlias = str | Piece | Redrawn
"""A piece, or several states, or a block: whole lines of printable ASCII, each with its `\\n`, shorter than
PIECE_LIMIT."""


@dataclass(slots=True)
class LineCutter:
    """Splits at `\\n`, `\\r\\n` and `\\r`, whole lines being decoded at once so that no character is cut in two."""

    _tail: bytes = b""
    _skipping: bool = False

    def cut(self, data: bytes) -> Iterator[Cut]:
        """What `data` completes, in order. A `\\r` at the end waits for what follows, as it may begin `\\r\\n`."""
        buffer = self._tail + data
        self._tail = b""
        start = self._end_of_skipped(buffer) if self._skipping else 0
        end = buffer.rfind(b"\n") + 1
        while start < end:
            stop = end if end - start <= BLOCK_SIZE else _after_line(buffer, start + BLOCK_SIZE)
            yield from _lines(buffer[start:stop])
            start = stop
        yield from self._rest(buffer[start:])

    def peek(self) -> str:
        """The unfinished piece, if it is short enough to be a progress bar."""
        if not self._tail or len(self._tail) > PEEK_LIMIT:
            return ""
        return clean(self._tail.removesuffix(b"\r").decode("utf-8", "replace"))

    def _end_of_skipped(self, buffer: bytes) -> int:
        """Where the line that grew too long ends; the buffer's end while it does not."""
        end = _ENDS.search(buffer)
        self._skipping = end is None
        if end is not None:
            return end.end()
        return len(buffer) - buffer.endswith(b"\r")

    def _rest(self, rest: bytes) -> Iterator[Cut]:
        """What comes after the last `\\n`: states of a bar, and an unfinished piece that is kept, bounded."""
        start = 0
        if b"\r" in rest and not self._skipping:
            start = rest.rfind(b"\r", 0, len(rest) - 1) + 1
            yield from _states(rest[:start])
        tail = rest[start:]
        length = len(tail) - tail.endswith(b"\r")
        if length > PIECE_LIMIT and not self._skipping:  # told once, then skipped
            yield _piece(tail[:length], kept=True)
            self._skipping = True
        self._tail = tail[length:] if self._skipping else tail


def _after_line(buffer: bytes, position: int) -> int:
    """The begin of the line after the one at `position`; there is one."""
    return buffer.index(b"\n", position - 1) + 1


def _lines(whole: bytes) -> Iterator[Cut]:
    """Complete lines; those of plain text together."""
    if len(whole) <= PIECE_LIMIT and not whole.translate(None, _PLAIN):
        yield whole.decode("ascii")
        return
    plain: list[bytes] = []
    for line in whole[:-1].split(b"\n"):
        if len(line) < PIECE_LIMIT and not line.translate(None, _PLAIN):
            plain.append(line)
            continue
        if plain:
            yield _block(plain)
            plain.clear()
        yield from _odd_line(line)
    if plain:
        yield _block(plain)


def _block(lines: list[bytes]) -> str:
    return (b"\n".join(lines) + b"\n").decode("ascii")


def _odd_line(line: bytes) -> Iterator[Cut]:
    """A line with returns, escape sequences, other characters than ASCII, or of great length."""
    line = line.removesuffix(b"\r")
    start = line.rfind(b"\r") + 1
    yield from _states(line[:start])
    yield _piece(line[start:], kept=True)


def _states(run: bytes) -> Iterator[Cut]:
    """Pieces that end in `\\r`: together if there is nothing to clean in them."""
    text = _decoded(run) if len(run) <= PIECE_LIMIT else None
    if text is not None and text.replace("\r", "").isprintable():
        if text:
            yield Redrawn(text)
        return
    for state in run.split(b"\r")[:-1]:
        yield _piece(state, kept=False)


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _piece(data: bytes, *, kept: bool) -> Piece:
    overlong = len(data) > PIECE_LIMIT
    return Piece(clean(data[:PIECE_LIMIT].decode("utf-8", "replace")), kept or overlong)
