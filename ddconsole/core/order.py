"""An order for those that wait, proposed and not applied: fewest restarts, or what tells most first. Pure.

Only queued experiments are put into another order; held ones and ideas keep their places. None is put in front of one
that it requires (`after!`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ddconsole.core.config import Algorithm
from ddconsole.core.experiment import Done, Experiment, Origin, Queued
from ddconsole.core.queue.values import Add, Arrange, Batch
from ddconsole.core.queue.view import members, running, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.queue.values import Draft, Edit, Queue

By: TypeAlias = Literal["restarts", "information", "drift"]
WAYS: tuple[By, ...] = ("restarts", "information", "drift")
"""What an order can be for. The last one is `core/anchor.py`'s, which adds experiments."""

Point: TypeAlias = tuple[float, float, float, float]
"""A config as log2 of b, of the verify width, of K and of W."""

NO_WINDOW = 65_536
"""Tokens that stand for "the whole context" where no window is set."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An order that could be accepted.

    Attributes:
        before: ids of the queued experiments as they stand.
        ids: the same ids in the proposed order; with `drafts`, the ids that those are going to have among them.
        boots_before, boots_after: how often an engine is started for them, in either order.
        why: for `information`, why each has its place; for `drift`, of the anchors.
        drafts: what it adds, in the order in which it runs.
        at: with `drafts`, the only revision of the queue at which it holds.
        none: why there is nothing to propose, where it is not that the order is good; else empty.
    """

    by: By
    before: tuple[str, ...]
    ids: tuple[str, ...]
    boots_before: int
    boots_after: int
    why: Mapping[str, str] = field(default_factory=dict)
    drafts: tuple[Draft, ...] = ()
    at: int | None = None
    author: str = ""
    none: str = ""

    @property
    def saved_boots(self) -> int:
        """Starts of an engine that it saves; below zero when it costs some."""
        return self.boots_before - self.boots_after

    @property
    def edit(self) -> Edit | None:
        """What accepting it applies, one step of the history; None when there is nothing to change."""
        if not self.drafts:
            return None if self.ids == self.before else Arrange(self.ids)
        add = Add(self.drafts, Origin("anchor", "order --by drift"), author=self.author, at=self.at)
        as_added = self.before + tuple(id_ for id_ in self.ids if id_ not in set(self.before))
        return add if self.ids == as_added else Batch((add, Arrange(self.ids)))


def propose(
    queue: Queue, by: Literal["restarts", "information"], effective_fn: Callable[[Config], Effective]
) -> Proposal:
    """The order for `by`. Equal claims keep the order that the queue has.

    `restarts` without `after!` conditions has the fewest starts that there can be; with them it is a good order that
    is never worse than the present one.
    """
    line = startable(queue)
    engines = {item.id: engine_of(item, effective_fn) for item in line}
    now = _occupied(queue, effective_fn)
    why: dict[str, str] = {}
    if by == "restarts":
        ordered = _side_by_side(queue, line, engines, now)
    else:
        ordered = _telling_first(queue, line, effective_fn, why)
    boots_before, boots_after = (boots_of(queue, _ids(each), engines, effective_fn) for each in (line, ordered))
    if by == "restarts" and boots_after >= boots_before:
        ordered, boots_after = line, boots_before
    return Proposal(by, _ids(line), _ids(ordered), boots_before, boots_after, why)


def startable(queue: Queue) -> tuple[Experiment, ...]:
    """The queued experiments, in the order in which they would run."""
    return tuple(item for item in waiting(queue) if isinstance(item.state, Queued) and item.config is not None)


def engine_of(item: Experiment, effective_fn: Callable[[Config], Effective]) -> Effective | None:
    """The engine that an experiment needs; None where `base=best` decides that at its start."""
    return None if item.config is None or item.base_best else effective_fn(item.config)


def engine_kept(queue: Queue, effective_fn: Callable[[Config], Effective]) -> frozenset[str]:
    """Ids of the queued experiments that find their engine running, left there by the one before them."""
    found: set[str] = set()
    now = _occupied(queue, effective_fn)
    for item in startable(queue):
        engine = engine_of(item, effective_fn)
        if engine is not None and engine == now:
            found.add(item.id)
        now = engine
    return frozenset(found)


def _ids(items: Iterable[Experiment]) -> tuple[str, ...]:
    return tuple(item.id for item in items)


def boots_of(
    queue: Queue,
    ids: Sequence[str],
    engines: Mapping[str, Effective | None],
    effective_fn: Callable[[Config], Effective],
) -> int:
    """How often an engine is started for `ids` in this order, behind the one that runs now."""
    count, now = 0, _occupied(queue, effective_fn)
    for id_ in ids:
        engine = engines[id_]
        count += engine is None or engine != now
        now = engine
    return count


def _occupied(queue: Queue, effective_fn: Callable[[Config], Effective]) -> Effective | None:
    """The engine of the running experiment, which has its config bound already."""
    now = running(queue)
    return effective_fn(now.config) if now is not None and now.config is not None else None


# --- fewest restarts


def _side_by_side(
    queue: Queue, line: Sequence[Experiment], engines: Mapping[str, Effective | None], now: Effective | None
) -> tuple[Experiment, ...]:
    """Whoever fits the engine that is up; else an engine all of whose experiments may start; else the first."""
    required = _required(queue, line)
    left, ordered = list(line), list[Experiment]()
    while left:
        ready = _ready(left, required)
        free = {item.id for item in ready}
        fitting = next((item for item in ready if engines[item.id] is not None and engines[item.id] == now), None)
        whole = (item for item in ready if all(o.id in free for o in left if engines[o.id] == engines[item.id]))
        chosen = fitting or next(whole, ready[0])
        left.remove(chosen)
        ordered.append(chosen)
        now = engines[chosen.id]
    return tuple(ordered)


def _required(queue: Queue, line: Iterable[Experiment]) -> dict[str, frozenset[str]]:
    """Whom each experiment with an `after!` must follow."""
    found: dict[str, frozenset[str]] = {}
    for item in line:
        if item.requires is not None:
            found[item.id] = frozenset({item.requires, *_ids(members(queue, item.requires))} - {item.id})
    return found


def _ready(left: Sequence[Experiment], required: Mapping[str, frozenset[str]]) -> list[Experiment]:
    """Those of `left` that require none of the others; all of them where they require one another in a ring."""
    if not required:
        return list(left)
    ids = {item.id for item in left}
    return [item for item in left if not required.get(item.id, frozenset()) & ids] or list(left)


# --- most informative first


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The nearest of those that are known already."""

    distance: float = math.inf
    id: str = ""


def _telling_first(
    queue: Queue, line: Sequence[Experiment], effective_fn: Callable[[Config], Effective], why: dict[str, str]
) -> tuple[Experiment, ...]:
    """Controls, then always the one that is farthest from everything that is known by then."""
    required = _required(queue, line)
    known = [item for item in queue.items if isinstance(item.state, Done) and item.config is not None]
    points = _scaled({item.id: _point(effective_fn(item.config)) for item in (*known, *line) if item.config})
    nearest = dict.fromkeys(_ids(line), _Nearest())
    for item in known:
        _learn(item.id, nearest, points)
    left, ordered = list(line), list[Experiment]()
    while left:
        ready = _ready(left, required)
        control = next((item for item in ready if _is_control(item)), None)
        chosen = control or max(ready, key=lambda item: nearest[item.id].distance)
        why[chosen.id] = "a control" if control is not None else _reason(nearest[chosen.id])
        left.remove(chosen)
        ordered.append(chosen)
        del nearest[chosen.id]
        _learn(chosen.id, nearest, points)
    return tuple(ordered)


def _learn(id_: str, nearest: dict[str, _Nearest], points: Mapping[str, Point]) -> None:
    """One more is known."""
    for other, before in nearest.items():
        distance = math.dist(points[other], points[id_])
        if distance < before.distance:
            nearest[other] = _Nearest(distance, id_)


def _is_control(item: Experiment) -> bool:
    return item.config is not None and item.config.algorithm is not Algorithm.TREE


def _reason(nearest: _Nearest) -> str:
    if not nearest.id:
        return "the first"
    return f"far from {nearest.id}, the nearest before it" if nearest.distance else f"the same knobs as {nearest.id}"


def _point(effective: Effective) -> Point:
    """A chain is a tree of one branch, no drafter a block of one; knobs double, so their logarithms are compared."""
    b, width = effective.block_size or 1, effective.verify_width
    return (math.log2(b), math.log2(width), math.log2(effective.topk or 1), math.log2(effective.window or NO_WINDOW))


def _scaled(points: Mapping[str, Point]) -> dict[str, Point]:
    """Each knob in parts of the range that it has here, so that none drowns the others."""
    spans = [(max(column) - min(column)) or 1.0 for column in zip(*points.values(), strict=True)]
    return {
        id_: (b / spans[0], width / spans[1], topk / spans[2], window / spans[3])
        for id_, (b, width, topk, window) in points.items()
    }
