"""`ddconsole queue PROFILE order`: a proposal, what it saves, and taking it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import author
from ddconsole.cli.queue_view import print_items
from ddconsole.cli.report import print_json
from ddconsole.cli.table import duration
from ddconsole.core.anchor import EVERY
from ddconsole.core.documents import head
from ddconsole.core.errors import RefusedError
from ddconsole.core.order import startable
from ddconsole.core.queue import Refusal, apply
from ddconsole.runner.ordering import proposal_for, saved_s
from ddconsole.runner.outlook import Outlook

if TYPE_CHECKING:
    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore
    from ddconsole.core.order import By, Proposal
    from ddconsole.core.queue import Queue


class Ordering:
    """One proposal for one queue."""

    def __init__(self, loaded: LoadedProfile, store: SqliteStore, by: By, every: int = EVERY) -> None:
        self._name = loaded.name
        self._store = store
        self._view = Outlook(loaded.name, loaded.profile, store.phase_history(loaded.name))
        self._by = by
        self._every = every

    def run(self, *, accept: bool, seen: int | None, as_json: bool) -> None:
        """Show the order; with `accept` apply it as well.

        Raises:
            RefusedError: what it would move has changed since revision `seen`, or there is nothing to accept.
        """
        queue = self._store.queue(self._name)
        revision = queue.revision
        proposal = proposal_for(
            self._name, self._store, queue, self._by, self._view, every=self._every, author=author()
        )
        if accept:
            edit = (proposal if seen is None else replace(proposal, at=seen)).edit
            if edit is None:
                raise RefusedError(proposal.none or "the queue is in this order already")
            queue = self._store.edit(self._name, edit, seen=revision if seen is None else seen)
        elif proposal.edit is not None and not as_json:
            shown = apply(queue, proposal.edit, now=datetime.now(UTC))
            queue = queue if isinstance(shown, Refusal) else shown
        if as_json:
            print_json(head(self._name, queue.revision) | self._document(proposal, revision, accepted=accept))
        else:
            self._show(proposal, queue, revision, accepted=accept)

    def _document(self, proposal: Proposal, revision: int, *, accepted: bool) -> dict[str, Any]:
        return {
            "by": proposal.by,
            "accepted": accepted,
            "before": list(proposal.before),
            "order": list(proposal.ids),
            "why": dict(proposal.why),
            "boots_before": proposal.boots_before,
            "boots_after": proposal.boots_after,
            "saves_s": round(saved_s(proposal, self._view), 1),
            "adds": [id_ for id_ in proposal.ids if id_ not in proposal.before],
            "none": proposal.none or None,
            "accept": None if accepted or proposal.edit is None else self._command(proposal, revision),
        }

    def _command(self, proposal: Proposal, revision: int) -> str:
        every = f" --every {self._every}" if proposal.by == "drift" and self._every != EVERY else ""
        return f"ddconsole queue {self._name} order --by {proposal.by}{every} --accept --seen {revision}"

    def _show(self, proposal: Proposal, queue: Queue, revision: int, *, accepted: bool) -> None:
        if proposal.edit is None:
            click.echo(proposal.none or f"the queue is in the best order that is known for {proposal.by}")
            return
        items = self._view.items(queue, startable(queue))
        print_items([item | {"note": proposal.why.get(item["id"], item["note"])} for item in items])
        click.echo(self._saving(proposal), err=True)
        if not accepted:
            click.echo(f"  → `{self._command(proposal, revision)}` takes it; nothing was changed", err=True)

    def _saving(self, proposal: Proposal) -> str:
        added = len(proposal.drafts)
        new = f"{added} short {'repeat' if added == 1 else 'repeats'} of the anchor, " if added else ""
        counts = f"{new}{proposal.boots_before} starts of the engine become {proposal.boots_after}"
        saved = saved_s(proposal, self._view)
        if not saved:
            return f"{counts}: no time is saved or lost"
        return f"{counts}: this {'saves' if saved > 0 else 'costs'} {duration(abs(saved))}"
