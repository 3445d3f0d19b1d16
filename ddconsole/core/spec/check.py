"""Looks at drafts before they are taken: doubles, the control that a tree is compared with, and `base=best`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Done, Experiment, Workload
from ddconsole.core.queue.ruling import is_idea
from ddconsole.core.queue.values import Draft, Refusal
from ddconsole.core.spec.context import KNOBS_OF, SHORT_NAMES, SpecContext, config_of, tied_value
from ddconsole.core.spec.derive import effective_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ddconsole.core.config import Effective
    from ddconsole.core.queue.values import Queue

EMPTY = Workload()


@dataclass(frozen=True, slots=True)
class WorkKey:
    """What makes two pieces of work the same: the effective config, the workload, the passes and their sizes."""

    effective: Effective
    workload: Workload
    suite: str
    passes: tuple[str, ...]
    repeats: int


SAME_EDIT = "this spec"
"""State of a double that is made by the same edit."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Work that is there already.

    Attributes:
        id: the experiment that has it, `lab:E4` under another profile.
        state: `queued`, `held`, `running`, `measured`, or `this spec`.
    """

    id: str
    state: str


def work_key(
    what: Draft | Experiment, effective_fn: Callable[[Config], Effective], workload: Workload = EMPTY
) -> WorkKey | None:
    """The key of a draft or an experiment; None for an idea and for what is bound at start."""
    if what.config is None or (what.base_best and not isinstance(getattr(what, "state", None), Done)):
        return None
    return WorkKey(effective_fn(what.config), workload, what.suite, tuple(sorted(what.passes)), what.repeats)


def standing_work(
    queue: Queue,
    effective_fn: Callable[[Config], Effective],
    workload: Workload = EMPTY,
    measured_under: Mapping[str, Workload] | None = None,
    profile: str = "",
) -> dict[WorkKey, Duplicate]:
    """What a queue has measured, runs and is going to run. Waiting and running work is named before measured work.

    `measured_under` has the workload that a measured experiment was measured under, by id, where that is known to be
    another than `workload`. `profile` stands in front of the ids, for the queue of another profile.
    """
    there: dict[WorkKey, Duplicate] = {}
    for item in queue.items:  # those that run and wait come last, and so are the ones that are named
        word = _standing(item)
        held_for = (measured_under or {}).get(item.id, workload) if word == "measured" else workload
        own = work_key(item, effective_fn, held_for) if word else None
        if own is not None:
            there[own] = Duplicate(f"{profile}:{item.id}" if profile else item.id, word)
    return there


def duplicates(
    drafts: Sequence[tuple[str, Draft]],
    standing: Mapping[WorkKey, Duplicate],
    effective_fn: Callable[[Config], Effective],
    workload: Workload = EMPTY,
) -> tuple[Duplicate | None, ...]:
    """For each draft the same work that stands already, or None.

    Args:
        drafts: each with the id that it has, or is going to have: by it a double within one edit is named.
        standing: of `standing_work`.
    """
    there = dict(standing)
    found: list[Duplicate | None] = []
    for id_, draft in drafts:
        own = work_key(draft, effective_fn, workload)
        found.append(None if own is None else there.get(own))
        if own is not None:
            there.setdefault(own, Duplicate(id_, SAME_EDIT))
    return tuple(found)


def _standing(item: Experiment) -> str:
    """How an experiment stands in the way of the same work; empty when it does not."""
    if isinstance(item.state, Done):
        return "measured"
    return item.state.name if item.state.name in ("queued", "held", "running") else ""


def missing_control(
    drafts: Sequence[Draft],
    standing: Iterable[WorkKey],
    context: SpecContext,
    trained_block_size: int,
    workload: Workload = EMPTY,
) -> Draft | None:
    """The control that the trees among `drafts` lack, to be offered: nobody has measured it or is going to.

    It is the chain at the drafter's trained block size with the profile's defaults, as it would be deployed; which
    passes it was measured by does not matter.
    """
    tree = next((each for each in drafts if each.config and each.config.algorithm is Algorithm.TREE), None)
    if tree is None:
        return None
    window = context.knobs["window"].default
    config = Config(Algorithm.CHAIN, block_size=trained_block_size, window=window, args=context.defaults.args)
    wanted = effective_of(config, context)
    if any(key.effective == wanted and key.workload == workload for key in standing):
        return None
    if any(draft.config is not None and effective_of(draft.config, context) == wanted for draft in drafts):
        return None
    return Draft(config, suite=tree.suite, passes=tree.passes, repeats=tree.repeats)


def bind_best(experiment: Experiment, best: Config, context: SpecContext) -> Config | Refusal:
    """What `base=best` comes to when it starts: the pinned keys of the experiment, all else of `best`."""
    own, kept = experiment.config, set(experiment.pinned)
    if own is None:
        return is_idea(experiment)
    algorithm = own.algorithm if "algorithm" in kept else best.algorithm
    alien = next((name for name in SHORT_NAMES if name in kept and name not in KNOBS_OF[algorithm]), None)
    if alien is not None:
        reason = f"{experiment.id} pins {alien}, and the best so far is algorithm={algorithm}: edit it, or pin one more"
        return Refusal(reason, "blocked", (experiment.id,))
    numbers: dict[str, int | None] = {}
    for name in KNOBS_OF[algorithm]:
        source = own if name in kept or name not in KNOBS_OF[best.algorithm] else best
        numbers[name] = getattr(source, name)
    for name in KNOBS_OF[algorithm]:
        tied = context.knobs[name].tied
        if tied is not None:
            numbers[name] = tied_value(tied, numbers)
    return config_of(algorithm, numbers, _bound_args(own, best, kept))


def _bound_args(own: Config, best: Config, kept: set[str]) -> tuple[tuple[str, str], ...]:
    """The best's arguments, but for those that were typed or left out on purpose."""
    others = {name: text for name, text in best.args if f"arg.{name}" not in kept}
    pinned = {name: text for name, text in own.args if f"arg.{name}" in kept}
    return tuple(sorted((others | pinned).items()))
