"""An edit from the command line: words to a command, the command into the store, and what it did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ddconsole.cli.common import author
from ddconsole.cli.queue_view import print_items
from ddconsole.cli.report import clean, print_json, tell
from ddconsole.core.documents import added_document
from ddconsole.core.errors import DdconsoleError, DuplicateError, RefusedError, SpecError
from ddconsole.core.queue import Add, Batch, Refusal, apply
from ddconsole.core.spec import SpecContext, SpecRefusal, duplicates, parse
from ddconsole.runner.outlook import Outlook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore
    from ddconsole.core.queue import Edit, Queue
    from ddconsole.core.spec import Command


class Editing:
    """One verb with its specs, from reading to telling."""

    def __init__(self, loaded: LoadedProfile, store: SqliteStore, verb: str, *, again: bool = False) -> None:
        self._loaded = loaded
        self._store = store
        self._verb = verb
        self._again = again
        self._view = Outlook(loaded.name, loaded.profile, store.phase_history(loaded.name))

    def run(self, specs: Sequence[Sequence[str] | str], *, as_json: bool) -> int:
        """Apply all specs as one edit, or none of them. Returns the exit code."""
        before = self._store.queue(self._loaded.name)
        try:
            commands = self._read(specs, before)
            after = self._apply(commands, before)
        except (SpecError, DuplicateError, RefusedError) as error:
            return self._refused(error, before, as_json=as_json)
        self._tell(commands, before, after, as_json=as_json)
        return 0

    def _read(self, specs: Sequence[Sequence[str] | str], queue: Queue) -> list[Command]:
        """Each spec read against the queue as those before it leave it."""
        commands: list[Command] = []
        for number, spec in enumerate(specs, start=1):
            command = self._command(spec, queue, f"line {number}: " if len(specs) > 1 else "")
            commands.append(command)
            after = apply(queue, command.edit, now=datetime.now(UTC))
            if isinstance(after, Refusal):
                raise RefusedError(after.reason)
            queue = after
        return commands

    def _command(self, spec: Sequence[str] | str, queue: Queue, where: str) -> Command:
        found = parse(spec, SpecContext.of(self._loaded.profile, queue), verb=self._verb)
        if isinstance(found, SpecRefusal):
            typed = spec if isinstance(spec, str) else " ".join(spec)
            error = found.to_error(clean(typed))
            raise SpecError(where + error.what, column=error.column, text=clean(typed), advice=error.advice)
        if not self._again:
            self._refuse_double(found, queue)
        return found.signed(author())

    def _refuse_double(self, command: Command, queue: Queue) -> None:
        """Work that is there already is pointed out, not silently added."""
        found = duplicates(command.drafts, queue, (), self._view.effective, self._view.workload)
        doubles = [double for double in found if double is not None]
        if doubles:
            names = ", ".join(f"{double.id} ({double.state})" for double in doubles)
            what = f"the same work is there already: {names}; nothing was added"
            raise DuplicateError(what, of=doubles[0].id, advice="--again adds it all the same")

    def _apply(self, commands: Sequence[Command], before: Queue) -> Queue:
        edits: tuple[Edit, ...] = tuple(command.edit for command in commands)
        if not edits:
            raise RefusedError("no spec was given", advice="one spec a line; lines that begin with # are passed over")
        edit = edits[0] if len(edits) == 1 else Batch(edits)
        return self._store.edit(self._loaded.name, edit, seen=before.revision)

    def _refused(self, error: DdconsoleError, queue: Queue, *, as_json: bool) -> int:
        if as_json:
            of = error.of if isinstance(error, DuplicateError) else None
            print_json(added_document(self._loaded.name, queue.revision, (), duplicate_of=of, error=error))
            return error.exit_code
        return tell(error, as_json=False)

    def _tell(self, commands: Sequence[Command], before: Queue, after: Queue, *, as_json: bool) -> None:
        touched = [item for item in after.items if item.revision == after.revision]
        items = self._view.items(after, touched)
        new = {item.id for item in touched} - {item.id for item in before.items}
        adds = all(isinstance(command.edit, Add) for command in commands)
        if as_json:
            added = [item for item in items if adds and item["id"] in new]
            document = added_document(self._loaded.name, after.revision, added, notice=after.notice)
            print_json(document | {"changed": [item for item in items if item not in added]})
            return
        print_items(items)
        for line in self._lines(commands, after):
            click.echo(clean(line), err=True)

    def _lines(self, commands: Sequence[Command], after: Queue) -> list[str]:
        """What is said besides the items: how values came about, what `after` means, what undo did."""
        lines = [note for command in commands for planned in command.preview for note in planned.notes]
        lines += [note for command in commands for note in command.notes]
        if after.notice:
            lines.append(after.notice)
        if self._verb in ("pause", "start"):
            lines.append("the queue is paused" if after.paused else "the queue goes on")
        return list(dict.fromkeys(lines))
