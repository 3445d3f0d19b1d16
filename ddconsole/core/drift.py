"""Whether the machine itself got faster or slower while configs were measured one after another.

Heat, clocks and neighbours change a host over a night. Configs that were measured more than once (an *anchor* that is
put between the others, or any repeat) show it: within each of them the config is the same, so what changes with the
hour is the host's. The slope is fitted to all of them together, each with a level of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, is_ranked, same_engine
from ddconsole.core.stats import t_95

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SESSION_GAP_H = 4.0
"""Hours without a result that end a session: a slope in percent an hour means nothing across them."""

LEAST_HOURS = 0.25
"""A shorter stretch has no slope in percent an hour that would mean anything."""

WORTH_SAYING_PCT = 0.5
"""A shift between two results that is smaller than this is not mentioned."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How tok/s end to end changed with the hour in one session.

    Attributes:
        pct_per_hour: the slope; None when nothing was measured often enough to tell.
        low_pct_per_hour, high_pct_per_hour: its 95 % interval.
        anchors: the results that tell it, by their ids; each config at least twice.
        hours: from the first to the last of them.
        host: where it was.
        started_at, ended_at: of the session, all its results.
    """

    host: str
    pct_per_hour: float | None
    low_pct_per_hour: float | None
    high_pct_per_hour: float | None
    anchors: tuple[str, ...]
    hours: float
    started_at: str
    ended_at: str

    @property
    def found(self) -> bool:
        """The interval leaves out zero: the host did change."""
        low, high = self.low_pct_per_hour, self.high_pct_per_hour
        return low is not None and high is not None and (low > 0 or high < 0)

    @property
    def text(self) -> str:
        """What is to be said of it, in a line."""
        if self.pct_per_hour is None:
            return "drift: not looked for (nothing was measured often enough; `queue P order --by drift` sees to that)"
        low, high = self.low_pct_per_hour or 0.0, self.high_pct_per_hour or 0.0
        interval = f"{self.pct_per_hour:+.1f} %/hour, 95 % interval {low:+.1f} to {high:+.1f}"
        told = f"{len(self.anchors)} measurements of repeated configs over {self.hours:.1f} h"
        return f"drift: {interval} ({told})" if self.found else f"drift: none found ({interval}, {told})"

    def to_json(self) -> dict[str, Any]:
        """An item of `drift` in `results list --json`."""
        return {
            "host": self.host,
            "pct_per_hour": _rounded(self.pct_per_hour),
            "low_pct_per_hour": _rounded(self.low_pct_per_hour),
            "high_pct_per_hour": _rounded(self.high_pct_per_hour),
            "found": self.found,
            "anchors": list(self.anchors),
            "hours": round(self.hours, 3),
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "text": self.text,
        }


def drifts(items: Iterable[Mapping[str, Any]]) -> tuple[Drift, ...]:
    """The drift of each session on each host, in the order of time."""
    return tuple(_drift_of(session) for session in sessions(items))


def sessions(items: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Ranked results of one host without a gap of more than `SESSION_GAP_H` hours between them, in order of time."""
    timed = sorted(
        (item for item in items if is_ranked(item) and hour_of(item) is not None),
        key=lambda item: (str(item.get("measured_on")), hour_of(item) or 0.0),
    )
    found: list[list[Mapping[str, Any]]] = []
    for item in timed:
        last = found[-1][-1] if found else None
        if last is not None and _follows(last, item):
            found[-1].append(item)
        else:
            found.append([item])
    return found


def drift_between(a: Mapping[str, Any], b: Mapping[str, Any], known: Iterable[Drift]) -> str:
    """Why the difference of two results may be the hour's: words, or empty where no drift was found."""
    begun, ended = hour_of(b), hour_of(a)
    if begun is None or ended is None:
        return ""
    for drift in known:
        if drift.found and all(_within(item, drift) for item in (a, b)) and drift.pct_per_hour is not None:
            hours = ended - begun
            shift = (math.exp(math.log1p(drift.pct_per_hour / 100) * hours) - 1) * 100
            if abs(shift) >= WORTH_SAYING_PCT:
                return f"⚠ {abs(hours):.1f} h lie between them, and the host drifted {shift:+.1f} % in that time"
    return ""


def hour_of(item: Mapping[str, Any]) -> float | None:
    """When a result was finished, in hours since the epoch; None where it does not say."""
    try:
        return datetime.fromisoformat(str(item.get("finished_at"))).timestamp() / 3600
    except ValueError:
        return None


def _drift_of(session: Sequence[Mapping[str, Any]]) -> Drift:
    """Least squares of ln(tok/s) over the hour, one slope and a level for each config."""
    groups: dict[str, list[tuple[float, float, str]]] = {}
    begun = hour_of(session[0]) or 0.0
    for item in session:
        point = ((hour_of(item) or 0.0) - begun, math.log(float(item[E2E.name])), str(item.get("id")))
        groups.setdefault(same_engine(item), []).append(point)
    repeated = [group for group in groups.values() if len(group) > 1]
    points = [(hour - _mean(group, 0), log - _mean(group, 1)) for group in repeated for hour, log, _ in group]
    hours = [hour for group in repeated for hour, _, _ in group]
    span = max(hours) - min(hours) if hours else 0.0
    freedom = len(points) - len(repeated) - 1
    anchors = tuple(dict.fromkeys(name for group in repeated for _, _, name in group))
    bounds: tuple[float | None, float | None, float | None] = (None, None, None)
    spread = math.fsum(hour * hour for hour, _ in points)
    if freedom >= 1 and spread > LEAST_HOURS**2 / 2:
        slope = math.fsum(hour * log for hour, log in points) / spread
        left = math.fsum((log - slope * hour) ** 2 for hour, log in points)
        half = t_95(freedom) * math.sqrt(left / freedom / spread)
        bounds = (_percent(slope), _percent(slope - half), _percent(slope + half))
    first, last = str(session[0].get("finished_at")), str(session[-1].get("finished_at"))
    host = str(session[0].get("measured_on"))
    return Drift(host, *bounds, anchors, span, first, last)


def _follows(last: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    near = (hour_of(item) or 0.0) - (hour_of(last) or 0.0) <= SESSION_GAP_H
    return near and last.get("measured_on") == item.get("measured_on")


def _within(item: Mapping[str, Any], drift: Drift) -> bool:
    return (
        drift.host == str(item.get("measured_on"))
        and drift.started_at <= str(item.get("finished_at")) <= drift.ended_at
    )


def _mean(group: Sequence[tuple[float, float, str]], place: int) -> float:
    return math.fsum(float(point[place]) for point in group) / len(group)


def _percent(log: float) -> float:
    return (math.exp(log) - 1) * 100


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
