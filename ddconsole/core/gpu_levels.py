"""How much memory each card had in use before a launch, and what of it is not given back after a stop.

Rows are read by `core.gpu`; here is only what they mean. What processes hold that were there before the launch, or
that belong to another user, is theirs and counts as no remainder. Everything is MiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ddconsole.core.gpu import COLUMNS, parse_number, parse_row

LEVEL_FIELDS: Final = ("index", "uuid", "memory.used")
"""What is asked of `nvidia-smi --query-gpu` for a level."""

TOLERANCE_MIB: Final = 512
"""So much may differ: driver contexts, and what the display or the persistence daemon moves."""


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A process that holds memory of a card. `ours` says that the login's own user runs it."""

    pid: int
    uuid: str
    memory_mib: int | None
    ours: bool
    user: str = ""
    command: str = ""

    def words(self) -> str:
        """Who it is, in a few words."""
        about = ", ".join(word for word in (self.user, self.command) if word)
        held = "" if self.memory_mib is None else f" with {self.memory_mib:,} MiB"
        return f"pid {self.pid}{f' ({about})' if about else ''}{held}"


@dataclass(frozen=True, slots=True)
class GpuLevels:
    """Memory in use by card, by index; `uuids` tells which card a holder is on."""

    used_mib: dict[int, int]
    uuids: dict[int, str]
    holders: tuple[GpuHolder, ...] = ()

    def on(self, index: int) -> list[GpuHolder]:
        """The processes on one card."""
        return [one for one in self.holders if one.uuid == self.uuids.get(index)]


def parse_levels(text: str) -> GpuLevels:
    """What lines of two kinds tell, by tabs: `card` and a CSV row; `app`, pid, uuid, MiB, ours, user, command."""
    used: dict[int, int] = {}
    uuids: dict[int, str] = {}
    holders: list[GpuHolder] = []
    for line in text.splitlines():
        mark, *cells = line.split("\t")
        if mark == "card" and len(cells) == 1:
            row = _row([cell.strip() for cell in cells[0].split(",")])
            if row is not None:
                index, uuid, mib = row
                used[index], uuids[index] = mib, uuid
        elif mark == "app" and len(cells) == 6 and cells[0].isdigit():
            pid, uuid, memory, ours, user, command = (cell.strip() for cell in cells)
            holders.append(GpuHolder(int(pid), uuid, _mib(memory), ours == "yes", user, command))
    return GpuLevels(used, uuids, tuple(holders))


def _row(values: list[str]) -> tuple[int, str, int] | None:
    """Index, uuid and used memory of a row; None when the row or its memory cannot be read."""
    sample = parse_row(values, LEVEL_FIELDS) if len(values) == len(LEVEL_FIELDS) else None
    if sample is None or sample.memory_used_mib is None:
        return None
    return sample.index, sample.uuid or "", sample.memory_used_mib


def _mib(cell: str) -> int | None:
    column = COLUMNS["memory.used"]
    number = parse_number(cell, column.low, column.high)
    return None if number is None else round(number)


def not_given_back(before: GpuLevels, now: GpuLevels) -> list[str]:
    """A line for each card that holds more than before the launch, with who holds it; empty proves that none does.

    A card that one of the two readings does not have proves nothing and is left out.
    """
    lines = []
    for index, used in sorted(now.used_mib.items()):
        level = before.used_mib.get(index)
        if level is None:
            continue
        more = used - level - _others(before.on(index), now.on(index))
        if more > TOLERANCE_MIB:
            known = {one.pid for one in before.on(index)}
            held = ", ".join(one.words() for one in now.on(index) if one.ours and one.pid not in known)
            lines.append(
                f"GPU {index}: {more:,} MiB more than before the launch, held by {held or 'no visible process'}"
            )
    return lines


def _others(before: list[GpuHolder], now: list[GpuHolder]) -> int:
    """MiB by which processes that are provably not of the launch hold more than before, negative for less."""
    known = {one.pid for one in before}
    theirs = [one for one in now if one.pid in known or not one.ours]
    return sum(one.memory_mib or 0 for one in theirs) - sum(one.memory_mib or 0 for one in before)
