"""The rules of the queue: `apply(queue, edit)` gives a new queue or a refusal, and never raises for what a user did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from ddconsole.core.experiment import Running
from ddconsole.core.queue.add import add
from ddconsole.core.queue.change import change, extend, hold, release, remove
from ddconsole.core.queue.history import next_step, redo, remember, settle, stamp, undo
from ddconsole.core.queue.order import arrange, move, retry
from ddconsole.core.queue.ruling import Ruling
from ddconsole.core.queue.runs import begin, cancel, end
from ddconsole.core.queue.values import (
    Add,
    Arrange,
    Batch,
    Begin,
    Cancel,
    Change,
    Edit,
    End,
    Extend,
    Hold,
    Move,
    Queue,
    Redo,
    Refusal,
    Release,
    Remove,
    Retry,
    SetPaused,
    Undo,
)
from ddconsole.core.queue.view import by_id, members

if TYPE_CHECKING:
    from datetime import datetime

NOT_UNDOABLE = (Begin, Cancel, End, SetPaused)
"""Edits that make no step of the history."""


def apply(queue: Queue, edit: Edit, *, now: datetime) -> Queue | Refusal:
    """The queue after `edit`, or why not. `now` is when new experiments were created.

    Edits of several experiments are all or nothing. Each touched experiment gets the new queue's revision. What an
    edit does to the running experiment (further passes) is no part of the history.
    """
    if isinstance(edit, Undo):
        return undo(queue)
    if isinstance(edit, Redo):
        return redo(queue)
    ruling = _rule(queue, edit, now)
    if isinstance(ruling, Refusal):
        return ruling
    revision = queue.revision + 1
    items = stamp(settle(ruling.queue.items), ruling.touched, revision)
    after = replace(ruling.queue, items=items, revision=revision, notice=ruling.notice)
    running_ids = {item.id for item in items if isinstance(item.state, Running)}
    undoable = tuple(id_ for id_ in ruling.touched if id_ not in running_ids)
    if isinstance(edit, NOT_UNDOABLE) or not undoable:
        return after
    return replace(after, history=remember(queue.history, ruling.text, queue, after, undoable))


def stale(queue: Queue, edit: Edit, seen: int) -> Refusal | None:
    """Refuse an edit whose author saw revision `seen`, when an experiment that it touches has changed since.

    What others did to other experiments does not matter.
    """
    ids = touched_ids(queue, edit)
    changed = tuple(item.id for item in queue.items if item.id in ids and item.revision > seen)
    if not changed:
        return None
    names = ", ".join(changed)
    reason = (
        f"{names} {'has' if len(changed) == 1 else 'have'} changed since you looked "
        f"(revision {seen}, now {queue.revision}): look again and repeat the edit if it still holds"
    )
    return Refusal(reason, "stale", changed)


def touched_ids(queue: Queue, edit: Edit) -> frozenset[str]:
    """Ids of the experiments that are there and that `edit` would change; new ones are nobody's business."""
    match edit:
        case Add() | SetPaused():
            return frozenset()
        case Change(id=id_) | Extend(id=id_) | Retry(id=id_) | Cancel(id=id_) | Begin(id=id_) | End(id=id_):
            return _resolved(queue, (id_,))
        case Move(ids=ids) | Arrange(ids=ids) | Remove(ids=ids) | Hold(ids=ids) | Release(ids=ids):
            return _resolved(queue, ids)
        case Batch(edits=edits):
            return frozenset().union(*(touched_ids(queue, each) for each in edits))
        case Undo() | Redo():
            steps = queue.history.undo if isinstance(edit, Undo) else queue.history.redo
            step = next_step(steps)
            return frozenset() if step is None else frozenset(step.ids)
        case _:
            assert_never(edit)


def _resolved(queue: Queue, ids: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for id_ in ids:
        found |= {id_} if by_id(queue, id_) else {item.id for item in members(queue, id_)}
    return frozenset(found)


def _rule(queue: Queue, edit: Edit, now: datetime) -> Ruling | Refusal:
    """One edit by its rule."""
    match edit:
        case Add():
            return add(queue, edit, now)
        case Change():
            return change(queue, edit)
        case Extend():
            return extend(queue, edit)
        case Move():
            return move(queue, edit)
        case Arrange():
            return arrange(queue, edit)
        case Remove():
            return remove(queue, edit)
        case Hold():
            return hold(queue, edit)
        case Release():
            return release(queue, edit)
        case Retry():
            return retry(queue, edit)
        case SetPaused():
            return Ruling(replace(queue, paused=edit.paused), (), "pause" if edit.paused else "start")
        case Cancel():
            return cancel(queue, edit)
        case Begin():
            return begin(queue, edit)
        case End():
            return end(queue, edit)
        case Batch():
            return _batch(queue, edit, now)
        case Undo() | Redo():
            return Refusal("undo and redo stand alone", "empty")
        case _:
            assert_never(edit)


def _batch(queue: Queue, batch: Batch, now: datetime) -> Ruling | Refusal:
    """All of them or none."""
    touched: list[str] = []
    texts: list[str] = []
    for edit in batch.edits:
        if isinstance(edit, (*NOT_UNDOABLE, Batch)):
            return Refusal("a batch is made of edits that can be undone", "empty")
        ruling = _rule(queue, edit, now)
        if isinstance(ruling, Refusal):
            return ruling
        queue = replace(ruling.queue, items=settle(ruling.queue.items))
        touched += ruling.touched
        texts.append(ruling.text)
    if not texts:
        return Refusal("there is nothing to do", "empty")
    text = texts[0] if len(texts) == 1 else f"{texts[0]} and {len(texts) - 1} more"
    return Ruling(queue, tuple(dict.fromkeys(touched)), text)
