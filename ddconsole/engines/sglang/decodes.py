"""Watches decode lines for what fails in silence: a drafter that does not help, and decoding without a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.engines.sglang.bootlines import is_decode, split_stamp
from ddconsole.engines.sglang.cautions import EAGER, LOW, LOW_LINES, LOW_TAU, eager_decode, useless_drafter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.progress import LogWarning


@dataclass(slots=True)
class DecodeWatch:
    """Each trouble is told once.

    Attributes:
        last: the last decode line without its prefix.
    """

    last: str | None = None
    _low: int = 0
    _said_low: bool = False
    _said_eager: bool = False

    def is_quiet(self, block: str) -> bool:
        """Whether no decode line in the block can change anything but `last`."""
        watches_low = not self._said_low and (self._low > 0 or "accept len: 1." in block or "accept len: 0." in block)
        return not watches_low and (self._said_eager or EAGER not in block)

    def take_block(self, block: str) -> None:
        """The lines of a quiet block."""
        end = len(block)
        while (place := block.rfind("Decode batch", 0, end)) >= 0:
            begin = block.rfind("\n", 0, place) + 1
            message = split_stamp(block[begin : block.find("\n", place)])[1]
            if is_decode(message):
                self.last = message
                return
            end = begin

    def take(self, message: str) -> Iterator[LogWarning]:
        """One decode line, and what has to be said of it."""
        self.last = message
        if not self._said_eager and EAGER in message:
            self._said_eager = True
            yield eager_decode(message)
        low = LOW.search(message)
        if low is not None and float(low["tau"]) < LOW_TAU:
            self._low += 1
        elif "accept len: " in message:
            self._low = 0
        if not self._said_low and self._low >= LOW_LINES:
            self._said_low = True
            yield useless_drafter(message)
