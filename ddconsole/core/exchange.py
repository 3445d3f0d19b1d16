"""Waiting experiments as a sheet that an editor changes, and the one edit that a changed sheet comes to. Pure.

A sheet says what is to be: values, notes, held, order. An entry that is gone removes its experiment, an entry without
an id is new, and so is the second one of the same id, as a copy made by hand has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ddconsole.core.experiment import Experiment, Held, Origin
from ddconsole.core.queue.ruling import ids_of, is_waiting, named_waiting, not_editable, unknown
from ddconsole.core.queue.values import (
    Add,
    Arrange,
    Batch,
    Change,
    Draft,
    Edit,
    Hold,
    Place,
    Queue,
    Refusal,
    Release,
    Remove,
)
from ddconsole.core.queue.view import by_id, waiting
from ddconsole.core.spec import parse
from ddconsole.core.spec.print import print_spec
from ddconsole.core.spec.types import Command, Planned, SpecRefusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ddconsole.core.spec.context import SpecContext


@dataclass(frozen=True, slots=True)
class Entry:
    """One experiment of a sheet.

    Attributes:
        id: the experiment; None for a new one.
        spec: the words behind `add`; None for an idea.
        idea: an idea's words; beside a spec they become the note.
        note: None where the sheet has none.
        requires: shown only: what `after!` waits for.
    """

    id: str | None = None
    spec: str | None = None
    idea: str | None = None
    note: str | None = None
    held: bool = False
    requires: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """Entries in their order.

    Attributes:
        of: ids of the experiments that were written out: those missing from `entries` are to be removed.
        revision: the queue's when it was written out; None for a sheet that was never written out.
    """

    entries: tuple[Entry, ...]
    of: tuple[str, ...] = ()
    revision: int | None = None


class SheetRefused(Exception):  # noqa: N818 - a value in flight, as RefusedSpec is; the reader of the sheet tells it
    """An entry that cannot be taken.

    Attributes:
        index: its place among the entries.
        key: the key that stands against it.
        forbidden: it can be read, but the queue does not allow it now: it runs, it has ended.
    """

    def __init__(self, index: int, key: str, reason: str, advice: str = "", *, forbidden: bool = False) -> None:
        super().__init__(reason)
        self.index = index
        self.key = key
        self.reason = reason
        self.advice = advice
        self.forbidden = forbidden


def sheet_of(queue: Queue, ids: Sequence[str], context: SpecContext) -> Sheet | Refusal:
    """The named waiting experiments as a sheet, or all that wait. A sweep stands for its waiting members."""
    chosen = named_waiting(queue, ids) if ids else waiting(queue)
    if isinstance(chosen, Refusal):
        return chosen
    return Sheet(tuple(_entry(item, context) for item in chosen), ids_of(chosen), queue.revision)


def command_of(sheet: Sheet, context: SpecContext) -> Command | None:
    """The command that brings the queue to what the sheet says; None when it says what stands already.

    Raises:
        SheetRefused: an entry cannot be read, or is of an experiment that does not wait any more.
    """
    reading = _Reading(sheet, context)
    edits = reading.edits()
    if not edits:
        return None
    preview = tuple(Planned(draft) for draft in reading.new)
    return Command("import", Batch(edits), "import", preview, notes=tuple(reading.notes))


def overtaken(sheet: Sheet, queue: Queue) -> dict[str, str]:
    """Why an experiment of the sheet cannot be taken any more, by id: it started, it ended, somebody changed it."""
    named = dict.fromkeys((*sheet.of, *(entry.id for entry in sheet.entries if entry.id is not None)))
    seen = queue.revision if sheet.revision is None else sheet.revision
    found: dict[str, str] = {}
    for item in queue.items:
        if item.id not in named:
            continue
        if not is_waiting(item):
            found[item.id] = not_editable(item).reason
        elif item.revision > seen:
            found[item.id] = f"{item.id} was changed by somebody else since revision {seen}"
    return found


def leaving_out(sheet: Sheet, ids: Collection[str]) -> Sheet:
    """The sheet without anything that it says of these experiments."""
    entries = tuple(entry for entry in sheet.entries if entry.id not in ids)
    return replace(sheet, entries=entries, of=tuple(id_ for id_ in sheet.of if id_ not in ids))


def _entry(item: Experiment, context: SpecContext) -> Entry:
    if item.config is None:
        return Entry(item.id, idea=item.note)
    return Entry(
        item.id,
        spec=_printed(_draft_of(item), context),
        note=item.note or None,
        held=isinstance(item.state, Held),
        requires=item.requires,
    )


def _draft_of(item: Experiment) -> Draft:
    return Draft(
        item.config, item.suite, item.passes, item.repeats, item.note, base_best=item.base_best, pinned=item.pinned
    )


def _printed(draft: Draft, context: SpecContext) -> str:
    """The spec without its note, which stands beside it."""
    return print_spec(replace(draft, note=""), context)


class _Reading:
    """A sheet read against a queue."""

    def __init__(self, sheet: Sheet, context: SpecContext) -> None:
        self._sheet = sheet
        self._context = context
        self._queue = context.queue
        self.new: list[Draft] = []
        self.notes: list[str] = []

    def edits(self) -> tuple[Edit, ...]:
        """Removals, changes, the order, and then what is new, each group behind the one that it follows."""
        changes: list[Edit] = []
        groups: list[tuple[str | None, list[Draft]]] = []
        ids: list[str] = []
        for index, entry in enumerate(self._sheet.entries):
            if entry.id is not None and entry.id not in ids:
                changes += self._changes(index, entry, entry.id)
                ids.append(entry.id)
                continue
            if entry.id is not None:
                self.notes.append(f"{entry.id} stands here twice; the second one becomes a new experiment")
            if not groups or groups[-1][0] != (ids[-1] if ids else None):
                groups.append((ids[-1] if ids else None, []))
            groups[-1][1].append(self._draft(index, entry))
        gone = tuple(id_ for id_ in self._sheet.of if id_ not in ids)
        self._check_waiting(gone)
        removal = (Remove(gone),) if gone else ()
        adds = tuple(self._add(anchor, drafts, ids, gone) for anchor, drafts in groups)
        return (*removal, *changes, *self._order(ids), *adds)

    def _check_waiting(self, ids: Iterable[str]) -> None:
        """What was deleted from the sheet must still be there to be removed."""
        for id_ in ids:
            item = by_id(self._queue, id_)
            against = unknown(self._queue, id_) if item is None else None if is_waiting(item) else not_editable(item)
            if against is not None:
                raise SheetRefused(-1, "of", against.reason, forbidden=True)

    def _changes(self, index: int, entry: Entry, id_: str) -> list[Edit]:
        item = by_id(self._queue, id_)
        if item is None:
            raise SheetRefused(index, "id", unknown(self._queue, id_).reason, "an entry without an id is a new one")
        if not is_waiting(item):
            raise SheetRefused(index, "id", not_editable(item).reason, forbidden=True)
        edits: list[Edit] = []
        change = self._change(index, entry, item)
        if change is not None:
            edits.append(change)
        if entry.spec is not None and entry.held != isinstance(item.state, Held):
            edits.append(Hold((id_,)) if entry.held else Release((id_,)))
        return edits

    def _change(self, index: int, entry: Entry, item: Experiment) -> Change | None:
        """What differs, as a change; None when nothing does."""
        if entry.spec is None:
            if item.config is not None:
                raise SheetRefused(
                    index, "idea", f"{item.id} has a config and cannot become an idea again", "remove it"
                )
            return None if entry.idea == item.note else Change(item.id, note=entry.idea)
        draft = self._draft(index, entry)
        if entry.note is None and entry.idea is None and item.config is None:
            draft = replace(draft, note=item.note)
        old = _draft_of(item)
        same = item.config is not None and _printed(draft, self._context) == _printed(old, self._context)
        if same:
            return None if draft.note == item.note else Change(item.id, note=draft.note)
        return Change(
            item.id, draft.config, draft.suite, draft.passes, draft.repeats, draft.note, draft.base_best, draft.pinned
        )

    def _draft(self, index: int, entry: Entry) -> Draft:
        """What an entry's words make."""
        if entry.spec is None:
            if not (entry.idea or "").strip():
                raise SheetRefused(index, "spec", "an entry has a spec, or an idea", "such as `spec: b=16 B=26`")
            return Draft(None, note=entry.idea or "")
        found = parse(entry.spec, self._context, verb="add")
        if isinstance(found, SpecRefusal):
            reason = f"column {found.column} of `{entry.spec}`: {found.reason}"
            raise SheetRefused(index, "spec", reason, found.advice)
        if len(found.drafts) != 1:
            reason = f"`{entry.spec}` makes {len(found.drafts)} experiments"
            raise SheetRefused(index, "spec", reason, "an entry is one experiment; `sweep` makes several")
        words = entry.note if entry.note is not None else entry.idea
        draft = found.drafts[0]
        return replace(draft, note=draft.note if words is None else words, held=entry.held)

    def _order(self, ids: Sequence[str]) -> tuple[Arrange, ...]:
        now = tuple(item.id for item in waiting(self._queue) if item.id in set(ids))
        return () if now == tuple(ids) else (Arrange(tuple(ids)),)

    def _add(self, anchor: str | None, drafts: Sequence[Draft], ids: Sequence[str], gone: Sequence[str]) -> Add:
        self.new += drafts
        return Add(tuple(drafts), Origin("import"), self._place(anchor, ids, gone))

    def _place(self, anchor: str | None, ids: Sequence[str], gone: Sequence[str]) -> Place:
        """Right behind the entry above; above all entries, behind whoever stands before them in the queue."""
        if anchor is not None:
            return Place("behind", anchor)
        if not ids:
            return Place()
        line = [item.id for item in waiting(self._queue) if item.id not in gone]
        first = min(line.index(id_) for id_ in ids)
        return Place("behind", line[first - 1]) if first else Place("front")
