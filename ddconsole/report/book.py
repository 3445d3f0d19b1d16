"""Everything that a report tells, gathered once: results, how they stand to each other, what they were made with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import FIGURES, Known
from ddconsole.core.compare import own_interval
from ddconsole.core.drift import drifts
from ddconsole.core.imports import KIND, SCHEMA
from ddconsole.core.plateau import standings
from ddconsole.core.stepcost import cost_curves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.drift import Drift
    from ddconsole.core.plateau import Standing
    from ddconsole.core.stepcost import CostCurve


@dataclass(frozen=True, slots=True)
class Entry:
    """One result with all that the store keeps of it.

    Attributes:
        item: as in `results list --json`, compared with its reference.
        recipe: see `core/recipe.py`; empty where an older version kept none.
        passes: summaries by pass, one for each repeat.
        phases: seconds by phase.
        requests: records as JSON; empty unless they were asked for.
        intervals: 95 % interval of each figure by its name.
        boots: starts of an engine that its config was measured on.
    """

    item: Mapping[str, Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    passes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    requests: Sequence[Mapping[str, Any]] = ()
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    boots: int = 1

    def to_json(self) -> dict[str, Any]:
        """An item of the export: the result's own keys with what belongs to it."""
        whole = dict(self.item) | {
            "boots": self.boots,
            "intervals": {name: [round(low, 4), round(high, 4)] for name, (low, high) in self.intervals.items()},
            "recipe": dict(self.recipe),
            "phases": dict(self.phases),
            "passes": {name: list(repeats) for name, repeats in self.passes.items()},
        }
        return whole | ({"requests": list(self.requests)} if self.requests else {})


@dataclass(frozen=True, slots=True)
class Book:
    """A profile's results as one document.

    Attributes:
        made_at: when, as UTC text.
        version: ddconsole's own.
    """

    profile: str
    made_at: str
    version: str
    entries: tuple[Entry, ...]
    standings: tuple[Standing, ...]
    drifts: tuple[Drift, ...]
    curves: tuple[CostCurve, ...]

    def to_json(self) -> dict[str, Any]:
        """The document of `results export --format json`; `results import` reads it."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "profile": self.profile,
            "exported_at": self.made_at,
            "ddconsole": self.version,
            "items": [entry.to_json() for entry in self.entries],
            "standings": [standing.to_json() for standing in self.standings],
            "drift": [drift.to_json() for drift in self.drifts],
            "step_cost": [curve.to_json() for curve in self.curves],
        }


def make_book(profile: str, made_at: str, version: str, entries: Sequence[Entry]) -> Book:
    """Compute what the entries say together."""
    known = Known(entry.item for entry in entries)
    return Book(
        profile,
        made_at,
        version,
        tuple(_with_intervals(entry, known) for entry in entries),
        standings(known),
        drifts(known.items),
        cost_curves(known),
    )


def _with_intervals(entry: Entry, known: Known) -> Entry:
    found = {figure.name: own_interval(entry.item, figure, known) for figure in FIGURES if entry.item.get(figure.name)}
    intervals = {name: interval for name, interval in found.items() if interval is not None}
    return replace(entry, intervals=intervals, boots=len(known.boots(entry.item)))
