"""The rules for the order of those that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.experiment import Cancelled, Experiment, Failed, Queued, Removed, Running
from ddconsole.core.queue.ruling import Ruling, ids_of, is_waiting, named, named_waiting, not_editable
from ddconsole.core.queue.values import Arrange, Move, Queue, Refusal, Retry
from ddconsole.core.queue.view import waiting

if TYPE_CHECKING:
    from collections.abc import Sequence


def move(queue: Queue, edit: Move) -> Ruling | Refusal:
    """Move waiting experiments; `top` is ahead of all that wait, never ahead of the one that runs."""
    found = named_waiting(queue, edit.ids)
    if isinstance(found, Refusal):
        return found
    line = waiting(queue)
    moved = _moved(line, frozenset(ids_of(found)), edit.to)
    if isinstance(moved, Refusal):
        return moved
    names = ", ".join(ids_of(found))
    if moved == line:
        return Refusal(_no_way(names, edit.to), "no-change", ids_of(found))
    return Ruling(_in_line(queue, moved), ids_of(found), f"move {names} {edit.to}")


def arrange(queue: Queue, edit: Arrange) -> Ruling | Refusal:
    """Put the named ones into the given order, in the places that they hold together."""
    found = named_waiting(queue, edit.ids)
    if isinstance(found, Refusal):
        return found
    by = {item.id: item for item in found}
    if len(edit.ids) != len(by) or any(id_ not in by for id_ in edit.ids):
        return Refusal("an order names each experiment once, by its own id", "empty", edit.ids)
    turn = iter(edit.ids)
    line = waiting(queue)
    arranged = tuple(by[next(turn)] if item.id in by else item for item in line)
    if arranged == line:
        return Refusal("they are in this order already", "no-change", edit.ids)
    return Ruling(_in_line(queue, arranged), ids_of(found), f"order {len(by)} experiments")


def retry(queue: Queue, edit: Retry) -> Ruling | Refusal:
    """An ended experiment waits again, behind all, with its id."""
    found = named(queue, (edit.id,), lambda item: isinstance(item.state, Failed | Cancelled))
    if isinstance(found, Refusal):
        return found
    for item in found:
        against = _not_retryable(item)
        if against is not None:
            return against
    names = frozenset(ids_of(found))
    again = tuple(replace(item, state=Queued()) for item in found)
    others = tuple(item for item in queue.items if item.id not in names)
    return Ruling(replace(queue, items=others + again), ids_of(found), f"retry {', '.join(ids_of(found))}")


def _not_retryable(item: Experiment) -> Refusal | None:
    if is_waiting(item):
        return Refusal(
            f"{item.id} waits already ({item.state.name}); retry is for what has ended", "no-change", (item.id,)
        )
    if isinstance(item.state, Running):
        return Refusal(
            f"{item.id} is running now; retry it when it has ended, or clone {item.id}", "running", (item.id,)
        )
    return not_editable(item) if isinstance(item.state, Removed) else None


def _in_line(queue: Queue, line: Sequence[Experiment]) -> Queue:
    settled = tuple(item for item in queue.items if not is_waiting(item))
    return replace(queue, items=settled + tuple(line))


def _moved(line: tuple[Experiment, ...], ids: frozenset[str], to: str | int) -> tuple[Experiment, ...] | Refusal:
    block = tuple(item for item in line if item.id in ids)
    others = tuple(item for item in line if item.id not in ids)
    if to == "up":
        return _up(line, ids)
    if to == "down":
        return _up(line[::-1], ids)[::-1]
    if to == "top":
        return block + others
    if to == "bottom":
        return others + block
    if not isinstance(to, int) or to < 1:
        return Refusal(f"{to} is no place: top, up, down, bottom, or a rank from 1", "empty", ids_of(block))
    return others[: to - 1] + block + others[to - 1 :]


def _up(line: tuple[Experiment, ...], ids: frozenset[str]) -> tuple[Experiment, ...]:
    """Each of `ids` one place forward; those that press against the front, or against each other there, stay."""
    moved = list(line)
    for index in range(1, len(moved)):
        if moved[index].id in ids and moved[index - 1].id not in ids:
            moved[index - 1], moved[index] = moved[index], moved[index - 1]
    return tuple(moved)


def _no_way(names: str, to: str | int) -> str:
    where = {"top": "first", "up": "first", "down": "last", "bottom": "last"}.get(str(to), f"at {to}")
    return f"{names} {'are' if ',' in names else 'is'} {where} already"
