"""Arrival times, the steady window, and what an open loop came to."""

import json
from itertools import pairwise

import pytest
from fakes.records import record

from ddconsole.core.arrivals import due_times
from ddconsole.core.level_words import level_words, pass_lines, rate_words
from ddconsole.core.levels import summarise_level
from ddconsole.core.loads import ClosedLoop, LoadedLevel, OpenLoop, most_in_flight
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.steady import Steady, steady_window


def test_constant_arrivals() -> None:
    """One every 1/rate, the first at once."""
    assert due_times("constant", 4, 5) == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_poisson_arrivals_are_seeded_and_scale() -> None:
    """The same seed bunches alike at every rate; another seed does not; the mean gap is 1/rate."""
    slow, fast = due_times("poisson", 1, 4000, seed=3), due_times("poisson", 8, 4000, seed=3)
    assert fast == pytest.approx([at / 8 for at in slow])
    assert due_times("poisson", 1, 4000, seed=4) != slow
    assert slow[0] == 0
    assert slow == tuple(sorted(slow))
    assert slow[-1] / 3999 == pytest.approx(1.0, abs=0.05)  # four standard errors are 0.063


def test_poisson_gaps_are_exponential() -> None:
    """Their standard deviation is their mean, and e⁻¹ of them are longer than it."""
    times = due_times("poisson", 2, 4001, seed=1)
    gaps = [late - early for early, late in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation / mean == pytest.approx(1.0, abs=0.08)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_is_above_zero(rate: float) -> None:
    """Nothing else has due times."""
    with pytest.raises(ValueError, match="above 0"):
        due_times("constant", rate, 3)


def request(start: float, chunks: list[tuple[float, int]], end: float, **changes: object) -> RequestRecord:
    """A request by absolute times."""
    relative = tuple((round(at - start, 9), tokens) for at, tokens in chunks)
    tokens = sum(tokens for _, tokens in chunks)
    return record(
        "p", tokens, None, end - start, chunks=relative, started_s=start, **{"completion_tokens": tokens} | changes
    )


TWO_STREAMS = [
    request(0.0, [(1, 1), (2, 10), (4, 10)], 4),
    request(0.0, [(2, 1), (3, 10), (5, 10)], 5),
    request(4.0, [(5, 1), (7, 10)], 8),
    request(5.0, [(6, 1), (9, 10)], 10),
]


def test_closed_window_by_hand() -> None:
    """From the last first token of the first two (2) to the first end that nobody follows (8)."""
    steady = steady_window(TWO_STREAMS, 2)
    assert isinstance(steady, Steady)
    assert (steady.from_s, steady.to_s) == (2, 8)
    assert steady.tokens == 10 + 10 + 10 + 1 + 10 + 1  # the chunk at 2 itself is ramp, that of 9 is tail
    assert steady.output_rate == pytest.approx(42 / 6)
    assert steady.in_flight == pytest.approx(2.0)
    assert (steady.ended, steady.by_chunk) == (3, True)


def test_window_of_one_stream_is_nearly_the_whole() -> None:
    """There is no ramp but the first prefill, and no tail."""
    steady = steady_window([request(float(n), [(n + 0.1, 1), (n + 1, 9)], n + 1.0) for n in range(5)], 1)
    assert isinstance(steady, Steady)
    assert (steady.from_s, steady.to_s) == (0.1, 5.0)


@pytest.mark.parametrize(
    ("records", "concurrency", "words"),
    [
        (TWO_STREAMS[:2], 2, "less than one median request"),
        (TWO_STREAMS[:1], 2, "never filled 2 streams"),
        ([record("a", error="cut: gone")], 1, "no request counts"),
    ],
)
def test_too_short_is_said(records: list[RequestRecord], concurrency: int, words: str) -> None:
    """No window is made up where the load never stood still; the level then has none, and why."""
    why = steady_window(records, concurrency)
    assert isinstance(why, str)
    assert words in why
    level = LoadedLevel(ClosedLoop(concurrency), summarise_level(records, 5.0, concurrency), tuple(records)).to_json()
    assert (level["steady"], level["no_steady"]) == (None, why)
    assert "no steady window" in level_words(level)


def test_chunks_without_counts_are_spread_and_said() -> None:
    """A chunk is no token: each gets its share of C."""
    blind = [request(float(n), [(n + 0.5, 0), (n + 1.0, 0)], n + 1.0, completion_tokens=8) for n in range(4)]
    steady = steady_window(blind, 1)
    assert isinstance(steady, Steady)
    assert steady.tokens == pytest.approx(7 * 4)  # seven chunks after the first token, four tokens each
    assert steady.to_json()["counts"] == "spread over chunks"


def test_open_window_by_hand() -> None:
    """From the first end (4) to the last arrival (9)."""
    sent = [request(float(n), [(n + 1, 1), (n + 4, 9)], n + 4.0) for n in range(10)]
    steady = steady_window(sent, 0)
    assert isinstance(steady, Steady)
    assert (steady.from_s, steady.to_s) == (4, 9)
    assert steady.in_flight == pytest.approx(4.0)
    assert steady.output_rate == pytest.approx(10.0)


def open_level(**changes: object) -> dict[str, object]:
    """Three requests, a second apart, the last one held for 0.5 s at a cap of two."""
    sent = [request(n, [(n + 0.5, 1), (n + 2, 9)], n + 2.0) for n in (0.0, 1.0)]
    sent.append(request(2.5, [(3.0, 1), (4.5, 9)], 4.5, held_s=0.5, rate=1.0))
    summary = summarise_level(sent, 4.5, 0)
    level = LoadedLevel(OpenLoop(1.0, "constant", 2, 1), summary, tuple(sent)).to_json()
    json.dumps(level, allow_nan=False)
    return level | changes


def test_what_the_cap_did() -> None:
    """Held requests, the rate that was really sent, and a TTFT from the due time."""
    level = open_level()
    assert (level["label"], level["concurrency"]) == ("1/s constant", 0)
    assert (level["held"], level["cap_reached"], level["in_flight_max"]) == (1, True, 2)
    assert level["held_ms"]["p50"] == 500.0  # type: ignore[index]
    assert level["sent_per_s"] == 0.8
    assert level["ttft_ms"]["p99"] == 500.0  # type: ignore[index]
    assert level["ttft_from_due_ms"]["n"] == 3  # type: ignore[index]
    assert level["ttft_from_due_ms"]["p99"] == pytest.approx(990.0)  # type: ignore[index]


def test_most_in_flight_touches_are_not_overlaps() -> None:
    """A request that begins when another ends is not beside it."""
    assert most_in_flight([request(0.0, [(1, 1)], 2.0), request(2.0, [(3, 1)], 4.0)]) == 1
    assert most_in_flight([]) == 0


def test_a_rate_in_words() -> None:
    """The verdict's part, and the line of a level."""
    assert list(rate_words([open_level(), open_level()])) == [
        "6.7 tok/s at 1/s constant, TTFT p99 990 ms (⚠ 2 of 6 requests held at the cap of 2)"
    ]
    line = level_words(open_level(), 12.34)
    assert line.startswith("1/s constant · 6.7 tok/s output")
    assert "TTFT p50 500.0 p99 500.0 ms (round trip 12.3)" in line
    assert "1 of 3 requests held at the cap of 2" in line
    assert "TTFT from the due time p99 990.0 ms" in line


def test_the_round_trip_stands_beside_the_ttft_of_a_rate() -> None:
    """In the verdict: of several repeats the median."""
    assert list(rate_words([open_level(round_trip_ms=30.0), open_level(round_trip_ms=32.0)])) == [
        "6.7 tok/s at 1/s constant, TTFT p99 990 ms with a round trip of 31 (⚠ 2 of 6 requests held at the cap of 2)"
    ]


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ((0, 0, 1, 2), "TTFT cold p50 1000.0 p99 1000.0 ms, warm p50 500.0 p99 500.0 ms (round trip 12.3)"),
        ((1, 1, 1, 1), "TTFT warm p50 750.0 p99 1000.0 ms (round trip 12.3)"),
        ((0, 0, 0, 0), "TTFT p50 750.0 p99 1000.0 ms (round trip 12.3)"),
        ((None, None, 1, 2), "TTFT p50 1000.0 p99 1000.0 ms, warm p50 500.0 p99 500.0 ms (round trip 12.3)"),
    ],
)
def test_cold_and_warm_are_told_apart_in_words(uses: tuple[int | None, ...], words: str) -> None:
    """The two are never one figure, whatever is known of the first uses."""
    sent = [
        request(3.0 * place, [(3.0 * place + first, 1), (3.0 * place + 2, 9)], 3.0 * place + 2, asked_before=before)
        for place, (first, before) in enumerate(zip((1.0, 1.0, 0.5, 0.5), uses, strict=True))
    ]
    level = LoadedLevel(ClosedLoop(1), summarise_level(sent, 11.0, 1), tuple(sent), round_trip_s=0.0123).to_json()
    assert words in level_words(level, level["round_trip_ms"])


def test_closed_levels_have_no_rate_words() -> None:
    """They are told by their own names."""
    level = LoadedLevel(ClosedLoop(2), summarise_level(TWO_STREAMS, 10.0, 2), tuple(TWO_STREAMS)).to_json()
    assert list(rate_words([level])) == []
    assert next(pass_lines({"levels": [level]})).startswith("c=2 · 6.4 tok/s output · 7.0 in the steady 6.0 s")
