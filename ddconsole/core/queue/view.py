"""Looking at a queue: who waits, who runs, who is next and why somebody is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.experiment import WAITING, Done, Experiment, Outcome, Queued, Removed, Running

if TYPE_CHECKING:
    from collections.abc import Collection

    from ddconsole.core.queue.values import Queue


def by_id(queue: Queue, id_: str) -> Experiment | None:
    """The experiment of that id, tombstones included; None when the id was never given or its add was undone."""
    return next((item for item in queue.items if item.id == id_), None)


def waiting(queue: Queue) -> tuple[Experiment, ...]:
    """Ideas, held and queued ones in the order of their ranks."""
    return tuple(item for item in queue.items if isinstance(item.state, WAITING))


def running(queue: Queue) -> Experiment | None:
    """The experiment that is being attempted, or None."""
    return next((item for item in queue.items if isinstance(item.state, Running)), None)


def ranks(queue: Queue) -> dict[str, int]:
    """Rank by id of the waiting ones: 1, 2, 3 … without a gap."""
    return {item.id: rank for rank, item in enumerate(waiting(queue), start=1)}


def members(queue: Queue, sweep: str) -> tuple[Experiment, ...]:
    """The experiments of a sweep that were not removed, in the order of the queue."""
    return tuple(item for item in queue.items if item.sweep == sweep and not isinstance(item.state, Removed))


def sweep_ids(queue: Queue) -> tuple[str, ...]:
    """Ids of the sweeps that still have members, oldest first."""
    found = {item.sweep for item in queue.items if item.sweep and not isinstance(item.state, Removed)}
    return tuple(sorted(found, key=lambda sweep: int(sweep[1:]) if sweep[1:].isdigit() else 0))


def next_to_run(queue: Queue, passed: Collection[str] | None = None) -> Experiment | None:
    """The experiment to start next; None when the queue is paused or nothing may start.

    Held ones and ideas are passed over, and so is one whose `after!` has not passed. `passed` names experiments
    known to have passed; None takes the queue's own word.
    """
    if queue.paused:
        return None
    for item in waiting(queue):
        if isinstance(item.state, Queued) and item.config is not None and blocked(queue, item, passed) is None:
            return item
    return None


def blocked(queue: Queue, experiment: Experiment, passed: Collection[str] | None = None) -> str | None:
    """Why `after!` keeps an experiment from starting now, or None. `passed` as in `next_to_run`."""
    named = experiment.requires
    if named is None or (passed is not None and named in passed):
        return None
    one = by_id(queue, named)
    awaited = (one,) if one is not None else members(queue, named)
    if not awaited:
        return f"it starts only if {named} passes, and {named} is not there any more: {_way_out(experiment)}"
    for item in awaited:
        if not _passed(item, passed):
            return _wait_text(experiment, item)
    return None


def _passed(item: Experiment, passed: Collection[str] | None) -> bool:
    if passed is not None and item.id in passed:
        return True
    return isinstance(item.state, Done) and item.state.outcome is Outcome.PASSED


def _wait_text(experiment: Experiment, awaited: Experiment) -> str:
    state = awaited.state
    if isinstance(state, (*WAITING, Running)):
        return f"it starts only if {awaited.id} passes; {awaited.id} is {state.name}"
    how = "was wrong" if isinstance(state, Done) else "failed"
    how = {"cancelled": "was cancelled", "removed": "was removed"}.get(state.name, how)
    again = f"undo the removal of {awaited.id}" if isinstance(state, Removed) else f"retry {awaited.id}"
    return f"it starts only if {awaited.id} passes; {awaited.id} {how}: {again}, or {_way_out(experiment)}"


def _way_out(experiment: Experiment) -> str:
    return f"clone {experiment.id}, for a clone starts without the condition"
