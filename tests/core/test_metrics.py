"""The metrics against a fixture whose figures were worked out by hand for every tool."""

import json

import pytest
from fakes.records import fixture_record, record
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core import metrics, peers
from ddconsole.core.levels import ClientLoad, Objectives, Sums, summarise_level, sums_of
from ddconsole.core.stats import percentile, ratio, spread

ONE = fixture_record()
TWO = fixture_record(prompt_id="second", completion_tokens=100, verify_steps=50, accepted_drafts=50)
PER_MILLE = 1e-3


def close(value: float | None, expected: float) -> bool:
    return value == pytest.approx(expected, rel=PER_MILLE)


def test_our_definitions() -> None:
    """TTFT, TPOT, ITL, decode and end-to-end rates of the fixture, to 0.1 %."""
    assert close(metrics.ttft(ONE), 0.2)
    assert close(metrics.tpot(ONE), 0.00625)
    assert close(metrics.decode_rate(ONE), 160.0)
    assert close(metrics.e2e_rate(ONE), 150.1)
    gaps = metrics.itl(ONE)
    assert len(gaps) == 480
    assert close(sum(gaps) / len(gaps), 0.00625)
    assert close(percentile(gaps, 0.5), 0.006)


def test_other_tools_definitions() -> None:
    """Each tool's column of the fixture, to 0.1 %."""
    assert close(peers.sglang_tpot(ONE), 3.005 / 480)
    assert round((peers.sglang_tpot(ONE) or 0) * 1000, 2) == 6.26
    assert close(peers.guidellm_tpot(ONE), 3.2 / 481)
    assert round((peers.guidellm_tpot(ONE) or 0) * 1000, 2) == 6.65
    assert close(peers.aiperf_e2e_rate(ONE), 150.3)
    assert close(percentile(metrics.chunk_gaps(ONE), 0.5), 0.030)
    assert round(peers.chunk_rate(ONE) or 0) == 33


def test_output_throughput_is_over_the_wall_time() -> None:
    """ΣC/D: 481 tokens in 3.210 s."""
    level = summarise_level([ONE], 3.210, 1).to_json()
    assert close(level["output_tok_s"], 149.8)
    assert close(level["tok_s_decode"], 160.0)
    assert close(level["step_ms"], 30.0)
    assert close(level["ttft_ms"]["p50"], 200.0)
    assert close(level["tpot_ms"]["mean"], 6.25)


def test_acceptance_length_three_ways() -> None:
    """Pooled is ours; the mean and the token-weighted mean are other people's numbers."""
    assert close(metrics.tau(ONE), 4.81)
    assert close(peers.accepted_per_step(ONE), 4.80)
    assert close(sums_of([ONE, TWO]).tau, 3.873)
    assert close(peers.mean_tau([ONE, TWO]), 3.405)
    assert close(peers.completion_weighted_tau([ONE, TWO]), 4.326)


def test_pooled_tau_is_no_mean_of_means() -> None:
    """(20 tokens in 10 steps) and (200 in 40) are 4.4."""
    level = summarise_level([record("a", 20, 10), record("b", 200, 40)], 2.0, 1).to_json()
    assert level["tau"] == 4.4
    assert level["tau_n"] == 2
    assert (level["tau_per_request"]["n"], level["tau_per_request"]["mean"]) == (2, 3.5)


def test_failed_requests_enter_no_figure() -> None:
    """They are counted, and nothing else of them is."""
    bad = record("bad", 1000, 10, 0.001, error="cut: gone")
    level = summarise_level([record("a"), bad], 1.0, 1).to_json()
    alone = summarise_level([record("a")], 1.0, 1).to_json()
    assert (level["requests"], level["failed"]) == (2, 1)
    assert level | {"requests": 1, "failed": 0} == alone


def test_unknown_is_none_and_json_has_no_nan() -> None:
    """A level without a usable request has None everywhere, and is JSON."""
    level = summarise_level([record("a", error="stall: no byte")], 0.0, 4).to_json()
    assert {level[name] for name in ("output_tok_s", "tau", "ttft_ms", "step_ms", "verify_steps")} == {None}
    json.dumps(level, allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"chunks": ()}, None),
        ({"chunks": ((0.1, 1),), "completion_tokens": 1}, None),
        ({"chunks": ((0.1, 5),), "completion_tokens": 5}, None),
    ],
)
def test_tpot_needs_an_interval(changes: dict[str, object], expected: None) -> None:
    """One chunk has no interval, however many tokens it holds."""
    assert metrics.tpot(record("a", **changes)) is expected


def test_itl_is_unknown_without_counts_by_chunk() -> None:
    """A gap between chunks is never passed off as a gap between tokens."""
    assert metrics.itl(record("a", chunks=((0.1, 0), (0.2, 0)), completion_tokens=7)) == ()


def test_as_many_chunks_as_tokens_are_one_token_each() -> None:
    """The usage comes at the end alone, and no other split is possible."""
    even = record("a", chunks=((0.1, 0), (0.2, 0), (0.4, 0)), completion_tokens=3)
    assert metrics.itl(even) == pytest.approx((0.1, 0.2))


def test_itl_spans_chunks_that_brought_no_token() -> None:
    """Held-back text without a token belongs to the gap before the next token."""
    gaps = metrics.itl(record("a", chunks=((0.1, 1), (0.2, 0), (0.3, 2)), completion_tokens=3))
    assert gaps == pytest.approx((0.1, 0.1))


def test_histogram_and_acceptance_by_position() -> None:
    """Histograms of different lengths add up; a position's share counts all steps that reached it."""
    records = [record("a", histogram=(1, 2, 3)), record("b", histogram=(1, 0)), record("c")]
    total = metrics.histogram_sum(records)
    assert total == (2, 2, 3)
    assert metrics.acceptance_by_position(total or ()) == (5 / 7, 3 / 7)
    assert metrics.histogram_sum([record("c")]) is None


def test_goodput_counts_requests_that_meet_all() -> None:
    """A slow first token or a slow rate drops a request; a one-token answer meets any TPOT."""
    fast, slow = record("fast", 100, seconds=1.0), record("slow", 100, seconds=10.0)
    single = record("single", 1, 1, 0.5, chunks=((0.1, 1),))
    level = summarise_level([fast, slow, single], 2.0, 1, objectives=Objectives(ttft_s=0.2, tpot_s=0.02))
    assert level.goodput == 1.0
    assert summarise_level([fast], 2.0, 1, objectives=Objectives()).goodput is None


def test_client_load_marks_saturation() -> None:
    """Nearly a whole core, or a loop that comes back late."""
    assert not ClientLoad(0.1, 0.002).saturated
    assert ClientLoad(0.95, 0.002).saturated
    assert ClientLoad(0.1, 0.05).saturated
    assert not ClientLoad().saturated


def test_record_round_trip() -> None:
    """Through JSON and back, nothing changes; events carry no text."""
    again = metrics.RequestRecord.from_json(json.loads(json.dumps(fixture_record(histogram=(1, 2)).to_json())))
    assert again == fixture_record(histogram=(1, 2))
    assert not {"text", "chunks", "reasoning"} & ONE.to_json(with_text=False).keys()


def test_sums_add_up() -> None:
    """The sum of two levels is the level of both; counts that only one has are kept."""
    assert sums_of([ONE]) + sums_of([TWO]) == sums_of([ONE, TWO])
    uncounted = sums_of([record("a", accepted_drafts=None)])
    assert (uncounted + sums_of([ONE])).accepted == 380
    assert Sums.from_json(sums_of([ONE]).to_json() | {"later": 1}) == sums_of([ONE])


def test_percentile_interpolates_linearly() -> None:
    """numpy's default method: rank = share · (n − 1)."""
    assert percentile([1, 2, 3, 4], 0.5) == 2.5
    assert percentile([4, 1, 3, 2], 0.9) == pytest.approx(3.7)
    assert percentile([7], 0.99) == 7
    assert percentile([], 0.5) is None


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_spread_is_ordered(values: list[float]) -> None:
    """Percentiles rise and stay within the values."""
    found = spread(values)
    assert found is not None
    assert min(values) <= found.p50 <= found.p90 <= found.p95 <= found.p99 <= max(values)


def test_ratio_of_nothing_is_none() -> None:
    """Neither a division by zero nor an infinity comes out."""
    assert ratio(1, 0) is None
    assert ratio(1e308, 1e-10) is None
