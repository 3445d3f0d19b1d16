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
    "No supported", "TllmGen", "references",
)  # fmt: skip
"""A line with none of these words explains no death. Looked for one by one: faster than one pattern of them all."""

_HARMLESS = re.compile(
    r"^Ignore import error|UserWarning|^server_args=|^Decode batch|^Prefill batch|HTTP/1\.1\"|^sglang is using"
)


def _has_cue(message: str) -> bool:
    for cue in _CUES:  # noqa: SIM110 - a generator inside any() costs twice as much, and this runs for every line
        if cue in message:
            return True
    return False


class Line(NamedTuple):
    """A line with its number in the log and the rank that printed it ("" for the main process)."""

    number: int
    rank: str
    text: str


@dataclass(slots=True)
class Block:
    """The errors of one rank, in order."""

    rank: str
    head: list[Line] = field(default_factory=list)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=BLOCK_TAIL))

    def add(self, line: Line) -> None:
        """Keep `line`; the middle of very long errors is what is let go."""
        if len(self.head) < BLOCK_HEAD:
            self.head.append(line)
        else:
            self.tail.append(line)

    def lines(self) -> Iterator[Line]:
        """What is kept, in order."""
        yield from self.head
        yield from self.tail


@dataclass(slots=True)
class Evidence:
    """The memory of a boot. Lines without a prefix belong to the rank that spoke before them."""

    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    blocks: dict[str, Block] = field(default_factory=dict)
    _rank: str = ""
    _number: int = 0
    _open: bool = False

    def add(self, rank: str | None, message: str, text: str, *, harmless: bool = False) -> None:
        """Keep a line: `message` without its prefix is what is judged, `text` is what is shown."""
        self._number += 1
        if rank is not None:
            self._rank = rank
        line = Line(self._number, self._rank, text)
        self.tail.append(line)
        cue = not harmless and _has_cue(message) and _HARMLESS.search(message) is None
        if cue or (rank is None and self._open):
            self._keep(line)
        self._open = cue or (rank is None and self._open)

    def _keep(self, line: Line) -> None:
        block = self.blocks.get(line.rank)
        if block is None:
            if len(self.blocks) >= RANK_LIMIT:
                return
            block = self.blocks[line.rank] = Block(line.rank)
        block.add(line)

    def errors(self) -> list[Line]:
        """All error lines that were kept, in the order of the log."""
        return sorted(line for block in self.blocks.values() for line in block.lines())
