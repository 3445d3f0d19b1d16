"""What is kept of a log for the day it fails: the last lines, and for each rank its first errors. Bounded."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

TAIL_LINES: Final = 400
"""Last lines of the whole log."""

BLOCK_HEAD: Final = 24
BLOCK_TAIL: Final = 72
"""Lines kept of a rank's errors: their begin, and their end where the exception stands."""

RANK_LIMIT: Final = 64
"""Ranks whose errors are kept apart."""

_CUES: Final = (
    "Error", "Exception", "exception:", "error:", "Traceback", "failed", "Failed", "FAILED", "died", "crashed",
    "timeout", "nsupported", "not support", "out of memory", "out of resource", "No module", "ot enough memory",
    "leave no GPU", "Cannot find", "missing", "unbalanced", "is not available", "already in use", "no kernel image",
    "illed", "mismatch", "usage: ", "not found", "No such file", "SIG", "sigquit", "equires", "must be", "only",
    "nknown", "illegal memory", "out-of-range", "outside the target", "NCCL", "not exist", "denied", "egmentation",
    "minimum required", "invalid", "too old", "insufficient", "identifier", "No space left", "fatal", "nvcc",
    "No supported", "TllmGen", "references", "used by a process",
)  # fmt: skip
"""A line with none of these words explains no death. Looked for one by one: faster than one pattern of them all."""

_HARMLESS = re.compile(r"^Ignore import error|UserWarning|^server_args=|^sglang is using")

_REMEMBERED: Final = 1024
"""Messages whose judgement is kept: eight ranks say the same, and tracebacks repeat."""

_SHORT: Final = 300
"""Characters of a message that is worth remembering."""


def _judge(message: str) -> bool:
    for cue in _CUES:
        if cue in message:
            return _HARMLESS.search(message) is None
    return False


class Line(NamedTuple):
    """A line with its place in the log and the rank that printed it ("" for the main process)."""

    number: int
    rank: str
    text: str


@dataclass(slots=True)
class Block:
    """The errors of one rank, in order; the middle of very long ones is let go."""

    rank: str
    head: list[Line] = field(default_factory=list)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=BLOCK_TAIL))

    def lines(self) -> Iterator[Line]:
        """What is kept, in order."""
        yield from self.head
        yield from self.tail


@dataclass(slots=True)
class Evidence:
    """The memory of a boot. Lines without a prefix belong to the rank that spoke before them."""

    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    blocks: dict[str, Block] = field(default_factory=dict)
    _rank: str = ""
    _open: bool = False
    _judged: dict[str, bool] = field(default_factory=dict)

    def add(self, rank: str | None, message: str, text: str, number: int, *, harmless: bool = False) -> None:
        """Judge a line: `message` without its prefix is what is judged, `text` is what is shown."""
        if rank is None:
            cue = self._open or self._explains(message)
        else:
            self._rank = rank
            cue = not harmless and self._explains(message)
        if cue:
            self._keep([Line(number, self._rank, text)])
        self._open = cue

    @property
    def is_open(self) -> bool:
        """Whether a line without a prefix would belong to an error."""
        return self._open

    def add_all(self, texts: list[str], number: int) -> None:
        """Lines without a prefix that belong to the error that is open; `number` is the first one's."""
        lines = []
        for text in texts:
            if text and not text.isspace():
                lines.append(Line(number, self._rank, text))
            number += len(text) + 1
        self._keep(lines)

    def routine(self, rank: str) -> None:
        """A line of `rank` that explains nothing; what follows without a prefix is no part of an error."""
        self._rank = rank
        self._open = False

    def _explains(self, message: str) -> bool:
        """Whether a message may explain a death."""
        known = self._judged.get(message)
        if known is None:
            known = _judge(message)
            if len(message) <= _SHORT:
                if len(self._judged) >= _REMEMBERED:
                    self._judged.clear()
                self._judged[message] = known
        return known

    def _keep(self, lines: list[Line]) -> None:
        block = self.blocks.get(self._rank)
        if block is None:
            if len(self.blocks) >= RANK_LIMIT:
                return
            block = self.blocks[self._rank] = Block(self._rank)
        room = BLOCK_HEAD - len(block.head)
        block.head += lines[:room]
        block.tail.extend(lines[room:])

    def errors(self) -> list[Line]:
        """All error lines that were kept, in the order of the log."""
        return sorted(line for block in self.blocks.values() for line in block.lines())
