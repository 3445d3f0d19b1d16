"""Step time and τ over the budget, and what they say about budgets that nobody measured."""

from typing import Any

import pytest
from fakes.results import measured

from ddconsole.core.stepcost import cost_curves


def tree(budget: int, tau: float, step_ms: float, **changes: Any) -> dict[str, Any]:
    return measured(f"E{budget}", tau / step_ms * 1000, budget=budget, tau=tau, step_ms=step_ms) | {
        "tok_s_decode": tau / step_ms * 1000, **changes,
    }  # fmt: skip


CLIFF = [tree(8, 4.0, 25.0), tree(12, 4.4, 26.0), tree(16, 4.6, 32.0), tree(24, 4.8, 33.0)]
"""τ / step: 160.0, 169.2, 143.8, 145.5 tok/s; a kernel's cliff lies between 12 and 16."""


def test_the_curve_runs_through_every_measured_point() -> None:
    """The cliff stays a cliff: values between two points lie on the straight line between them, none beyond."""
    (curve,) = cost_curves(CLIFF)
    assert curve.label == "tree b 8 K 6 W 2048"
    assert [(point.budget, point.step_ms.value, point.tau.value) for point in curve.points] == [
        (8, pytest.approx(25.0), pytest.approx(4.0)),
        (12, pytest.approx(26.0), pytest.approx(4.4)),
        (16, pytest.approx(32.0), pytest.approx(4.6)),
        (24, pytest.approx(33.0), pytest.approx(4.8)),
    ]
    assert [curve.step_ms_at(budget) for budget in (8, 14, 20, 24)] == pytest.approx([25.0, 29.0, 32.5, 33.0])
    assert curve.tau_at(20) == pytest.approx(4.7)
    assert (curve.step_ms_at(7), curve.tau_at(25)) == (None, None)


def test_segments_say_what_was_won_and_what_was_paid() -> None:
    """12 → 16: τ +4.5 %, step +23.1 %: 1.0455/1.2308 − 1 = −15.1 %."""
    (curve,) = cost_curves(CLIFF)
    cliff = curve.segments[1]
    assert (cliff.tau_pct, cliff.step_pct, cliff.net_pct) == (
        pytest.approx(4.545, abs=1e-3), pytest.approx(23.077, abs=1e-3), pytest.approx(-15.057, abs=1e-3),
    )  # fmt: skip
    assert cliff.text == "B 12 → 16: τ +4.5 %, step +23.1 %: lost 15.1 % on cost"
    assert curve.segments[0].text.endswith("won 5.8 %")
    worse = cost_curves([tree(8, 4.0, 25.0), tree(12, 3.6, 25.0), tree(16, 3.6, 26.0)])[0].segments
    assert worse[0].text.endswith("lost 10.0 % on acceptance")


def test_decode_is_tau_over_step() -> None:
    """Both are shown, so that the reader can divide."""
    (curve,) = cost_curves(CLIFF)
    point = curve.points[1].to_json()
    assert point["tau_over_step_tok_s"] == pytest.approx(4.4 / 26 * 1000, abs=1e-3)
    assert point["tok_s_decode"] == pytest.approx(169.2308, abs=1e-3)


def test_estimates_are_bounded_by_their_neighbours() -> None:
    """Beside the best (B 12): at 14 the lines meet at 4.5 / 29 ms = 155, between 4.4/32 and 4.6/26."""
    (curve,) = cost_curves(CLIFF)
    assert curve.best.budget == 12
    left, right = curve.estimates
    assert (left.budget, left.between) == (10, (8, 12))
    assert (right.budget, right.rate) == (14, pytest.approx(4.5 / 29 * 1000))
    assert (right.low, right.high) == (pytest.approx(4.4 / 32 * 1000), pytest.approx(4.6 / 26 * 1000))
    assert "estimate, not measured: B" in curve.text
    assert curve.to_json()["estimates"][0]["estimate"] is True


def test_beyond_the_last_budget_by_its_last_slope() -> None:
    """While the largest is the best. 16 → 24 goes on to 32: τ 4.8 + 0.2 or nothing, step 26.5 + .5, at worst the
    steepest slope so far, at best level."""
    (curve,) = cost_curves([tree(8, 4.0, 25.0), tree(16, 4.6, 26.0), tree(24, 4.8, 26.5)])
    (inside, beyond) = curve.estimates
    assert inside.budget == 20
    assert (beyond.budget, beyond.between) == (32, (24, None))
    assert beyond.rate == pytest.approx(5.0 / 27.0 * 1000)
    assert beyond.low == pytest.approx(4.8 / (26.5 + 1.0) * 1000)
    assert beyond.high == pytest.approx(5.0 / 26.5 * 1000)


def test_nothing_to_gain_is_said() -> None:
    """Neighbours one apart leave no budget between them."""
    (curve,) = cost_curves([tree(8, 4.0, 25.0), tree(9, 4.4, 26.0), tree(10, 4.4, 32.0)])
    assert curve.estimates == ()
    assert curve.text.endswith("no budget beside it can beat it by these curves")


def test_three_budgets_of_otherwise_equal_trees_are_needed() -> None:
    """Another block size, K, host, workload or engine is another curve; chains and failures are on none."""
    two = [tree(8, 4.0, 25.0), tree(12, 4.4, 26.0)]
    config = two[0]["config"]
    others = [
        tree(16, 4.6, 32.0, config=config | {"budget": 16, "topk": 2}),
        tree(17, 4.6, 32.0, measured_on="other"),
        tree(18, 4.6, 32.0, engine_version="0.5.11"),
        tree(19, 4.6, 32.0, outcome="failed"),
        tree(20, 4.6, 32.0) | {"step_ms": None},
        measured("E21", 100, budget=None),
        tree(12, 4.4, 26.0, id="E22", boot="again"),
    ]
    assert cost_curves([*two, *others]) == ()
    (curve,) = cost_curves([*two, *others, tree(32, 5.0, 40.0)])
    assert [point.ids for point in curve.points] == [("E8",), ("E12", "E22"), ("E32",)]
