"""The rules for the runner: an experiment begins and ends. Neither can be undone."""

from __future__ import annotations

from dataclasses import replace

from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Cancelled, Done, Experiment, Failed, Outcome, Queued, Running, State
from ddconsole.core.queue.history import forget
from ddconsole.core.queue.ruling import Ruling, is_idea, is_waiting, not_editable, unknown, with_items
from ddconsole.core.queue.values import Begin, Cancel, End, Queue, Refusal
from ddconsole.core.queue.view import blocked, by_id, running


def begin(queue: Queue, edit: Begin) -> Ruling | Refusal:
    """Queued becomes running, one at a time; it drops out of the history."""
    item = by_id(queue, edit.id)
    if item is None:
        return unknown(queue, edit.id)
    against = _not_startable(queue, item)
    if against is not None:
        return against
    place = queue.items.index(item)
    before = tuple(each.id for each in reversed(queue.items[:place]))
    started = replace(item, state=Running(edit.attempt, edit.at), config=edit.config or item.config)
    history = forget(queue.history, item.id, before)
    queue = replace(queue, items=with_items(queue, (started,)), history=history)
    return Ruling(queue, (item.id,), f"begin {item.id}")


def cancel(queue: Queue, edit: Cancel) -> Ruling | Refusal:
    """The running experiment is marked; asking twice is asking once."""
    item = by_id(queue, edit.id)
    if item is None:
        return unknown(queue, edit.id)
    if not isinstance(item.state, Running):
        reason = f"{edit.id} is not running ({item.state.name}): remove takes a waiting one out"
        return Refusal(reason, "not-running", (edit.id,))
    marked = replace(item, state=replace(item.state, cancelling=True))
    return Ruling(replace(queue, items=with_items(queue, (marked,))), (item.id,), f"cancel {item.id}")


def end(queue: Queue, edit: End) -> Ruling | Refusal:
    """Running becomes done, failed or cancelled; interrupted waits again, ahead of all."""
    item = by_id(queue, edit.id)
    if item is None:
        return unknown(queue, edit.id)
    if not isinstance(item.state, Running) or item.state.attempt != edit.attempt:
        reason = f"attempt {edit.attempt} of {item.id} is not running ({item.state.name})"
        return Refusal(reason, "not-running", (item.id,))
    ended = replace(item, state=_ended(edit))
    others = tuple(each for each in queue.items if each.id != item.id)
    settled = sum(not is_waiting(each) for each in others)
    items = (*others[:settled], ended, *others[settled:])
    return Ruling(replace(queue, items=items), (item.id,), f"end {item.id}")


def _not_startable(queue: Queue, item: Experiment) -> Refusal | None:
    if not is_waiting(item):
        return not_editable(item)
    if item.config is None:
        return is_idea(item)
    if not isinstance(item.state, Queued):
        return Refusal(f"{item.id} is {item.state.name}: release it first", "not-queued", (item.id,))
    busy = running(queue)
    if busy is not None:
        return Refusal(f"{busy.id} is running, and one runs at a time", "busy", (busy.id,))
    waits = blocked(queue, item)
    return None if waits is None else Refusal(f"{item.id} cannot start: {waits}", "blocked", (item.id,))


def _ended(edit: End) -> State:
    if edit.outcome is Outcome.INTERRUPTED:
        return Queued()
    if edit.outcome is Outcome.CANCELLED:
        return Cancelled(edit.attempt)
    if edit.outcome is Outcome.FAILED:
        nameless = Failure(cause="unknown", what="the attempt failed and no cause was recorded")
        return Failed(edit.attempt, edit.failure or nameless)
    return Done(edit.attempt, edit.outcome)
