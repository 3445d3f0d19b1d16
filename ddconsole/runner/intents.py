"""What a screen may ask for. The controller fulfils it, in this process or through the store for another's run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.order import Proposal
    from ddconsole.core.queue import Edit, Queue, Refusal
    from ddconsole.core.spec import SpecRefusal
    from ddconsole.runner.feed import Feed
    from ddconsole.runner.preview import Preview


@dataclass(frozen=True, slots=True)
class Plan:
    """What a line of the queue's language would come to, before it is taken.

    Attributes:
        preview: the command with what it does, its price, doubles and missing control.
        items: `preview.items` as they would stand in the queue's document, in the same order.
        revision: the queue's, at which this was looked up.
        undoes: for `undo` and `redo` the step that is meant, `hold E3`; else empty.
    """

    preview: Preview
    items: tuple[dict[str, Any], ...]
    revision: int
    undoes: str = ""


@dataclass(frozen=True, slots=True)
class SheetPlan:
    """What a text that came back from an editor would come to.

    Attributes:
        plan: of everything that can still be taken; None when nothing of it differs from what stands.
        overtaken: why an experiment cannot be taken any more, by id; `plan` leaves it alone.
        seen: the queue's revision that the text was written from.
    """

    plan: Plan | None
    overtaken: Mapping[str, str]
    seen: int


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """An order that could be accepted.

    Attributes:
        items: the queued experiments in that order, as in the queue's document.
        saved_s: seconds that it saves; below zero when it costs some.
        revision: the queue's, at which it was made.
    """

    proposal: Proposal
    items: tuple[dict[str, Any], ...]
    saved_s: float
    revision: int


class Controller(Protocol):
    """The only door from a screen to the work. Every method returns when its effect is on disk or done.

    Raises, all of them: RefusedError with the reason, StoreError when nothing could be written.
    """

    @property
    def feed(self) -> Feed:
        """What happens, to look at."""
        ...

    @property
    def profile_name(self) -> str:
        """Name of the profile that this is about."""
        ...

    @property
    def owns_run(self) -> bool:
        """This process works on the queue; False when another one does, or nobody."""
        ...

    @property
    def autostart(self) -> bool:
        """The profile asks to start the queue when the screen opens."""
        ...

    async def parse(self, text: str) -> Edit:
        """One line of the queue's language as an edit.

        Raises:
            SpecError: it cannot be read; with the column.
        """
        ...

    async def plan(self, text: str) -> Plan | SpecRefusal | Refusal:
        """What one line of the queue's language would come to; nothing is changed.

        What cannot be read, or is not allowed now, is a value: it is shown while somebody types.
        """
        ...

    async def write_sheet(self, ids: tuple[str, ...]) -> str:
        """Waiting experiments as a text for an editor."""
        ...

    async def plan_sheet(self, raw: bytes, without: frozenset[str] = frozenset()) -> SheetPlan:
        """What such a text comes to when it has been edited; `without` are experiments to leave alone.

        Raises:
            UsageError: it cannot be read; with line and column.
        """
        ...

    async def plan_orders(self) -> tuple[OrderPlan, ...]:
        """Other orders for those that are queued, each with what it saves; nothing is changed."""
        ...

    async def edit(self, edit: Edit, *, seen: int | None = None) -> Queue:
        """Apply an edit to the queue. `seen` is the revision that the user looked at."""
        ...

    async def start(self) -> None:
        """Begin to work on the queue, or go on with it."""
        ...

    async def pause(self) -> None:
        """Start nothing new; what runs goes on."""
        ...

    async def cancel(self) -> None:
        """Stop the running experiment; it is recorded as cancelled."""
        ...

    async def close(self, *, keep_engine: bool) -> None:
        """End the run of this process: the running experiment is interrupted and goes back to the front.

        `keep_engine` leaves a running engine alone; otherwise it is stopped, with proof.
        """
        ...
