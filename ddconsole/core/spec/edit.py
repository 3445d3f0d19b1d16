"""`edit E16 budget=32`: one value for each key, for one experiment or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.experiment import Running
from ddconsole.core.queue.ruling import is_waiting
from ddconsole.core.queue.values import Change, Edit, Extend
from ddconsole.core.spec.ids import batched, split_ids
from ddconsole.core.spec.keys import typed
from ddconsole.core.spec.plan import Origins, plan
from ddconsole.core.spec.types import Command, Planned, RefusedSpec

if TYPE_CHECKING:
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.spec.context import SpecContext
    from ddconsole.core.spec.ids import Named
    from ddconsole.core.spec.keys import Typed
    from ddconsole.core.spec.words import Line


def edit_command(line: Line, context: SpecContext) -> Command:
    """The command that replaces values of experiments that wait.

    Whether they still wait is the rules' business: an experiment that has started is refused when it is applied.

    Raises:
        RefusedSpec: no id, nothing to change, several values for one key, or a value that cannot be had.
    """
    named, rest = split_ids(line.words, context)
    if not named:
        raise RefusedSpec(line.words[0].spot() if line.words else line.end, "edit what?", "such as edit E16 budget=32")
    said = typed(rest, context)
    if said.empty:
        raise RefusedSpec(line.end, "edit it how?", f"such as edit {named[0].id} budget=32")
    several = said.several
    if several is not None:
        advice = f"clone {named[0].id} {several.word.text} makes one experiment of each"
        raise RefusedSpec(several.values[1].spot, "an experiment has one value for each key", advice)
    edits: list[Edit] = []
    preview: list[Planned] = []
    for experiment in _editable(named):
        planned, _ = plan(said, Origins((experiment,)), context)
        preview += planned
        edits.append(_edit(said, experiment, planned[0]))
    return Command("edit", batched(tuple(edits)), line.text, tuple(preview))


def _editable(named: tuple[Named, ...]) -> tuple[Experiment, ...]:
    """Each experiment once; of a sweep those that wait, or all when none does, so that the rules can say why not."""
    found: dict[str, Experiment] = {}
    for each in named:
        wait = tuple(item for item in each.experiments if is_waiting(item))
        for item in wait if each.is_sweep and wait else each.experiments:
            found[item.id] = item
    return tuple(found.values())


def _edit(said: Typed, experiment: Experiment, planned: Planned) -> Edit:
    """What was said, and nothing else, as a change; further passes for the one that runs."""
    if isinstance(experiment.state, Running) and said.passes is not None and set(said.words) == {"passes"}:
        return Extend(experiment.id, said.passes)
    draft = planned.draft
    late = said.base_best is not None
    return Change(
        id=experiment.id,
        config=draft.config if said.axes or experiment.config is None else None,
        suite=said.suite,
        passes=draft.passes if said.passes is not None or said.suite is not None else None,
        repeats=draft.repeats if said.suite is not None and draft.repeats != experiment.repeats else said.repeats,
        note=said.note,
        base_best=said.base_best,
        pinned=draft.pinned if late or draft.base_best else None,
    )
