"""Ids in a spec: `E14`, `S3`, and what they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.experiment import Removed
from ddconsole.core.queue.values import Batch, Edit
from ddconsole.core.queue.view import by_id, members, sweep_ids, waiting
from ddconsole.core.spec.types import RefusedSpec, Spot, shown

if TYPE_CHECKING:
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.queue.values import Queue
    from ddconsole.core.spec.context import SpecContext
    from ddconsole.core.spec.words import Word

ID = re.compile(r"[ESes][0-9]{1,9}")
OTHER_PROFILE = re.compile(r"([A-Za-z0-9_.-]+):([ESes][0-9]{1,9})")
"""A run of another profile, `ct200:E11`."""


@dataclass(frozen=True, slots=True)
class Named:
    """An id with the experiments that it stands for: itself, or the members of a sweep that were not removed."""

    id: str
    experiments: tuple[Experiment, ...]

    @property
    def is_sweep(self) -> bool:
        """It names a sweep."""
        return self.id.startswith("S")

    @classmethod
    def of(cls, id_: str, queue: Queue) -> Named:
        """What is called so; without experiments when nothing is."""
        if id_.startswith("S"):
            return cls(id_, members(queue, id_))
        item = by_id(queue, id_)
        return cls(id_, () if item is None else (item,))


def looks_like_ids(word: Word) -> bool:
    """`E14`, `S3`, `E1,E2`, `ct200:E11`."""
    parts = word.text.split(",")
    return all(ID.fullmatch(part) or OTHER_PROFILE.fullmatch(part) for part in parts)


def one_id(word: Word, context: SpecContext) -> Named:
    """The experiment or sweep that the word names.

    Raises:
        RefusedSpec: it names none, or several.
    """
    if not looks_like_ids(word):
        raise _no_id(word)
    if "," in word.text:
        raise RefusedSpec(word.spot(word.text.index(",")), "one id is meant here", "name one experiment or one sweep")
    return _known(word.text, word.spot(), context)


def split_ids(words: tuple[Word, ...], context: SpecContext) -> tuple[tuple[Named, ...], tuple[Word, ...]]:
    """The ids that the words begin with, and the words behind them. Ids may be separated by commas."""
    named: list[Named] = []
    for count, word in enumerate(words):
        if not looks_like_ids(word):
            if not named and "=" not in word.text:
                raise _no_id(word)
            return tuple(named), words[count:]
        index = 0
        for part in word.text.split(","):
            named.append(_known(part, word.spot(index), context))
            index += len(part) + 1
    return tuple(named), ()


def expected_end(words: tuple[Word, ...], why: str) -> None:
    """Refuse what stands behind the end of a command."""
    if words:
        raise RefusedSpec(words[0].spot(), f"{shown(words[0].text)} does not belong here: {why}", "leave it out")


def batched(edits: tuple[Edit, ...]) -> Edit:
    """One edit, or several as one."""
    return edits[0] if len(edits) == 1 else Batch(edits)


def _known(text: str, spot: Spot, context: SpecContext) -> Named:
    other = OTHER_PROFILE.fullmatch(text)
    if other is not None:
        reason = f"{text} belongs to the profile {other.group(1)}"
        raise RefusedSpec(spot, reason, "the queue of one profile holds that profile's experiments alone")
    named = Named.of(text.upper(), context.queue)
    if named.experiments:
        return named
    raise RefusedSpec(spot, f"{named.id} is not in this queue", _there(named, context))


def _there(named: Named, context: SpecContext) -> str:
    """What could have been meant."""
    queue = context.queue
    if named.is_sweep:
        sweeps = sweep_ids(queue)
        return f"there is {', '.join(sweeps[-5:])}" if sweeps else "there is no sweep yet"
    ids = [item.id for item in waiting(queue)] or [
        item.id for item in queue.items if not isinstance(item.state, Removed)
    ]
    return f"there is {', '.join(ids[-5:])}" if ids else "the queue is empty"


def _no_id(word: Word) -> RefusedSpec:
    if "=" in word.text or not word.text:
        return RefusedSpec(word.spot(), "an id is missing here", "such as E14, or S3 for a sweep")
    return RefusedSpec(word.spot(), f"{shown(word.text)} is no id", "an id is E14, or S3 for a sweep")
