"""The queue and its rules: pure. `apply(queue, edit)` gives a new queue or a refusal; nothing else changes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from ddconsole.core.config import Config
    from ddconsole.core.errors import Failure
    from ddconsole.core.experiment import Experiment, Origin, Outcome


@dataclass(frozen=True, slots=True)
class Queue:
    """Every experiment of a profile. Waiting ones come in the order in which they will run.

    Attributes:
        items: all experiments, ended ones and tombstones included; the order of the waiting ones is their rank.
        revision: grows by one with each applied edit.
        paused: the runner starts nothing new.
        next_experiment, next_sweep: numbers of the ids to give next; never given twice.
    """

    items: tuple[Experiment, ...] = ()
    revision: int = 0
    paused: bool = False
    next_experiment: int = 1
    next_sweep: int = 1


@dataclass(frozen=True, slots=True)
class Draft:
    """An experiment that has no id yet. `config` None makes an idea of `note`."""

    config: Config | None
    suite: str = "quick"
    passes: tuple[str, ...] = ("coding", "throughput")
    repeats: int = 1
    note: str = ""
    requires: str | None = None
    base_best: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where new items go: behind all, in front of all, or right behind one."""

    where: Literal["end", "front", "after"] = "end"
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """Queue drafts in their order. `as_sweep` gives them a common sweep id."""

    drafts: tuple[Draft, ...]
    origin: Origin
    place: Place = Place()
    author: str = ""
    as_sweep: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Replace what a waiting experiment runs. None keeps a field."""

    id: str
    config: Config | None = None
    suite: str | None = None
    passes: tuple[str, ...] | None = None
    repeats: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Move waiting experiments, keeping their order among themselves. `to` counts from 1."""

    ids: tuple[str, ...]
    to: Literal["top", "up", "down", "bottom"] | int


@dataclass(frozen=True, slots=True)
class Remove:
    """Take waiting experiments out; they stay as tombstones."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Pass queued experiments over until released."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """The inverse of Hold."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """Queue an ended experiment again, with its id, for a further attempt."""

    id: str


@dataclass(frozen=True, slots=True)
class SetPaused:
    """Pause or resume the whole queue."""

    paused: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The runner starts the experiment. Not undoable."""

    id: str
    attempt: int
    at: datetime


@dataclass(frozen=True, slots=True)
class End:
    """The runner ended it. Interrupted puts it back to queued, at the front. Not undoable."""

    id: str
    attempt: int
    outcome: Outcome
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """Take the last edit back that can still be taken back."""


@dataclass(frozen=True, slots=True)
class Redo:
    """Do again what the last Undo took back."""


Edit: TypeAlias = Add | Change | Move | Remove | Hold | Release | Retry | SetPaused | Begin | End | Undo | Redo
