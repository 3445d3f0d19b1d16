"""The rule for new experiments: ids that are never given twice, and places."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.experiment import Experiment, Held, Idea, Queued, Removed, State
from ddconsole.core.queue.ruling import Ruling, ids_of, is_waiting, not_editable, unknown
from ddconsole.core.queue.values import Add, Draft, Place, Queue, Refusal
from ddconsole.core.queue.view import by_id, members

if TYPE_CHECKING:
    from datetime import datetime


def add(queue: Queue, edit: Add, now: datetime) -> Ruling | Refusal:
    """Give the drafts ids and places."""
    against = _against(queue, edit)
    if against is not None:
        return against
    index = _index(queue, edit.place)
    if isinstance(index, Refusal):
        return index
    sweep = f"S{queue.next_sweep}" if edit.as_sweep else None
    new = tuple(
        _experiment(draft, edit, f"E{number}", sweep, now)
        for number, draft in enumerate(edit.drafts, start=queue.next_experiment)
    )
    grown = replace(
        queue,
        items=queue.items[:index] + new + queue.items[index:],
        next_experiment=queue.next_experiment + len(new),
        next_sweep=queue.next_sweep + (1 if sweep else 0),
    )
    verb = "idea" if all(draft.config is None for draft in edit.drafts) else edit.origin.verb
    return Ruling(grown, ids_of(new), f"{verb} {_span(new, sweep)}")


def _against(queue: Queue, edit: Add) -> Refusal | None:
    if not edit.drafts:
        return Refusal("there is nothing to add", "empty")
    if any(draft.config is None and not draft.note.strip() for draft in edit.drafts):
        return Refusal('an idea needs words: `idea "…"`', "empty")
    again = ids_of(item for item in queue.items if edit.intent and item.intent == edit.intent)
    if again:
        return Refusal(f"this was taken already, as {', '.join(again)}", "repeated", again)
    if edit.at is not None and edit.at != queue.revision:
        return Refusal(f"the queue has changed since you looked (revision {edit.at}, now {queue.revision})", "stale")
    for required in {draft.requires for draft in edit.drafts if draft.requires}:
        gone = _gone(queue, required)
        if gone is not None:
            return gone
    return None


def _gone(queue: Queue, id_: str) -> Refusal | None:
    """Refuse to be placed behind, or to wait for, what is not there."""
    item = by_id(queue, id_)
    if item is None:
        return None if members(queue, id_) else unknown(queue, id_)
    return not_editable(item) if isinstance(item.state, Removed) else None


def _index(queue: Queue, place: Place) -> int | Refusal:
    """Where in `items` the new ones go."""
    front = sum(not is_waiting(item) for item in queue.items)
    if place.where == "front":
        return front
    if place.where == "end" or place.anchor is None:
        return len(queue.items)
    gone = _gone(queue, place.anchor)
    if gone is not None:
        return gone
    named = {place.anchor} | set(ids_of(members(queue, place.anchor)))
    last = max((index for index, item in enumerate(queue.items) if item.id in named), default=-1)
    index = max(last + 1, front)
    while place.where == "after" and index < len(queue.items) and queue.items[index].origin.after == place.anchor:
        index += 1
    return index


def _experiment(draft: Draft, edit: Add, id_: str, sweep: str | None, now: datetime) -> Experiment:
    state: State = Idea() if draft.config is None else Held() if draft.held else Queued()
    return Experiment(
        id=id_,
        config=draft.config,
        state=state,
        created_at=now,
        suite=draft.suite,
        passes=draft.passes,
        repeats=draft.repeats,
        sweep=sweep,
        origin=edit.origin,
        note=draft.note,
        author=edit.author,
        requires=draft.requires,
        base_best=draft.base_best,
        pinned=draft.pinned,
        intent=edit.intent,
    )


def _span(new: tuple[Experiment, ...], sweep: str | None) -> str:
    ids = new[0].id if len(new) == 1 else f"{new[0].id}–{new[-1].id}"
    return f"{sweep} ({ids})" if sweep else ids
