"""Whether the host got slower while configs were measured."""

import math

import pytest
from fakes.results import measured

from ddconsole.core.boots import Known
from ddconsole.core.compare import compare
from ddconsole.core.drift import drifts, hour_of, sessions


def anchored(per_hour: float, noise: tuple[float, ...] = (0.0,) * 5) -> list[dict[str, object]]:
    """A chain measured each hour from 0 to 4 while the host gets slower by `per_hour`; a tree between."""
    chain = [
        measured(f"E{hour}", 100 * math.exp(per_hour * hour) * (1 + wobble), budget=None, hour=hour)
        for hour, wobble in enumerate(noise)
    ]
    return [*chain, measured("E9", 120 * math.exp(per_hour * 3.5), budget=16, hour=3.5)]


def test_a_slope_is_found_exactly() -> None:
    """−2 % an hour without noise: the slope to the last digit, and an interval of nothing around it."""
    (drift,) = drifts(anchored(math.log(0.98)))
    assert drift.found
    assert drift.pct_per_hour == pytest.approx(-2.0)
    assert drift.low_pct_per_hour == pytest.approx(-2.0)
    assert (drift.anchors, drift.hours) == (("E0", "E1", "E2", "E3", "E4"), pytest.approx(4.0))
    assert drift.text.startswith("drift: -2.0 %/hour")


def test_least_squares_by_hand() -> None:
    """ln y = 0, .02, .01 at 0, 1, 2 h: slope .005, residual variance (.005·2²+… )/1, t(1) = 12.706."""
    rows = [measured(f"E{n}", 100 * math.exp(log), budget=None, hour=n) for n, log in enumerate((0.0, 0.02, 0.01))]
    (drift,) = drifts(rows)
    slope = 0.005
    left = sum((log - 0.01 - slope * (hour - 1)) ** 2 for hour, log in enumerate((0.0, 0.02, 0.01)))
    half = 12.706 * math.sqrt(left / 1 / 2)
    assert drift.pct_per_hour == pytest.approx((math.exp(slope) - 1) * 100)
    assert drift.high_pct_per_hour == pytest.approx((math.exp(slope + half) - 1) * 100)
    assert not drift.found
    assert drift.text.startswith("drift: none found")


def test_configs_share_the_slope_and_keep_their_levels() -> None:
    """A fast and a slow config, each twice: their difference is no drift."""
    rows = [measured("E1", 100, budget=None), measured("E2", 200, hour=1), measured("E3", 99, budget=None, hour=2),
            measured("E4", 198, hour=3)]  # fmt: skip
    (drift,) = drifts(rows)
    assert drift.pct_per_hour == pytest.approx((math.exp(math.log(0.99) / 2) - 1) * 100)


def test_without_repeats_nothing_is_said() -> None:
    """Each config once: no anchor, and the text says what to do. A quarter of an hour is too short."""
    (drift,) = drifts([measured("E1", 100), measured("E2", 90, budget=16, hour=1)])
    assert (drift.pct_per_hour, drift.found) == (None, False)
    assert "`queue P order --by drift`" in drift.text
    (short,) = drifts([measured(f"E{n}", 100 - n, hour=n / 100) for n in range(5)])
    assert short.pct_per_hour is None


def test_comparisons_across_a_drift_are_flagged() -> None:
    """Two hours at −2 % an hour are −4 %; neighbours are not flagged, nor results of another night."""
    rows = anchored(math.log(0.98))
    late, early = rows[-1], rows[0]
    found = compare(late, early, Known(rows))
    assert found is not None
    assert "3.5 h lie between them, and the host drifted -6.8 %" in found.drift
    assert found.drift in found.text
    near = compare(late, measured("E8", 110, budget=8, hour=3.4), Known(rows))
    assert near is not None
    assert near.drift == ""
    steady = anchored(0.0)
    calm = compare(steady[-1], steady[0], Known(steady))
    assert calm is not None
    assert calm.drift == ""


def test_sessions_end_at_a_pause_and_at_another_host() -> None:
    """Five hours without a result, or another machine, begin a new one."""
    rows = [measured("E1", 100), measured("E2", 100, hour=3), measured("E3", 100, hour=8.5),
            measured("E4", 100, hour=1, measured_on="other")]  # fmt: skip
    assert [[item["id"] for item in session] for session in sessions(rows)] == [["E1", "E2"], ["E3"], ["E4"]]
    assert hour_of({"finished_at": "no time"}) is None
    assert drifts([measured("E1", 100, finished_at=None)]) == ()
