"""The queue as JSON values and back: what the store writes down. `from_json(to_json(x)) == x` for every value.

Fields that hold their default are left out, so that a long history stays small, and a field that an older version
did not know comes back as its default.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from ddconsole.core.config import Config
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import (
    Cancelled,
    Done,
    Experiment,
    Failed,
    Held,
    Idea,
    Origin,
    Outcome,
    Queued,
    Removed,
    Running,
    State,
)
from ddconsole.core.queue.values import History, Placed, Queue, Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = dict[str, Any]
"""A JSON object."""

PLAIN_STATES: dict[str, State] = {state.name: state for state in (Idea(), Held(), Queued(), Removed())}
"""States that are nothing but their name."""

PLAIN_FIELDS = ("suite", "repeats", "sweep", "note", "author", "requires", "base_best", "revision", "intent")
"""Fields of an experiment that are JSON values as they are."""

DEFAULTS = Experiment(id="", config=None, state=Queued(), created_at=datetime.min)


def experiment_to_json(experiment: Experiment) -> Json:
    """An experiment as a JSON object."""
    data: Json = {
        "id": experiment.id,
        "state": state_to_json(experiment.state),
        "created_at": experiment.created_at.isoformat(),
    }
    if experiment.config is not None:
        data["config"] = _without_none(experiment.config.to_json())
    for name in PLAIN_FIELDS:
        if getattr(experiment, name) != getattr(DEFAULTS, name):
            data[name] = getattr(experiment, name)
    for name in ("passes", "pinned"):
        if getattr(experiment, name) != getattr(DEFAULTS, name):
            data[name] = list(getattr(experiment, name))
    if experiment.origin != DEFAULTS.origin:
        data["origin"] = experiment.origin.to_json()
    return data


def experiment_from_json(data: Mapping[str, Any]) -> Experiment:
    """The inverse of `experiment_to_json`.

    Raises:
        KeyError, ValueError: it is not one.
    """
    fields: Json = {name: data[name] for name in PLAIN_FIELDS if name in data}
    fields |= {name: tuple(data[name]) for name in ("passes", "pinned") if name in data}
    if "origin" in data:
        fields["origin"] = Origin(**{name: data["origin"].get(name) for name in ("verb", "text", "after")})
    return Experiment(
        id=data["id"],
        config=Config.from_json(data["config"]) if data.get("config") is not None else None,
        state=state_from_json(data["state"]),
        created_at=datetime.fromisoformat(data["created_at"]),
        **fields,
    )


def state_to_json(state: State) -> Json:
    """A state by its name, with what belongs to it."""
    data: Json = {"name": state.name}
    if isinstance(state, Running | Done | Failed | Cancelled):
        data["attempt"] = state.attempt
    if isinstance(state, Running):
        data["started_at"] = state.started_at.isoformat()
        data["cancelling"] = state.cancelling
    elif isinstance(state, Done):
        data["outcome"] = state.outcome.value
    elif isinstance(state, Failed):
        data["failure"] = state.failure.to_json()
    return data


def state_from_json(data: Mapping[str, Any]) -> State:
    """The inverse of `state_to_json`.

    Raises:
        KeyError, ValueError: it is not one.
    """
    name = data["name"]
    if name in PLAIN_STATES:
        return PLAIN_STATES[name]
    attempt = int(data["attempt"])
    if name == Running.name:
        return Running(attempt, datetime.fromisoformat(data["started_at"]), bool(data.get("cancelling")))
    if name == Done.name:
        return Done(attempt, Outcome(data["outcome"]))
    if name == Failed.name:
        return Failed(attempt, failure_from_json(data["failure"]))
    if name == Cancelled.name:
        return Cancelled(attempt)
    raise ValueError(f"no state is called {name!r}")


def failure_from_json(data: Mapping[str, Any]) -> Failure:
    """The inverse of `Failure.to_json`."""
    return Failure(
        cause=data["cause"],
        what=data["what"],
        evidence=tuple(data.get("evidence") or ()),
        advice=data.get("advice") or "",
        phase=data.get("phase"),
    )


def step_to_json(step: Step) -> Json:
    """One step of the history."""
    data: Json = {"text": step.text, "before": _places(step.before), "after": _places(step.after)}
    return data | ({"started": list(step.started)} if step.started else {})


def step_from_json(data: Mapping[str, Any]) -> Step:
    """The inverse of `step_to_json`."""
    before, after = (
        tuple(Placed(experiment_from_json(each["experiment"]), each["behind"]) for each in data[side])
        for side in ("before", "after")
    )
    return Step(data["text"], before, after, tuple(data.get("started", ())))


def history_to_json(history: History) -> Json:
    """Both stacks, newest last."""
    return {
        "undo": [step_to_json(step) for step in history.undo],
        "redo": [step_to_json(step) for step in history.redo],
    }


def history_from_json(data: Mapping[str, Any]) -> History:
    """The inverse of `history_to_json`."""
    return History(
        undo=tuple(step_from_json(step) for step in data.get("undo", ())),
        redo=tuple(step_from_json(step) for step in data.get("redo", ())),
    )


def queue_to_json(queue: Queue, *, with_history: bool = True) -> Json:
    """A queue as a JSON object; the history can be kept elsewhere."""
    data: Json = {
        "items": [experiment_to_json(item) for item in queue.items],
        "revision": queue.revision,
        "paused": queue.paused,
        "next_experiment": queue.next_experiment,
        "next_sweep": queue.next_sweep,
        "notice": queue.notice,
    }
    return data | ({"history": history_to_json(queue.history)} if with_history else {})


def queue_from_json(data: Mapping[str, Any]) -> Queue:
    """The inverse of `queue_to_json`; what was copied by hand is made right by `mended`.

    Raises:
        KeyError, ValueError: it is not a queue.
    """
    return mended(
        Queue(
            items=tuple(experiment_from_json(item) for item in data["items"]),
            revision=int(data["revision"]),
            paused=bool(data["paused"]),
            next_experiment=int(data["next_experiment"]),
            next_sweep=int(data["next_sweep"]),
            history=history_from_json(data.get("history") or {}),
            notice=data.get("notice") or "",
        )
    )


def mended(queue: Queue) -> Queue:
    """The queue with every id used once and the counters above them.

    An experiment whose id stands there already (an entry copied by hand) gets a new one, and the notice says so.
    """
    number = max([queue.next_experiment, *(_number(item.id) + 1 for item in queue.items)])
    sweep = max([queue.next_sweep, *(_number(item.sweep or "") + 1 for item in queue.items)])
    seen: set[str] = set()
    items: list[Experiment] = []
    renamed: list[str] = []
    for item in queue.items:
        if item.id in seen:
            renamed.append(f"{item.id} was there twice; the second is E{number} now")
            item = replace(item, id=f"E{number}")
            number += 1
        seen.add(item.id)
        items.append(item)
    notice = "; ".join(([queue.notice] if queue.notice else []) + renamed)
    return replace(queue, items=tuple(items), next_experiment=number, next_sweep=sweep, notice=notice)


def _number(id_: str) -> int:
    return int(id_[1:]) if id_[1:].isdecimal() else 0


def _places(placed: Sequence[Placed]) -> list[Json]:
    return [{"experiment": experiment_to_json(each.experiment), "behind": each.behind} for each in placed]


def _without_none(data: Mapping[str, object]) -> Json:
    return {name: value for name, value in data.items() if value is not None and value != {}}
