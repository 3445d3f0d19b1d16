"""What goes up from screens to the app: intents, and the replies that come back. Small values, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual.message import Message

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from ddconsole.core.queue import Edit, Refusal
    from ddconsole.core.spec import SpecRefusal
    from ddconsole.runner.intents import OrderPlan, Plan, SheetPlan


@dataclass
class Intent(Message):
    """Something that the user wants done; `reply_to` gets Accepted or Refused."""

    reply_to: MessagePump


@dataclass
class EditQueue(Intent):
    """Apply an edit to the queue; `seen` is the revision that the user looked at."""

    edit: Edit
    seen: int | None = None


@dataclass
class PlanCommand(Intent):
    """Say what one line of the queue's language would come to; the answer is Foreseen."""

    text: str


Wish = Literal["ask", "again", "new", "control"]
"""What becomes of work that is there already: ask, take it all the same, leave it out. `control` takes the line with
the control that it lacks."""


@dataclass
class RunCommand(Intent):
    """Do what one line of the queue's language says. `token` names one intention: it is taken once."""

    text: str
    seen: int | None = None
    wish: Wish = "ask"
    token: str = ""


@dataclass
class TakeForm(Intent):
    """Apply the edit of a form; `line` is the same in the queue's language, to look for doubles with."""

    edit: Edit
    line: str
    seen: int | None = None
    wish: Wish = "ask"


@dataclass
class WriteSheet(Intent):
    """Write these experiments out for an editor, or all that wait; the answer is SheetWritten."""

    ids: tuple[str, ...]


@dataclass
class TakeSheet(Intent):
    """Take a text that came back from an editor. `without` are experiments to leave alone."""

    raw: bytes
    without: frozenset[str] = frozenset()
    wish: Wish = "ask"


@dataclass
class PlanOrders(Intent):
    """Say which orders there could be; the answer is OrdersFound."""


@dataclass
class StartQueue(Intent):
    """Begin to work on the queue, or go on with it."""


@dataclass
class PauseQueue(Intent):
    """Start nothing new."""


@dataclass
class CancelRunning(Intent):
    """Stop the running experiment."""


@dataclass
class LeaveConsole(Intent):
    """End the console; a running engine stays or is stopped."""

    keep_engine: bool


@dataclass
class Accepted(Message):
    """An intent is done and on disk.

    `notice` is what the queue has to say about it, if anything; `ids` are waiting experiments that it has touched, and
    `revision` is the queue's behind it.
    """

    intent: Intent
    notice: str = ""
    ids: tuple[str, ...] = ()
    revision: int | None = None


@dataclass
class Refused(Message):
    """An intent was refused. `column` counts from 1 in the command's text as typed; `advice` says what to do
    instead; `idea` has the words of a line that is no spec but may be kept; `code` is the word of the queue's rule."""

    intent: Intent
    what: str
    advice: str = ""
    column: int | None = None
    idea: str | None = None
    code: str = ""


@dataclass
class Foreseen(Message):
    """What a line would come to."""

    intent: PlanCommand
    found: Plan | SpecRefusal | Refusal


@dataclass
class Doubled(Message):
    """It was not done: the same work is there already, wholly or in part."""

    intent: RunCommand | TakeForm | TakeSheet
    plan: Plan


@dataclass
class SheetWritten(Message):
    """Experiments as a text for an editor."""

    intent: WriteSheet
    text: str


@dataclass
class SheetOvertaken(Message):
    """It was not done: some of its experiments have started, ended or been changed; the rest could be taken."""

    intent: TakeSheet
    found: SheetPlan


@dataclass
class OrdersFound(Message):
    """Orders that could be accepted."""

    intent: PlanOrders
    orders: tuple[OrderPlan, ...]


Answer: TypeAlias = Accepted | Refused | Foreseen | Doubled | SheetWritten | SheetOvertaken | OrdersFound


@dataclass
class PasteCut(Message):
    """A paste of several lines went into a field of one line; `dropped` lines were left out."""

    dropped: int

    @property
    def words(self) -> str:
        """What to say about it."""
        return "1 more line was left out" if self.dropped == 1 else f"{self.dropped} more lines were left out"
