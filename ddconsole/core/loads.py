"""The load that a level puts on the engine, and a level's summary together with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.metrics import ttft
from ddconsole.core.prefix import unmixed
from ddconsole.core.stats import ratio, spread
from ddconsole.core.steady import Steady, steady_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.arrivals import Arrivals
    from ddconsole.core.levels import LevelSummary
    from ddconsole.core.metrics import RequestRecord


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """`concurrency` streams; each asks its next request when its last one has ended."""

    concurrency: int

    @property
    def label(self) -> str:
        """`c=4`."""
        return f"c={self.concurrency}"

    def to_json(self) -> dict[str, Any]:
        """A level's `load`."""
        return {"kind": "closed", "concurrency": self.concurrency}


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests that come when they are due, answered or not, with at most `cap` in flight.

    A request that is due while `cap` are in flight waits for a place (it is not dropped), and is sent as soon as one is
    free. Its own latencies count from the sending; `ttft_from_due_ms` counts from its due time, as its user would.
    """

    rate: float
    arrivals: Arrivals
    cap: int
    seed: int
    concurrency: int = 0

    @property
    def label(self) -> str:
        """`2/s poisson`."""
        return f"{self.rate:g}/s {self.arrivals}"

    def to_json(self) -> dict[str, Any]:
        """A level's `load`."""
        return {"kind": "open", "rate": self.rate, "arrivals": self.arrivals, "cap": self.cap, "seed": self.seed}


Load = ClosedLoop | OpenLoop


@dataclass(frozen=True, slots=True)
class LoadedLevel:
    """A level's summary, what it was loaded with, and what that came to.

    Attributes:
        clock_jump_s: how far the wall clock moved against the monotonic one during the level: a suspend, or a clock
            that was set.
        round_trip_s: of a request without work, before the pass; a TTFT holds one. None where it was not measured.
    """

    load: Load
    summary: LevelSummary
    records: tuple[RequestRecord, ...]
    clock_jump_s: float = 0.0
    round_trip_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The summary with `label`, `load`, `steady`, and for an open loop what its cap did."""
        steady = steady_window(self.records, self.load.concurrency)
        found = {
            "label": self.load.label,
            "load": self.load.to_json(),
            "steady": steady.to_json() if isinstance(steady, Steady) else None,
            "no_steady": None if isinstance(steady, Steady) else steady,
            "clock_jump_s": round(self.clock_jump_s, 3),
            "round_trip_ms": None if self.round_trip_s is None else round(self.round_trip_s * 1000, 3),
        }
        if isinstance(self.load, OpenLoop):
            found |= _open_figures(self.records, self.load)
        return self.summary.to_json() | found


def _open_figures(records: Sequence[RequestRecord], load: OpenLoop) -> dict[str, Any]:
    """What an open loop came to.

    sent_per_s: requests sent a second, first to last: below the offered rate when the cap held requests back.
    held, held_ms: requests that waited at the cap, and how long.
    in_flight_max: most requests in flight at once.
    in_flight_last: in flight when the last one came; far above the mean, the engine did not keep up.
    """
    starts = sorted(record.started_s for record in records)
    held = [record.held_s for record in records if record.held_s > 0]
    fresh = unmixed([record for record in records if record.ok])
    from_due = [record.held_s + first for record in fresh if (first := ttft(record)) is not None]
    waits, felt = spread(held), spread(from_due)
    sent = ratio(len(starts) - 1, starts[-1] - starts[0]) if len(starts) > 1 else None
    return {
        "sent_per_s": None if sent is None else round(sent, 4),
        "held": len(held),
        "held_ms": None if waits is None else waits.to_json(1000),
        "ttft_from_due_ms": None if felt is None else felt.to_json(1000),
        "in_flight_max": most_in_flight(records),
        "in_flight_last": _in_flight(records, starts[-1]) if starts else 0,
        "cap_reached": bool(held) or most_in_flight(records) >= load.cap,
    }


def most_in_flight(records: Sequence[RequestRecord]) -> int:
    """The most requests that were in flight at once."""
    return max((_in_flight(records, record.started_s) for record in records), default=0)


def _in_flight(records: Sequence[RequestRecord], at: float) -> int:
    return sum(record.started_s <= at < record.started_s + record.end_s for record in records)
