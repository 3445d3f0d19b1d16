"""The quick way through a block of plain lines: what needs care is told apart from routine by a few looks at the whole.

An engine that serves prints a decode line for every few steps and a line for every request: millions of them. They are
skipped inside the regular-expression engine, a run of them at a time. Lines out of the ordinary (a bar, glued lines,
what may be a secret) are told apart from the rest by a look at all that is not routine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from ddconsole.engines.sglang.bootlines import ROUTINE, STAMP_PATTERN
from ddconsole.engines.sglang.shardbar import may_hold_bar

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCAN: Final = re.compile(
    rf"(?:{STAMP_PATTERN.format(rank='?:')}{ROUTINE}\n)*"
    rf"(?:\Z|({STAMP_PATTERN.format(rank='')}([^\n]*))\n|((?:[^\n\[][^\n]*\n)(?:[^\n\[][^\n]*\n|\n)*)|([^\n]+)\n|\n)"
)
"""A run of routine lines, then what is none: a line with a stamp (1 the line, 2 its rank, 3 its message), all lines up
to the next bracket (4, as a traceback's), one in brackets that are no stamp (5), or an empty one. Whatever follows a
run matches, for blocks are whole lines: nothing goes back. (No possessive quantifiers: before Python 3.11.5 they lose
groups.)"""


Told: TypeAlias = tuple[str, str | None, str, str | None, int]
"""What is not routine: a line, or SEVERAL ones with their ends; its rank, "" for the main process, None without a
stamp; its message, or SEVERAL; the rank of the routine line right before it, None where the line before was not
routine; its place in the block."""

SEVERAL: Final = "\n"
"""Stands for the message of whole lines without a stamp: no message has a line end."""


def may_be_odd(text: str, limit: int) -> bool:
    """False only when no line of `text` can be a bar, several lines glued together, or longer than `limit`."""
    stamps = text.count("\n[2") + text.startswith("[2")
    return (
        (len(text) > limit and max(map(len, text.split("\n"))) > limit)
        or text.count("[2") != stamps
        or may_hold_bar(text)
    )


def told(block: str) -> Iterator[Told]:
    """The lines of an ordinary block that are not routine. One without text only says that routine came before."""
    for match in _SCAN.finditer(block):
        kind = match.lastindex
        begin = match.start(kind) if kind is not None else _end_of_run(block, match.start(), match.end())
        after = _rank_before(block, begin) if begin > match.start() else None
        if kind == 1:
            line, rank, message = match.group(1, 2, 3)
            yield line, rank.strip(), message, after, begin
        elif kind == 4 and not match[4].isspace():
            yield match[4], None, SEVERAL, after, begin
        elif kind == 5 and not (line := match[5]).isspace():
            yield line, None, line, after, begin
        elif after is not None:
            yield "", None, "", after, begin


def _end_of_run(block: str, start: int, end: int) -> int:
    """Where a run of routine ends that is followed by an empty line, or by nothing."""
    empty_line = end > start and (end - start == 1 or block[end - 2] == "\n")
    return end - 1 if empty_line else end


def _rank_before(block: str, position: int) -> str:
    """The rank of the line that ends right before `position`; it has a stamp."""
    stamp = _STAMP.match(block, block.rfind("\n", 0, position - 1) + 1)
    return "" if stamp is None else stamp["rank"].strip()


_STAMP: Final = re.compile(STAMP_PATTERN.format(rank="?P<rank>"))
