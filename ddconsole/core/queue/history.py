"""Undo and redo: one linear history, kept in the queue itself.

A step remembers the touched experiments and whom each stood behind, so undoing it puts exactly those back and leaves
all others alone. When an experiment starts it drops out of every step: what has started is never taken back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.experiment import WAITING, Experiment
from ddconsole.core.queue.values import History, Placed, Queue, Refusal, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def settle(items: Iterable[Experiment]) -> tuple[Experiment, ...]:
    """The normal form of `Queue.items`: those that do not wait first, each part in its order."""
    items = tuple(items)
    still = tuple(item for item in items if not isinstance(item.state, WAITING))
    return still + tuple(item for item in items if isinstance(item.state, WAITING))


def stamp(items: Iterable[Experiment], ids: Collection[str], revision: int) -> tuple[Experiment, ...]:
    """Mark the touched experiments as changed by `revision`."""
    touched_ids = frozenset(ids)
    return tuple(replace(item, revision=revision) if item.id in touched_ids else item for item in items)


def remember(history: History, text: str, before: Queue, after: Queue, ids: Collection[str]) -> History:
    """The history after an edit; what could be done again is forgotten."""
    step = Step(text, _placed(before.items, ids), _placed(after.items, ids))
    return History(undo=(*history.undo, step), redo=())


def forget(history: History, id_: str, before: Sequence[str]) -> History:
    """The history once `id_` has started: it drops out of every step.

    Who stood behind it now stands behind its own predecessor: the one of the same step, else the nearest of `before`,
    those that stood before it when it started, that the step does not move itself.
    """
    return History(undo=_without(history.undo, id_, before), redo=_without(history.redo, id_, before))


def undo(queue: Queue) -> Queue | Refusal:
    """Take the newest step back that still has something to take back."""
    step, rest, skipped = _newest(queue.history.undo)
    if step is None:
        why = "nothing to undo" + (f": {_started_text(skipped)}" if skipped else "")
        return Refusal(why, "nothing-to-undo", skipped)
    history = History(undo=rest, redo=(*queue.history.redo, step))
    return _restored(queue, step, step.before, history, _notice("undone", step, skipped))


def redo(queue: Queue) -> Queue | Refusal:
    """Do the step again that was undone last."""
    step, rest, skipped = _newest(queue.history.redo)
    if step is None:
        why = "nothing to do again" + (f": {_started_text(skipped)}" if skipped else "")
        return Refusal(why, "nothing-to-redo", skipped)
    history = History(undo=(*queue.history.undo, step), redo=rest)
    return _restored(queue, step, step.after, history, _notice("done again", step, skipped))


def next_step(steps: Sequence[Step]) -> Step | None:
    """The step that undo (or redo) would take from `steps`."""
    return _newest(steps)[0]


def _placed(items: Sequence[Experiment], ids: Collection[str]) -> tuple[Placed, ...]:
    wanted = frozenset(ids)
    behind: str | None = None
    found: list[Placed] = []
    for item in items:
        if item.id in wanted:
            found.append(Placed(item, behind))
        behind = item.id
    return tuple(found)


def _without(steps: tuple[Step, ...], id_: str, before: Sequence[str]) -> tuple[Step, ...]:
    """Steps without `id_`; of neighbours that have nothing left one stays, to say why undo passes them over."""
    kept: list[Step] = []
    for step in steps:
        started = (*step.started, id_) if id_ in step.ids else step.started
        behind = next((each for each in before if each not in step.ids), None)
        step = Step(step.text, _dropped(step.before, id_, behind), _dropped(step.after, id_, behind), started)
        if kept and not step.ids and not kept[-1].ids:
            kept.pop()
        kept.append(step)
    return tuple(kept)


def _dropped(placed: tuple[Placed, ...], id_: str, behind: str | None) -> tuple[Placed, ...]:
    anchor = next((each.behind for each in placed if each.experiment.id == id_), behind)
    others = (each for each in placed if each.experiment.id != id_)
    return tuple(replace(each, behind=anchor) if each.behind == id_ else each for each in others)


def _newest(steps: Sequence[Step]) -> tuple[Step | None, tuple[Step, ...], tuple[str, ...]]:
    """The newest step with something left, those below it, and the ids that had started of those passed over."""
    skipped: list[str] = []
    for index in range(len(steps) - 1, -1, -1):
        if steps[index].ids:
            return steps[index], tuple(steps[:index]), tuple(skipped)
        skipped += steps[index].started
    return None, (), tuple(skipped)


def _restored(queue: Queue, step: Step, placed: tuple[Placed, ...], history: History, notice: str) -> Queue:
    ids = step.ids
    items = [item for item in queue.items if item.id not in ids]
    at = {item.id: index for index, item in enumerate(items)}
    behind: dict[int, list[Experiment]] = {}
    slot: dict[str, int] = {}
    for each in placed:
        index = _index_behind(each.behind, at, slot, len(items))
        slot[each.experiment.id] = index
        behind.setdefault(index, []).append(each.experiment)
    restored: list[Experiment] = list(behind.get(0, ()))
    for index, item in enumerate(items, start=1):
        restored.append(item)
        restored += behind.get(index, ())
    revision = queue.revision + 1
    return replace(
        queue,
        items=stamp(settle(restored), ids, revision),
        revision=revision,
        history=history,
        notice=notice,
    )


def _index_behind(behind: str | None, at: dict[str, int], slot: dict[str, int], end: int) -> int:
    """How many of the untouched items come before one that stood behind `behind`."""
    if behind is None:
        return 0
    if behind in slot:
        return slot[behind]
    return at[behind] + 1 if behind in at else end


def _notice(verb: str, step: Step, skipped: tuple[str, ...]) -> str:
    started = step.started + skipped
    return f"{verb}: {step.text}" + (f" ({_started_text(started)})" if started else "")


def _started_text(ids: tuple[str, ...]) -> str:
    names = ", ".join(dict.fromkeys(ids))
    return f"{names} {'has' if len(set(ids)) == 1 else 'have'} started since and stays as it is"
