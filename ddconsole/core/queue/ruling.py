"""What a rule works with: the ids it was given, resolved, and what it hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.experiment import WAITING, Experiment, Failed, Idea, Removed, Running, State
from ddconsole.core.queue.values import Queue, Refusal
from ddconsole.core.queue.view import by_id, members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a rule made of the queue: the new one, the ids it touched, and the edit in words for the history."""

    queue: Queue
    touched: tuple[str, ...]
    text: str
    notice: str = ""


def is_waiting(item: Experiment) -> bool:
    """It can still be edited."""
    return isinstance(item.state, WAITING)


def named(
    queue: Queue, ids: Iterable[str], of_sweep: Callable[[Experiment], bool] = is_waiting
) -> tuple[Experiment, ...] | Refusal:
    """The experiments that `ids` name, each once, in the order of the queue.

    A sweep stands for those of its members that `of_sweep` accepts, since its ended ones stay as they are.
    """
    wanted: set[str] = set()
    for id_ in ids:
        if by_id(queue, id_) is not None:
            wanted.add(id_)
            continue
        sweep = members(queue, id_)
        if not sweep:
            return unknown(queue, id_)
        fitting = {item.id for item in sweep if of_sweep(item)}
        if not fitting:
            states = ", ".join(f"{item.id} {item.state.name}" for item in sweep)
            return Refusal(f"no member of {id_} can take this edit: {states}", "no-change", (id_,))
        wanted |= fitting
    if not wanted:
        return Refusal("no experiment is named", "empty")
    return tuple(item for item in queue.items if item.id in wanted)


def named_waiting(
    queue: Queue, ids: Iterable[str], of_sweep: Callable[[Experiment], bool] = is_waiting
) -> tuple[Experiment, ...] | Refusal:
    """As `named`, refused when one of them does not wait any more."""
    found = named(queue, ids, of_sweep)
    if isinstance(found, Refusal):
        return found
    fixed = next((item for item in found if not is_waiting(item)), None)
    return found if fixed is None else not_editable(fixed)


def unknown(queue: Queue, id_: str) -> Refusal:
    """There is no such experiment or sweep."""
    last = f"; the newest is E{queue.next_experiment - 1}" if queue.next_experiment > 1 else "; the queue is empty"
    return Refusal(f"{id_} is not in this queue{last}", "unknown-id", (id_,))


def not_editable(item: Experiment) -> Refusal:
    """Why a running, ended or removed experiment cannot be edited, and what can be done instead."""
    if isinstance(item.state, Running):
        reason = f"{item.id} is running and stays as it is: clone {item.id} with other values, or cancel it"
        return Refusal(reason, "running", (item.id,))
    if isinstance(item.state, Removed):
        return Refusal(f"{item.id} was removed: undo brings it back, clone makes it anew", "removed", (item.id,))
    reason = (
        f"{item.id} has ended ({_ending(item.state)}) and its record stays as it is: "
        f"clone {item.id} to run something else, retry {item.id} to run it again"
    )
    return Refusal(reason, "ended", (item.id,))


def is_idea(item: Experiment) -> Refusal:
    """An idea has nothing to run yet."""
    reason = f"{item.id} is an idea without a config: give it one first, such as `edit {item.id} b=16 B=26`"
    return Refusal(reason, "idea", (item.id,))


def idea_in(items: Iterable[Experiment]) -> Experiment | None:
    """The first of them that is an idea."""
    return next((item for item in items if isinstance(item.state, Idea)), None)


def ids_of(items: Iterable[Experiment]) -> tuple[str, ...]:
    """Their ids, in order."""
    return tuple(item.id for item in items)


def with_items(queue: Queue, changed: Iterable[Experiment]) -> tuple[Experiment, ...]:
    """The queue's items with those of the same id replaced."""
    by = {item.id: item for item in changed}
    return tuple(by.get(item.id, item) for item in queue.items)


def _ending(state: State) -> str:
    if isinstance(state, Failed):
        return f"failed: {state.failure.cause}"
    outcome = getattr(state, "outcome", None)
    return state.name if outcome is None else f"{state.name}, {outcome}"
