"""An experiment: a config, the passes to run on it, and the state it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from ddconsole.core.config import Config
    from ddconsole.core.errors import Failure


class Outcome(StrEnum):
    """How an attempt ended. *Passed* means that every pass was measured and nothing was invalid or wrong."""

    PASSED = "passed"
    WRONG = "wrong"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Idea:
    """Words without a config; kept until they are turned into one or removed."""

    name = "idea"


@dataclass(frozen=True, slots=True)
class Held:
    """In the queue, passed over until released."""

    name = "held"


@dataclass(frozen=True, slots=True)
class Queued:
    """Waiting for its turn."""

    name = "queued"


@dataclass(frozen=True, slots=True)
class Running:
    """Being attempted now. `cancelling`: somebody asked for its end, and the runner has not ended it yet."""

    attempt: int
    started_at: datetime
    cancelling: bool = False
    name = "running"


@dataclass(frozen=True, slots=True)
class Done:
    """Measured. `outcome` is passed or wrong."""

    attempt: int
    outcome: Outcome
    name = "done"


@dataclass(frozen=True, slots=True)
class Failed:
    """Ended without its numbers, for a cause with a name."""

    attempt: int
    failure: Failure
    name = "failed"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Stopped by its user while it ran."""

    attempt: int
    name = "cancelled"


@dataclass(frozen=True, slots=True)
class Removed:
    """A tombstone, so that an id is never given twice and a removal can be undone."""

    name = "removed"


State: TypeAlias = Idea | Held | Queued | Running | Done | Failed | Cancelled | Removed

WAITING = (Idea, Held, Queued)
"""States in which an experiment can still be edited, moved and removed."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a number holds for. Part of every result's key.

    Attributes:
        prompts: name of a shipped prompt set, or the path of a JSONL file; `#` and a hash of the content behind it
            (`passes/workload.py`). Context length has no field of its own: it is that of the prompts.
        temperature: sampling temperature; 0 is greedy.
        thinking: whether the model may reason before it answers.

    Concurrency is no part of it: a result's figures are those at concurrency 1, and each level stands by itself.
    """

    prompts: str = "code"
    temperature: float = 0.0
    thinking: bool = False

    def to_json(self) -> dict[str, object]:
        """The `workload` object of `--json` answers."""
        return {"prompts": self.prompts, "temperature": self.temperature, "thinking": self.thinking}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an experiment came from: the verb, the text as it was typed, and what it was placed after."""

    verb: str = "add"
    text: str = ""
    after: str | None = None

    def to_json(self) -> dict[str, object]:
        """The `origin` object of `--json` answers."""
        return {"verb": self.verb, "text": self.text, "after": self.after}


@dataclass(frozen=True, slots=True)
class Experiment:
    """One item of the queue. Its id never changes; its rank is its place in `Queue.items`.

    Attributes:
        config: what to run; None only for an idea, whose words stand in `note`.
        suite: which of the profile's suites gives the passes their sizes: `quick` or `confirm`.
        passes: names of the passes to run, in order.
        requires: id of an experiment that must have passed before this one may start (`after!`), or None.
        base_best: True for `base=best`: the knobs that are not pinned are bound at start to the best measured so far.
        pinned: knobs that were typed, by their long names; what `base=best` leaves alone.
        intent: the user's intention it came from, so that one intention queues it once; empty when not told.
    """

    id: str
    config: Config | None
    state: State
    created_at: datetime
    suite: str = "quick"
    passes: tuple[str, ...] = ("coding", "throughput")
    repeats: int = 1
    sweep: str | None = None
    origin: Origin = field(default_factory=Origin)
    note: str = ""
    author: str = ""
    requires: str | None = None
    base_best: bool = False
    revision: int = 0
    pinned: tuple[str, ...] = ()
    intent: str = ""

    @property
    def label(self) -> str:
        """The config in one line, or the words of an idea."""
        return self.note if self.config is None else self.config.label()
