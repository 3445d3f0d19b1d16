"""Short ways to make queues and specs' contexts in tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ddconsole.core.config import Algorithm, Config, TopkRule
from ddconsole.core.experiment import Experiment, Origin, Outcome
from ddconsole.core.queue import Add, Begin, Draft, Edit, End, Queue, Refusal, apply, waiting
from ddconsole.core.spec import KnobRule, SpecContext

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
CHAIN = Config(Algorithm.CHAIN, block_size=8, window=2048)
OFF = Config(Algorithm.OFF)

KNOBS = {
    "block_size": KnobRule(low=2, high=32, default=8),
    "budget": KnobRule(low=1, high=512, default=12),
    "topk": KnobRule(low=1, high=64, default=6),
    "window": KnobRule(low=2, high=65_536, default=2048),
}


def applied(queue: Queue, *edits: Edit) -> Queue:
    """The queue after edits that the rules take."""
    for edit in edits:
        result = apply(queue, edit, now=NOW)
        assert isinstance(result, Queue), result
        queue = result
    return queue


def refused(queue: Queue, edit: Edit) -> Refusal:
    """Why the rules do not take an edit."""
    result = apply(queue, edit, now=NOW)
    assert isinstance(result, Refusal), result
    return result


def queue_of(count: int = 3, *, sweep: bool = False) -> Queue:
    """A queue of trees E1, E2 … with budgets 12, 16, 20 …"""
    drafts = tuple(Draft(replace(TREE, budget=12 + 4 * number)) for number in range(count))
    return applied(Queue(), Add(drafts, Origin(), as_sweep=sweep))


def begun(queue: Queue, id_: str, attempt: int = 1) -> Queue:
    """The queue with an experiment running."""
    return applied(queue, Begin(id_, attempt, NOW))


def ended(queue: Queue, id_: str, outcome: str = "passed", attempt: int = 1) -> Queue:
    """The queue with an experiment begun and ended."""
    return applied(begun(queue, id_, attempt), End(id_, attempt, Outcome(outcome)))


def line(queue: Queue) -> list[str]:
    """Ids of those that wait, in order."""
    return [item.id for item in waiting(queue)]


def state(queue: Queue, id_: str) -> str:
    """The name of an experiment's state."""
    return next(item.state.name for item in queue.items if item.id == id_)


def bare(queue: Queue) -> tuple[Experiment, ...]:
    """The items without their revisions: what undo has to bring back."""
    return tuple(replace(item, revision=0) for item in queue.items)


def context(queue: Queue | None = None, **changes: object) -> SpecContext:
    """A context like the demo profile's, with an engine that derives its K."""
    base = SpecContext(
        defaults=TREE,
        knobs=KNOBS,
        rule=TopkRule.PR29907,
        queue=queue or Queue(),
        suites={"quick": ("coding", "throughput"), "confirm": ("coding", "throughput", "quality")},
    )
    return replace(base, **changes)  # type: ignore[arg-type]
