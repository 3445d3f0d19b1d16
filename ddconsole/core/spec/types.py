"""What the language gives back: a command, or a refusal that names its column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ddconsole.core.errors import SpecError
from ddconsole.core.queue.values import Add, Batch, Draft, Edit

if TYPE_CHECKING:
    from ddconsole.core.config import Effective

MAX_CONFIGS = 512
"""Most experiments that one spec may make."""

MAX_CHARACTERS = 4_000
"""Longest line that is read as a spec."""

VERBS = (
    "add", "next", "after", "after!", "clone", "edit", "hold", "release", "move", "remove", "sweep", "undo", "redo",
    "retry", "cancel", "idea", "pause", "start",
)  # fmt: skip
"""Every verb of the language."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a spec. `column` counts from 1 in the words joined by one space, `cursor` in the text as typed."""

    column: int
    cursor: int


@dataclass(frozen=True, slots=True)
class SpecRefusal:
    """Why a text is no command. Nothing has changed; the text is the caller's to keep.

    Attributes:
        column: where it stands, from 1, in the words joined by one space.
        reason: what is wrong there.
        advice: what would be right.
        cursor: the same place in the text as it was typed, from 1.
        idea: the words to keep with `idea "…"`, when the text reads like words rather than a spec; else None.
    """

    column: int
    reason: str
    advice: str = ""
    cursor: int = 1
    idea: str | None = None

    def to_error(self, text: str = "") -> SpecError:
        """The same as an error, for callers that end with exit code 2."""
        return SpecError(self.reason, column=self.column, text=text, advice=self.advice)


class RefusedSpec(Exception):  # noqa: N818 - it never leaves the language; `parse` turns it into its value
    """Carries a refusal out of the depth of the parser."""

    def __init__(self, spot: Spot, reason: str, advice: str = "", *, idea: str | None = None) -> None:
        super().__init__(reason)
        self.refusal = SpecRefusal(spot.column, reason, advice, cursor=spot.cursor, idea=idea)


@dataclass(frozen=True, slots=True)
class Planned:
    """One experiment of a spec, before it is taken.

    Attributes:
        draft: what would be queued.
        source: id of the experiment that it inherits from; None when it starts from the profile's default.
        notes: how its values came about, `B 12 → 26 (match: 1.71 per position)`.
        effective: what the engine would run; None for an idea.
        before: what the engine runs for the source; None without one.
    """

    draft: Draft
    source: str | None = None
    notes: tuple[str, ...] = ()
    effective: Effective | None = None
    before: Effective | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A text that was understood.

    Attributes:
        verb: one of VERBS.
        edit: what to apply to the queue; several changes come as one Batch.
        text: the spec as it was typed, words joined by one space.
        preview: for verbs that add or edit: each experiment with its derivation, in order.
        grid: for a sweep its axes as typed, `b 16,24 × B match,2b`; else empty.
        notes: what else should be said before it is taken: what `after` means, equal ones taken once.
    """

    verb: str
    edit: Edit
    text: str = ""
    preview: tuple[Planned, ...] = ()
    grid: str = ""
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many experiments it makes or edits."""
        return len(self.preview)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """What it would queue; empty for verbs that add nothing."""
        edits = self.edit.edits if isinstance(self.edit, Batch) else (self.edit,)
        return tuple(draft for edit in edits if isinstance(edit, Add) for draft in edit.drafts)

    def signed(self, author: str = "", intent: str = "") -> Command:
        """The same command in somebody's name. `intent` is explained at `Add`."""
        if isinstance(self.edit, Batch):
            return replace(self, edit=Batch(tuple(_signed(edit, author, intent) for edit in self.edit.edits)))
        return replace(self, edit=_signed(self.edit, author, intent))


def _signed(edit: Edit, author: str, intent: str) -> Edit:
    return replace(edit, author=author, intent=intent) if isinstance(edit, Add) else edit


def shown(text: str, width: int = 40) -> str:
    """A piece of the text for a refusal, quoted and cut."""
    return f"`{text}`" if len(text) <= width else f"`{text[: width - 1]}…`"
