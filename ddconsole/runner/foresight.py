"""What would come of a line, of an edited sheet, of another order: looked up in the store, and nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ddconsole.core.exchange import leaving_out, overtaken, sheet_of
from ddconsole.core.order import WAYS, startable
from ddconsole.core.queue import Refusal, apply
from ddconsole.core.spec import SpecContext, SpecRefusal
from ddconsole.core.spec import parse as parse_spec
from ddconsole.runner.intents import OrderPlan, Plan, SheetPlan
from ddconsole.runner.ordering import proposal_for, saved_s
from ddconsole.runner.outlook import Outlook
from ddconsole.runner.preview import Known, preview

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import TypeAlias

    from ddconsole.core.exchange import Sheet
    from ddconsole.core.order import By
    from ddconsole.core.ports import Store
    from ddconsole.core.profile import Profile
    from ddconsole.core.queue import Queue
    from ddconsole.core.spec import Command
    from ddconsole.runner.bench import Bench

    Siblings: TypeAlias = Callable[[Store], Iterable[tuple[str, Profile]]]

SHEET = "queue.yaml"
"""How the refusals call a sheet that an editor has changed."""


class QueueFile(Protocol):
    """Writes sheets as text and reads them back; `adapters.queue_file` is one."""

    def write(self, profile: str, sheet: Sheet) -> str:
        """The document of a sheet."""
        ...

    def read_sheet(self, raw: bytes, name: str, profile: str) -> Sheet:
        """What a document says.

        Raises:
            UsageError: it cannot be read; with name, line and column.
        """
        ...

    def read_command(
        self, raw: bytes, name: str, profile: str, context: SpecContext, *, without: Collection[str] = ()
    ) -> tuple[Command | None, int]:
        """The command that it comes to, and the revision that its author saw; None when it changes nothing.

        Raises:
            UsageError: it cannot be read; with name, line and column.
            RefusedError: it is of an experiment that does not wait.
        """
        ...


def foresee(bench: Bench, store: Store, text: str, siblings: Siblings) -> Plan | SpecRefusal | Refusal:
    """What a line would come to at the queue as it stands in `store`. `siblings` are profiles whose work counts too."""
    queue = store.queue(bench.name)
    command = parse_spec(text, SpecContext.of(bench.profile, queue))
    return command if isinstance(command, SpecRefusal) else _planned(bench, store, queue, command, siblings)


def _planned(bench: Bench, store: Store, queue: Queue, command: Command, siblings: Siblings) -> Plan | Refusal:
    outlook = Outlook(bench.name, bench.profile, store.phase_history(bench.name))
    known = Known.of(store, bench.name, siblings(store))
    seen = preview(command, queue, bench.profile, outlook, known, bench.clock.now())
    if isinstance(seen, Refusal):
        return seen
    steps = {"undo": queue.history.undo, "redo": queue.history.redo}.get(command.verb, ())
    items = tuple(outlook.items(seen.after, seen.items))
    return Plan(seen, items, queue.revision, undoes=steps[-1].text if steps else "")


def written_out(bench: Bench, store: Store, files: QueueFile, ids: tuple[str, ...]) -> str | Refusal:
    """Experiments that wait, as a text for an editor."""
    queue = store.queue(bench.name)
    sheet = sheet_of(queue, ids, SpecContext.of(bench.profile, queue))
    return sheet if isinstance(sheet, Refusal) else files.write(bench.name, sheet)


def look_through(
    bench: Bench, store: Store, files: QueueFile, raw: bytes, without: frozenset[str], siblings: Siblings
) -> SheetPlan | Refusal:
    """What an edited text would come to, all of it read before anything is changed.

    Raises:
        UsageError: it cannot be read; with line and column.
        RefusedError: it is of an experiment that does not wait, and that the text did not have at first.
    """
    queue = store.queue(bench.name)
    sheet = leaving_out(files.read_sheet(raw, SHEET, bench.name), without)
    late = overtaken(sheet, queue)
    context = SpecContext.of(bench.profile, queue)
    command, seen = files.read_command(raw, SHEET, bench.name, context, without=without | late.keys())
    found = None if command is None else _planned(bench, store, queue, command, siblings)
    return found if isinstance(found, Refusal) else SheetPlan(found, late, seen)


def orders(bench: Bench, store: Store) -> tuple[OrderPlan, ...]:
    """The proposals there are, each with what it saves."""
    queue = store.queue(bench.name)
    outlook = Outlook(bench.name, bench.profile, store.phase_history(bench.name))
    return tuple(_order(bench, store, queue, outlook, by) for by in WAYS)


def _order(bench: Bench, store: Store, queue: Queue, outlook: Outlook, by: By) -> OrderPlan:
    proposal = proposal_for(bench.name, store, queue, by, outlook)
    then = queue if proposal.edit is None else apply(queue, proposal.edit, now=bench.clock.now())
    then = queue if isinstance(then, Refusal) else then
    items = tuple(outlook.items(then, startable(then)))
    return OrderPlan(proposal, items, saved_s(proposal, outlook), queue.revision)
