"""The steady window of a level: the stretch between its ramp and its tail, in which the load is what the level says.

**Closed loop.** It begins when each of the first `concurrency` requests has its first token (all streams decode), and
ends with the first request that no other one follows (a stream falls idle). In between exactly `concurrency` requests
are in flight.

**Open loop.** It begins when the first request has ended (requests leave as well as come) and ends with the last
arrival (none comes any more).

A window shorter than the median request is none: then no stream has turned over in it, and what it holds is a matter of
chance. The level's figures are then those of the whole level, and it says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.metrics import counted_chunks, ttft
from ddconsole.core.stats import percentile, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.metrics import RequestRecord


@dataclass(frozen=True, slots=True)
class Steady:
    """Figures of a steady window. Times are seconds after the level's start.

    Attributes:
        tokens: output tokens whose chunk came in the window. Of an answer whose chunks have no counts, each chunk
            gets the same share of C; `by_chunk` then is False.
        in_flight: mean number of requests in flight.
        ended: requests that ended in it.
    """

    from_s: float
    to_s: float
    tokens: float
    in_flight: float
    ended: int
    by_chunk: bool

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.to_s - self.from_s

    @property
    def output_rate(self) -> float | None:
        """Output throughput in the window: tokens that came in it / its length, tok/s."""
        return ratio(self.tokens, self.seconds)

    def to_json(self) -> dict[str, Any]:
        """A level's `steady`."""
        rate = self.output_rate
        return {
            "output_tok_s": None if rate is None else round(rate, 4),
            "from_s": round(self.from_s, 4),
            "to_s": round(self.to_s, 4),
            "tokens": round(self.tokens, 2),
            "in_flight": round(self.in_flight, 3),
            "ended": self.ended,
            "counts": "by chunk" if self.by_chunk else "spread over chunks",
        }


def steady_window(records: Sequence[RequestRecord], concurrency: int) -> Steady | str:
    """The steady window of a level's records, or why there is none.

    Args:
        concurrency: 0 for an open loop.
    """
    counted = [record for record in records if record.ok]
    if not counted:
        return "no request counts"
    bounds = _closed_bounds(records, concurrency) if concurrency else _open_bounds(records)
    if isinstance(bounds, str):
        return bounds
    since, until = bounds
    median = percentile([record.end_s for record in counted], 0.5) or 0.0
    if until <= since or until - since < median:
        return f"{max(until - since, 0.0):.1f} s between ramp and tail, less than one median request ({median:.1f} s)"
    ends = [record.started_s + record.end_s for record in counted]
    return Steady(
        from_s=since,
        to_s=until,
        tokens=sum(_tokens_within(record, since, until) for record in counted),
        in_flight=sum(_overlap(record, since, until) for record in records) / (until - since),
        ended=sum(since < end <= until for end in ends),
        by_chunk=all(counted_chunks(record) is not None for record in counted),
    )


def _closed_bounds(records: Sequence[RequestRecord], concurrency: int) -> tuple[float, float] | str:
    ordered = sorted(records, key=lambda record: record.started_s)
    if len(ordered) < concurrency:
        return f"{len(ordered)} requests never filled {concurrency} streams"
    since = max(record.started_s + _first_s(record) for record in ordered[:concurrency])
    last_start = ordered[-1].started_s
    ends = [end for record in records if (end := record.started_s + record.end_s) > last_start]
    return since, min(ends, default=last_start)


def _open_bounds(records: Sequence[RequestRecord]) -> tuple[float, float]:
    first_end = min(record.started_s + record.end_s for record in records)
    return first_end, max(record.started_s for record in records)


def _first_s(record: RequestRecord) -> float:
    first = ttft(record)
    return record.end_s if first is None else first


def _tokens_within(record: RequestRecord, since: float, until: float) -> float:
    inside = [
        tokens for at, tokens in counted_chunks(record) or record.chunks if since < record.started_s + at <= until
    ]
    if counted_chunks(record) is not None:
        return sum(inside)
    return len(inside) / len(record.chunks) * (record.completion_tokens or 0) if record.chunks else 0.0


def _overlap(record: RequestRecord, since: float, until: float) -> float:
    return max(min(record.started_s + record.end_s, until) - max(record.started_s, since), 0.0)
