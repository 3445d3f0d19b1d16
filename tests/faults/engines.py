"""Which engine lived when, by a run's stored events; one that lived on may not be started a second time.

The rule: an engine is kept, or adopted after a console died, when it still lives and the next experiment's effective
config is its own. It is gone when its end was proved (phase `stop`, the end of a run) or when it was found dead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FOUND = re.compile(r"found the engine of \S+ again, pid (\d+)")
"""How a console says that it adopted an engine."""

DEAD = re.compile(r"the engine of \S+ had ended")
"""How it says that there is nothing to adopt."""

Key = tuple[str, int]
"""Experiment and attempt."""


def is_launch(event: Mapping[str, Any]) -> bool:
    """Whether an engine is being started here."""
    return event["kind"] == "phase" and event["phase"] == "launch" and event["state"] == "started"


@dataclass(slots=True)
class _Slot:
    """What the host runs, as far as the events tell. `sure` is False between a console's death and the next look."""

    effective: dict[Key, Any] = field(default_factory=dict)
    engine: Key | None = None
    sure: bool = True

    def lives_as(self, key: Key) -> bool:
        return self.engine is not None and self.sure and self.effective[self.engine] == self.effective[key]


def started_twice(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Each launch of an engine that lived already."""
    slot = _Slot()
    for event in events:
        kind, key = event["kind"], (event.get("id", ""), event.get("attempt", 0))
        if kind == "experiment_started":
            slot.effective[key] = event["effective"]
        elif is_launch(event):
            if slot.lives_as(key):
                yield f"{key[0]} attempt {key[1]} started the engine anew that lived since {slot.engine}"
            slot.engine, slot.sure = key, True
        else:
            _follow(slot, event, key)


def _follow(slot: _Slot, event: Mapping[str, Any], key: Key) -> None:
    """Ends, deaths and finds."""
    match event["kind"]:
        case "run_started":
            slot.sure = False
        case "run_finished":
            slot.engine = None
        case "phase" if (event["phase"], event["state"]) in (("stop", "done"), ("launch", "failed")):
            slot.engine = None
        case "warning" if FOUND.match(event["text"]):
            slot.engine, slot.sure = key, True
        case "warning" if DEAD.match(event["text"]):
            slot.engine = None


def found_again(events: Iterable[Mapping[str, Any]]) -> set[int]:
    """Process ids of engines that a later console adopted."""
    texts = (event["text"] for event in events if event["kind"] == "warning")
    return {int(found[1]) for found in map(FOUND.match, texts) if found}


def is_left_alone(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the store was left in the middle of an attempt that was not ending an engine.

    An engine that lives at such a moment has to be found again by whoever comes next.
    """
    running = False
    for event in events:
        match event["kind"]:
            case "experiment_started":
                running = True
            case "experiment_finished":
                running = False
            case "phase" if event["phase"] == "stop":
                running = event["state"] == "done"
    return running
