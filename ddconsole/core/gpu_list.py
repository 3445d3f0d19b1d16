"""What nvidia-smi tells beside its query loop: the list of cards with their MIG instances, and fields it refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CARD: Final = re.compile(r"GPU (\d{1,4}): (.{1,200}?) \(UUID: ([\w/-]{1,100})\)\s*", re.ASCII)
_INSTANCE: Final = re.compile(r"\s+MIG (\S{1,40})\s+Device\s+\d{1,3}: \(UUID: ([\w/-]{1,120})\)\s*", re.ASCII)
_BAD_FIELD: Final = re.compile(r'\s*Field "([\w.]{1,80})" is not a valid field to query\.?\s*', re.ASCII)


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance: `3g.40gb`, and the UUID by which an engine is given it."""

    profile: str
    uuid: str


@dataclass(frozen=True, slots=True)
class ListedCard:
    """One card of `nvidia-smi -L`."""

    index: int
    name: str
    uuid: str
    instances: tuple[Instance, ...] = ()


def parse_list(lines: Iterable[str]) -> tuple[ListedCard, ...]:
    """The cards of `nvidia-smi -L` with their instances. Never raises; other lines are left out."""
    cards: list[ListedCard] = []
    for line in lines:
        if match := _CARD.fullmatch(line):
            cards.append(ListedCard(int(match[1]), match[2], match[3]))
        elif cards and (match := _INSTANCE.fullmatch(line)):
            last = cards[-1]
            more = (*last.instances, Instance(match[1], match[2]))
            cards[-1] = ListedCard(last.index, last.name, last.uuid, more)
    return tuple(cards)


def card_of(uuid: str, cards: Sequence[ListedCard]) -> int | None:
    """The index of the card that a UUID belongs to: its own, or that of one of its instances."""
    for card in cards:
        if uuid == card.uuid or any(uuid == instance.uuid for instance in card.instances):
            return card.index
        if uuid.startswith(f"MIG-{card.uuid}/"):  # as drivers before 470 wrote an instance
            return card.index
    return None


def bad_field(line: str) -> str | None:
    """The field that this driver's nvidia-smi does not know, when the line says so."""
    match = _BAD_FIELD.fullmatch(line)
    return match[1] if match else None
