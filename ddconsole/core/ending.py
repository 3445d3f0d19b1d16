"""How what somebody waits for has ended, or why it has not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.experiment import WAITING, Done, Experiment, Held, Idea, Outcome, Running
from ddconsole.core.queue.ruling import unknown
from ddconsole.core.queue.view import by_id, members, next_to_run, running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.queue.values import Queue, Refusal

IDLE = "idle"
"""To wait for this is to wait until nothing runs and nothing is going to start."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of it.

    Attributes:
        outcome: `passed wrong failed cancelled removed`, for a sweep the worst of its members', or `idle`; None while
            it goes on.
        items: the experiments that were waited for.
        stuck: why it will not end by itself, or empty.
    """

    outcome: str | None
    items: tuple[Experiment, ...] = ()
    stuck: str = ""

    @property
    def good(self) -> bool:
        """It ended as it should."""
        return self.outcome in (Outcome.PASSED.value, IDLE)


def ending(queue: Queue, what: str, *, run: bool = True) -> Ending | Refusal:
    """How `what` stands: an experiment, a sweep (its members that were not removed), or `idle`.

    `run` says whether some process runs the queue: without one nothing of it starts, though it may be started yet.
    """
    nobody = "" if run else "no ddconsole runs this queue, so nothing of it starts"
    if what == IDLE:
        nothing = running(queue) is None and next_to_run(queue) is None
        return Ending(IDLE if nothing else None, stuck="" if nothing else nobody)
    item = by_id(queue, what)
    items = (item,) if item is not None else members(queue, what)
    if not items:
        gone = any(each.sweep == what for each in queue.items)
        return Ending("removed") if gone else unknown(queue, what)
    open_ = tuple(each for each in items if isinstance(each.state, (*WAITING, Running)))
    if open_:
        return Ending(None, items, _stuck(queue, open_) or nobody)
    return Ending(max((_outcome(each) for each in items), key=_badness), items)


def _outcome(item: Experiment) -> str:
    return item.state.outcome.value if isinstance(item.state, Done) else item.state.name


def _badness(outcome: str) -> int:
    return ("passed", "wrong", "removed", "cancelled", "failed").index(outcome)


def _stuck(queue: Queue, open_: Sequence[Experiment]) -> str:
    """Why none of them will ever start, as things stand."""
    names = ", ".join(item.id for item in open_)
    if all(isinstance(item.state, Held | Idea) for item in open_):
        return f"{names} {'is' if len(open_) == 1 else 'are'} held, and will not start before somebody releases it"
    if queue.paused and not any(isinstance(item.state, Running) for item in open_):
        return f"the queue is paused, so {names} will not start"
    return ""
