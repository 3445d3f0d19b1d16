"""An edit from the command line: words to commands, what they would do, and into the store as one edit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ddconsole.cli.common import author
from ddconsole.cli.queue_answer import Answer
from ddconsole.cli.report import clean
from ddconsole.core.errors import DuplicateError, RefusedError, SpecError, UsageError
from ddconsole.core.queue import Add, Batch, Refusal
from ddconsole.core.spec import SpecContext, SpecRefusal, parse
from ddconsole.runner.outlook import Outlook
from ddconsole.runner.preview import Known, Preview, preview

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.queue import Edit, Queue
    from ddconsole.core.spec import Command


LOOKS = 20
"""How often new work is looked for again when others edit at the same moment; then it is added at any revision."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an edit is to be taken.

    Attributes:
        again: also work that is there already.
        new_only: of the work only what is not there already.
        with_control: put the control in front that a tree lacks.
        dry_run: show what it would do, and change nothing.
        intent: names one intention, which is taken once however often it is sent.
    """

    again: bool = False
    new_only: bool = False
    with_control: bool = False
    dry_run: bool = False
    intent: str = ""


class Editing:
    """One verb with its specs, from reading to telling."""

    def __init__(self, loaded: LoadedProfile, store: SqliteStore, verb: str, wishes: Wishes) -> None:
        from ddconsole.adapters.siblings import siblings

        self._loaded = loaded
        self._store = store
        self._verb = verb
        self._wishes = wishes
        self._view = Outlook(loaded.name, loaded.profile, store.phase_history(loaded.name))
        self._known = Known.of(store, loaded.name, siblings(loaded, store))

    def run(self, specs: Sequence[Sequence[str] | str], *, as_json: bool) -> int:
        """Apply all specs as one edit, or none of them. Returns the exit code."""

        def foresee(queue: Queue, previews: list[Preview]) -> int:
            self._foresee(specs, queue, previews)
            return queue.revision

        return self._answered(foresee, as_json=as_json)

    def take(self, read: Callable[[Queue], tuple[Command | None, int]], *, as_json: bool) -> int:
        """Apply the command that `read` makes, by an author who saw the revision beside it. Returns the exit code."""

        def foresee(queue: Queue, previews: list[Preview]) -> int:
            command, seen = read(queue)
            if command is not None:
                previews.append(self._preview(command, queue))
                self._refuse_doubles(previews[-1], "")
            return seen

        return self._answered(foresee, as_json=as_json)

    def _answered(self, foresee: Callable[[Queue, list[Preview]], int], *, as_json: bool) -> int:
        """`foresee` fills in what is to be applied, and gives the revision that its author saw."""
        for last in (*[False] * LOOKS, True):
            before = self._store.queue(self._loaded.name)
            answer = Answer(self._loaded.name, self._view, before, as_json=as_json, dry_run=self._wishes.dry_run)
            previews: list[Preview] = []
            try:
                if self._taken(before):
                    break
                seen = foresee(before, previews)
                after = self._apply(previews, seen, strictly=not last) if previews else before
            except (UsageError, DuplicateError, RefusedError) as error:
                if last or not self._looked_in_vain(previews, before):
                    return answer.refused(error, previews)
            else:
                return answer.done(previews, after, self._verb)
        return answer.taken_before(self._taken(before))

    def _looked_in_vain(self, previews: Sequence[Preview], before: Queue) -> bool:
        """New work was refused because another process has edited meanwhile: look again, for it may be there now."""
        adds = bool(previews) and all(isinstance(seen.command.edit, Add) for seen in previews)
        return adds and self._store.queue(self._loaded.name).revision != before.revision

    def _foresee(self, specs: Sequence[Sequence[str] | str], queue: Queue, previews: list[Preview]) -> None:
        """Read each spec against the queue as those before it leave it."""
        if not specs:
            raise RefusedError("no spec was given", advice="one spec a line; lines that begin with # are passed over")
        for number, spec in enumerate(specs, start=1):
            where = f"line {number}: " if len(specs) > 1 else ""
            for seen in self._with_control(self._read(spec, queue, where), queue):
                previews.append(seen)
                queue = seen.after
                self._refuse_doubles(seen, where)

    def _read(self, spec: Sequence[str] | str, queue: Queue, where: str) -> Preview:
        found = parse(spec, SpecContext.of(self._loaded.profile, queue), verb=self._verb)
        if isinstance(found, SpecRefusal):
            typed = spec if isinstance(spec, str) else " ".join(spec)
            error = found.to_error(clean(typed))
            raise SpecError(where + error.what, column=error.column, text=clean(typed), advice=error.advice)
        seen = self._preview(found, queue)
        fewer = seen.without_doubles() if self._wishes.new_only and any(seen.doubles) else None
        return seen if fewer is None else self._preview(fewer, queue)

    def _with_control(self, seen: Preview, queue: Queue) -> list[Preview]:
        """The preview, behind that of its control where that is missing and wanted."""
        if seen.control is None or not self._wishes.with_control:
            return [seen]
        found = parse(seen.control.spec, SpecContext.of(self._loaded.profile, queue))
        assert not isinstance(found, SpecRefusal), found
        control = self._preview(found, queue)
        return [control, self._preview(seen.command, control.after)]

    def _preview(self, command: Command, queue: Queue) -> Preview:
        seen = preview(command, queue, self._loaded.profile, self._view, self._known, datetime.now(UTC))
        if isinstance(seen, Refusal):
            raise RefusedError(seen.reason)
        return seen

    def _refuse_doubles(self, seen: Preview, where: str) -> None:
        """Work that is there already is pointed out, not silently added."""
        doubles = [double for double in seen.doubles if double is not None]
        if self._wishes.again or not doubles or not seen.command.drafts:
            return
        names = ", ".join(f"{double.id} ({double.state})" for double in doubles)
        what = f"{where}the same work is there already: {names}; nothing was added"
        advice = "--again adds it all the same"
        if len(doubles) < len(seen.doubles):
            count = len(seen.new)
            advice += f"; --new adds the {count} that {'is' if count == 1 else 'are'} not there"
        raise DuplicateError(what, of=doubles[0].id, advice=advice)

    def _apply(self, previews: Sequence[Preview], seen: int, *, strictly: bool) -> Queue:
        """`strictly`: new work only at the revision in which it was looked for, so that it is not added twice."""
        if self._wishes.dry_run:
            return previews[-1].after
        at = seen if strictly and not self._wishes.again else None
        edits = tuple(self._signed(each.command, number, at) for number, each in enumerate(previews, start=1))
        return self._store.edit(self._loaded.name, one_edit(edits), seen=seen)

    def _signed(self, command: Command, number: int, at: int | None) -> Edit:
        """In the caller's name; each Add of one intention is told from the others by its number."""
        edit = command.signed(author(), self._wishes.intent and f"{self._wishes.intent}#{number}").edit
        return replace(edit, at=at) if isinstance(edit, Add) else edit

    def _taken(self, queue: Queue) -> tuple[Experiment, ...]:
        """What an earlier sending of the same intention has queued."""
        prefix = f"{self._wishes.intent}#"
        return tuple(
            item for item in queue.items if self._wishes.intent and item.intent.rpartition("#")[0] + "#" == prefix
        )


def one_edit(edits: tuple[Edit, ...]) -> Edit:
    """Several edits as one step of the history."""
    return edits[0] if len(edits) == 1 else Batch(edits)
