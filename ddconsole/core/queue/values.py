"""The queue as a value: what is in it, what can be done to it, what a refusal says. Rules are in `queue_rules`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from ddconsole.core.config import Config
    from ddconsole.core.errors import Failure
    from ddconsole.core.experiment import Experiment, Origin, Outcome


@dataclass(frozen=True, slots=True)
class Placed:
    """An experiment and the id it stands behind in `Queue.items`; None at the very front."""

    experiment: Experiment
    behind: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """One edit that can be taken back: the touched experiments and their places, before it and after it.

    Attributes:
        text: the edit in words, `hold E3`.
        before: as they were; an experiment that the edit added is not in it.
        after: as the edit left them.
        started: ids that have started since, and so dropped out of this step.
    """

    text: str
    before: tuple[Placed, ...]
    after: tuple[Placed, ...]
    started: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that the step can still change."""
        return tuple(dict.fromkeys(placed.experiment.id for placed in self.before + self.after))


@dataclass(frozen=True, slots=True)
class History:
    """One linear history: what can be undone and what can be done again, newest last in both."""

    undo: tuple[Step, ...] = ()
    redo: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """Every experiment of a profile. Waiting ones come last, in the order in which they will run.

    Attributes:
        items: all experiments: first those that are not waiting (ended ones, tombstones, the running one), then the
            waiting ones; the order of the waiting ones is their rank.
        revision: grows by one with each applied edit.
        paused: the runner starts nothing new.
        next_experiment, next_sweep: numbers of the ids to give next; never given twice.
        history: what undo and redo can do.
        notice: what the last edit has to say besides its effect; empty when nothing.
    """

    items: tuple[Experiment, ...] = ()
    revision: int = 0
    paused: bool = False
    next_experiment: int = 1
    next_sweep: int = 1
    history: History = History()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an edit was not applied; nothing has changed.

    Attributes:
        reason: what stands against it and what can be done instead, as one or two sentences.
        code: a stable word for scripts: `unknown-id running ended removed idea no-change stale busy not-queued
            not-running blocked repeated empty nothing-to-undo nothing-to-redo`.
        ids: the experiments that stand against it.
    """

    reason: str
    code: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """An experiment that has no id yet. `config` None makes an idea of `note`.

    The other fields are those of `Experiment`.
    """

    config: Config | None
    suite: str = "quick"
    passes: tuple[str, ...] = ("coding", "throughput")
    repeats: int = 1
    note: str = ""
    requires: str | None = None
    base_best: bool = False
    held: bool = False
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where new items go: behind all, in front of all that wait, or behind one.

    `anchor` is an experiment or a sweep (then its last member). With `after`, what was placed after the same anchor
    earlier keeps its place, so that two `after E14` run in the order in which they were given; `behind` is right
    behind it, whoever stands there.
    """

    where: Literal["end", "front", "after", "behind"] = "end"
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """Queue drafts in their order. `as_sweep` gives them a common sweep id.

    `intent` names one intention of the user (a form opened once, a line entered once): a second Add with the same
    intent is refused, so that five presses of Enter queue one experiment.

    `at` is the only revision of the queue at which it may be taken, when its author has looked for the same work in
    that one; None takes it at any.
    """

    drafts: tuple[Draft, ...]
    origin: Origin
    place: Place = Place()
    author: str = ""
    as_sweep: bool = False
    intent: str = ""
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Replace what a waiting experiment runs. None keeps a field. An idea that gets a config becomes queued."""

    id: str
    config: Config | None = None
    suite: str | None = None
    passes: tuple[str, ...] | None = None
    repeats: int | None = None
    note: str | None = None
    base_best: bool | None = None
    pinned: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Extend:
    """Give an experiment further passes, behind those it has; the running one may be given them too."""

    id: str
    passes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Move waiting experiments, keeping their order among themselves. `to` counts from 1."""

    ids: tuple[str, ...]
    to: Literal["top", "up", "down", "bottom"] | int


@dataclass(frozen=True, slots=True)
class Arrange:
    """Put the named waiting experiments into this order, in the places that they hold together."""

    ids: tuple[str, ...]


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
    """Queue an ended experiment again behind all, with its id, for a further attempt.

    A sweep's id queues those of its members again that failed or were cancelled.
    """

    id: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask for the end of the running experiment; its runner, in whichever process, ends it. Not undoable."""

    id: str


@dataclass(frozen=True, slots=True)
class SetPaused:
    """Pause or resume the whole queue. Not undoable: taking an edit back must not start an engine."""

    paused: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The runner starts the experiment. Not undoable. `config` is what `base=best` was bound to, else None."""

    id: str
    attempt: int
    at: datetime
    config: Config | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The runner ended it. Interrupted puts it back to queued, at the front. Not undoable."""

    id: str
    attempt: int
    outcome: Outcome
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Several edits as one: all or none, one revision, one step of the history."""

    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """Take the last edit back that can still be taken back."""


@dataclass(frozen=True, slots=True)
class Redo:
    """Do again what the last Undo took back."""


Edit: TypeAlias = (
    Add
    | Change
    | Extend
    | Move
    | Arrange
    | Remove
    | Hold
    | Release
    | Retry
    | Cancel
    | SetPaused
    | Begin
    | End
    | Batch
    | Undo
    | Redo
)
