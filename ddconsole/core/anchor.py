"""An anchor between the others, proposed and not applied: one config again and again, so that drift can be seen.

`core/drift.py` reads these repeats: a config that is measured early, in the middle and late differs from itself by what
the host did meanwhile. The repeats are doubles on purpose. Each is the short suite and the one pass that its figures
come from, so that it is as cheap as a repeat can be and groups with the anchor's own result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.core.experiment import Done, Experiment, Outcome, Queued, Running
from ddconsole.core.order import Proposal, boots_of, engine_of, startable
from ddconsole.core.queue.values import Draft
from ddconsole.core.queue.view import by_id, running
from ddconsole.core.tally import VERDICT_PASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.queue.values import Queue

EVERY = 4
"""Experiments between two anchors, at most, unless somebody says otherwise."""

LEAST_GAPS = 2
"""Three measurements of an anchor give a slope and something to judge it by; two give a slope alone."""

SUITE = "quick"
"""The suite of an anchor: what matters is that it is the same one each time."""

FEW = "with fewer than two others queued there is nothing to put an anchor between"
NOBODY = "no chain is queued or measured and nothing has passed: queue a control first, `next algorithm=chain`"


def propose_anchors(
    queue: Queue,
    effective_fn: Callable[[Config], Effective],
    *,
    best: str | None = None,
    trained_block_size: int | None = None,
    every: int = EVERY,
    author: str = "",
) -> Proposal:
    """Repeats of one config spread evenly over the queue: first, last, and after every `every` others at most.

    The anchor is a chain that is queued, runs or has passed (at the trained block size and of the short suite before
    others), else the experiment `best`. Repeats of it that are queued already are put in their places before new ones
    are added, so that an accepted proposal proposes nothing more. One that requires another, or is required, stays.
    """
    line = startable(queue)
    anchor = _anchor(queue, line, trained_block_size) or (None if best is None else by_id(queue, best))
    if anchor is None or anchor.config is None:
        return _nothing(queue, line, effective_fn, NOBODY)
    draft = _repeat(anchor)
    theirs = {item.id for item in line if _is_free(item, line) and _is_repeat(item, draft, effective_fn)}
    others = [item for item in line if item.id not in theirs]
    if len(others) < LEAST_GAPS:
        return _nothing(queue, line, effective_fn, FEW)
    first = (running(queue) or others[0], others[0])
    begun = any(_is_repeat(item, draft, effective_fn) for item in first)
    gaps = max(LEAST_GAPS, math.ceil(len(others) / every), len(theirs) - 1 + begun)
    spots = [round(place * len(others) / gaps) for place in range(begun, gaps + 1)]
    added = len(spots) - len(theirs)
    numbers = range(queue.next_experiment, queue.next_experiment + added)
    repeats = [*(item.id for item in line if item.id in theirs), *(f"E{number}" for number in numbers)]
    ids = _merged([item.id for item in others], spots, repeats)
    engines = {item.id: engine_of(item, effective_fn) for item in line}
    engines |= {id_: effective_fn(anchor.config) for id_ in repeats}
    before = tuple(item.id for item in line)
    boots_before, boots_after = (boots_of(queue, each, engines, effective_fn) for each in (before, ids))
    why = dict.fromkeys(repeats, f"anchor: {anchor.id} again") | {anchor.id: "the anchor"}
    drafts = (draft,) * added
    return Proposal("drift", before, ids, boots_before, boots_after, why, drafts, queue.revision, author)


def _nothing(
    queue: Queue, line: Sequence[Experiment], effective_fn: Callable[[Config], Effective], why: str
) -> Proposal:
    ids = tuple(item.id for item in line)
    boots = boots_of(queue, ids, {item.id: engine_of(item, effective_fn) for item in line}, effective_fn)
    return Proposal("drift", ids, ids, boots, boots, none=why)


def _anchor(queue: Queue, line: Sequence[Experiment], trained_block_size: int | None) -> Experiment | None:
    """The control that fits best; of equal ones the newest."""
    queued = {item.id for item in line}
    chains = [
        item
        for item in queue.items
        if item.config is not None
        and item.config.algorithm is Algorithm.CHAIN
        and (_stands(item) or item.id in queued)
        and not item.base_best
        and _speaking(item)
    ]
    return max(
        chains,
        key=lambda item: (
            item.config is not None and item.config.block_size == trained_block_size,
            item.suite == SUITE,
            _stands(item),
            int(item.id.removeprefix("E")),
        ),
        default=None,
    )


def _stands(item: Experiment) -> bool:
    """It has passed, or is on its way to."""
    return isinstance(item.state, Running) or (isinstance(item.state, Done) and item.state.outcome is Outcome.PASSED)


def _speaking(item: Experiment) -> tuple[str, ...]:
    """The pass that gives an experiment its figures, by itself."""
    return tuple(name for name in VERDICT_PASSES if name in item.passes)[:1]


def _repeat(anchor: Experiment) -> Draft:
    note = f"anchor: repeats {anchor.id}, to see drift"
    return Draft(anchor.config, suite=SUITE, passes=_speaking(anchor) or VERDICT_PASSES[:1], note=note)


def _is_repeat(item: Experiment, draft: Draft, effective_fn: Callable[[Config], Effective]) -> bool:
    """Whether its result will group with those of `draft`."""
    if item.config is None or draft.config is None or item.base_best:
        return False
    same = effective_fn(item.config) == effective_fn(draft.config)
    return same and item.suite == draft.suite and _speaking(item) == draft.passes


def _is_free(item: Experiment, line: Sequence[Experiment]) -> bool:
    """Whether it may be put anywhere."""
    return isinstance(item.state, Queued) and item.requires is None and all(o.requires != item.id for o in line)


def _merged(others: list[str], spots: Sequence[int], repeats: Sequence[str]) -> tuple[str, ...]:
    """The others in their order, with the repeats in front of those places."""
    ids = list(others)
    for spot, id_ in reversed(list(zip(spots, repeats, strict=True))):
        ids.insert(spot, id_)
    return tuple(ids)
