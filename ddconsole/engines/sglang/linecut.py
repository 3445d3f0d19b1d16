"""Log bytes cut anywhere become clean pieces of text: lines, and the states of a bar that overwrites itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

PIECE_LIMIT: Final = 65_536
"""Bytes of one line that are read; the rest of it is dropped, and never read as a fresh line."""

PEEK_LIMIT: Final = 2_000
"""Bytes of an unfinished piece that may be a progress bar."""

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


@dataclass(slots=True)
class LineCutter:
    """Splits at `\\n`, `\\r\\n` and `\\r`, whole lines being decoded at once so that no character is cut in two."""

    _tail: bytes = b""
    _skipping: bool = False

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces that `data` completes. A `\\r` at the end waits for what follows, as it may begin `\\r\\n`."""
        buffer = self._tail + data
        pieces: list[Piece] = []
        start = 0
        for end in _ENDS.finditer(buffer):
            if not self._skipping:
                pieces.append(self._piece(buffer[start : end.start()], kept=end[0] != b"\r"))
            self._skipping = False
            start = end.end()
        self._keep(buffer[start:], pieces)
        return pieces

    def peek(self) -> str:
        """The unfinished piece, if it is short enough to be a progress bar."""
        if len(self._tail) > PEEK_LIMIT:
            return ""
        return clean(self._tail.removesuffix(b"\r").decode("utf-8", "replace"))

    def _keep(self, rest: bytes, pieces: list[Piece]) -> None:
        """Hold the unfinished piece, bounded; a piece that grows too long is told once and then skipped."""
        length = len(rest) - rest.endswith(b"\r")
        if not self._skipping and length > PIECE_LIMIT:
            pieces.append(self._piece(rest[:length], kept=True))
            self._skipping = True
        self._tail = rest[length:] if self._skipping else rest

    @staticmethod
    def _piece(data: bytes, *, kept: bool) -> Piece:
        overlong = len(data) > PIECE_LIMIT
        return Piece(clean(data[:PIECE_LIMIT].decode("utf-8", "replace")), kept or overlong)
