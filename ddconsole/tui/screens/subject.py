"""What a form is about, and what it can look up on the screen that opened it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ddconsole.tui import form
from ddconsole.tui.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.tui.facts import ProfileFacts
    from ddconsole.tui.messages import Accepted


class Desk(Protocol):
    """What a dialog may ask of the screen below it."""

    def describe(self, id_: str) -> str:
        """What is known of an experiment that is there already, `139.0 tok/s, τ 4.61`."""
        ...

    def revision(self) -> int | None:
        """The queue's revision that is on the screen."""
        ...

    def item(self, id_: str) -> Mapping[str, Any]:
        """An experiment as it stands in the queue's document; empty when it is gone."""
        ...

    def taken(self, answer: Accepted) -> None:
        """Say what was done, and go to it."""
        ...


@dataclass(frozen=True, slots=True)
class Subject:
    """A new experiment, a copy of one, or one that waits.

    Attributes:
        typed: the values to begin with.
        edited: id of the one that is changed; None for a new one.
        source: id of the one that a new one is made after, or None.
    """

    title: str
    typed: form.Typed
    edited: str | None = None
    source: str | None = None

    @classmethod
    def new(cls, profile: ProfileFacts) -> Subject:
        """A new experiment, from the profile's defaults."""
        return cls("ADD AN EXPERIMENT", form.defaults(profile.knobs, profile.passes, profile.repeats))

    @classmethod
    def copy(cls, profile: ProfileFacts, item: Mapping[str, Any]) -> Subject:
        """A new experiment, from another one's values."""
        name = clean(item.get("id"))
        return cls(f"ADD A COPY OF {name}", form.of_item(item, profile.knobs, profile.passes), source=name)

    @classmethod
    def edit(cls, profile: ProfileFacts, item: Mapping[str, Any]) -> Subject:
        """A waiting experiment's values."""
        name = clean(item.get("id"))
        typed = form.of_item(item, profile.knobs, profile.passes)
        return cls(f"EDIT {name}", typed, edited=name, source=name)
