"""The documents of `--json`: built once, so that the command line, the events and the screen show the same thing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from ddconsole.core.events import utc_text
from ddconsole.core.experiment import Queued, Removed, Running
from ddconsole.core.queue.history import next_step
from ddconsole.core.queue.view import ranks, running

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.errors import DdconsoleError
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.ports.engine import Finding
    from ddconsole.core.queue.values import Queue, Step

SCHEMA = 1

EffectiveOf: TypeAlias = "Callable[[Config], Effective]"
"""What the profile's engine makes of a config."""
EstimateOf: TypeAlias = "Callable[[Experiment], tuple[float, str]]"
"""Seconds that an experiment will take, and where they come from: history or profile."""
FindingsOf: TypeAlias = "Callable[[Config], Sequence[Finding]]"
"""What can be said of a config without a host."""


def queue_document(
    profile: str,
    queue: Queue,
    effective: EffectiveOf,
    estimate: EstimateOf,
    now: datetime,
    *,
    workload: Mapping[str, Any] | None = None,
    findings: FindingsOf | None = None,
    keeping: Collection[str] = (),
    with_removed: bool = False,
) -> dict[str, Any]:
    """The document of `queue P list --json`: everything but tombstones, the waiting ones in the order they will run.

    `keeping` names those that will find their engine running. `undo` and `redo` say in words what they would take
    back and do again, null when nothing.
    """
    shown = [item for item in queue.items if with_removed or not isinstance(item.state, Removed)]
    rank_of = ranks(queue)
    now_running = running(queue)
    return head(profile, queue.revision) | {
        "paused": queue.paused,
        "running": now_running.id if now_running else None,
        "ends_at": _optional_time(ends_at(queue, estimate, now)),
        "notice": queue.notice,
        "undo": _step_text(queue.history.undo),
        "redo": _step_text(queue.history.redo),
        "items": [
            experiment_item(
                item,
                rank_of.get(item.id),
                effective=effective,
                estimate=estimate,
                workload=workload,
                findings=findings,
                keeping=keeping,
            )
            for item in shown
        ],
    }


def experiment_item(
    item: Experiment,
    rank: int | None,
    *,
    effective: EffectiveOf,
    estimate: EstimateOf,
    workload: Mapping[str, Any] | None = None,
    findings: FindingsOf | None = None,
    keeping: Collection[str] = (),
) -> dict[str, Any]:
    """One item of the queue. `rank` counts the waiting ones from 1; None for one that does not wait."""
    config = item.config
    seconds, source = estimate(item) if config else (None, None)
    return {
        "id": item.id,
        "rank": rank,
        "sweep": item.sweep,
        "state": item.state.name,
        "label": item.label,
        "config": config.to_json() if config else None,
        "effective": effective(config).to_json() if config else None,
        "workload": dict(workload) if workload is not None else None,
        "suite": item.suite,
        "passes": list(item.passes),
        "repeats": item.repeats,
        "base": "best" if item.base_best else "default",
        "estimate_s": None if seconds is None else round(seconds, 1),
        "estimate_source": source,
        "keeps_engine": item.id in keeping,
        "findings": [finding.to_json() for finding in findings(config)] if findings and config else [],
        "requires": item.requires,
        "origin": item.origin.to_json(),
        "note": item.note,
        "author": item.author,
        "created_at": utc_text(item.created_at),
        "revision": item.revision,
    }


def ends_at(queue: Queue, estimate: EstimateOf, now: datetime) -> datetime | None:
    """When the work will be done by the estimates: of all that is queued, or of what runs when the queue is paused.

    None when nothing will run.
    """
    now_running = running(queue)
    queued = [item for item in queue.items if isinstance(item.state, Queued) and item.config is not None]
    left = [] if queue.paused else [estimate(item)[0] for item in queued]
    if now_running is not None and isinstance(now_running.state, Running):
        spent = (now - now_running.state.started_at).total_seconds()
        left.append(max(estimate(now_running)[0] - spent, 0.0))
    return now + timedelta(seconds=sum(left)) if left else None


def added_document(
    profile: str,
    revision: int,
    items: Iterable[Mapping[str, Any]],
    *,
    duplicate_of: str | None = None,
    error: DdconsoleError | None = None,
    notice: str = "",
) -> dict[str, Any]:
    """The document of `queue P add --json` and of every verb that makes or changes experiments."""
    document = head(profile, revision) | {
        "added": [dict(item) for item in items],
        "duplicate_of": duplicate_of,
        "refused": {"column": getattr(error, "column", None), "reason": error.what} if error else None,
        "notice": notice,
    }
    return document | ({"error": error.to_json()} if error else {})


def results_document(profile: str, revision: int, items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The document of `results P list --json`."""
    return head(profile, revision) | {"items": [dict(item) for item in items]}


def head(profile: str, revision: int) -> dict[str, Any]:
    """What every document begins with."""
    return {"schema": SCHEMA, "profile": profile, "revision": revision}


def _step_text(steps: Sequence[Step]) -> str | None:
    """The step that undo (or redo) would take, in words; None when there is none."""
    step = next_step(steps)
    return None if step is None else step.text


def _optional_time(t: datetime | None) -> str | None:
    return utc_text(t) if t is not None else None
