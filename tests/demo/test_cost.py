"""The stated cost of time."""

from __future__ import annotations

import pytest

from ddconsole.demo.cost import CostModel


def test_a_step_costs_what_the_formula_says() -> None:
    """Fixed parts, nodes of the whole batch, its square, and context."""
    cost = CostModel(draft_ms=10, target_ms=20, node_ms=1, convex_ms=0.5, context_ms=0.01)
    assert cost.step_s([2, 2], [100, 100], drafted=True) == pytest.approx((30 + 4 + 8 + 2) / 1000)
    assert cost.step_s([1], [0], drafted=False) == pytest.approx(21.5 / 1000)


def test_scale_multiplies_everything() -> None:
    """A scale of 0.1 makes every step and every prefill ten times faster."""
    slow, fast = CostModel(), CostModel(scale=0.1)
    assert fast.step_s([13], [500], drafted=True) == pytest.approx(slow.step_s([13], [500], drafted=True) / 10)
    assert fast.prefill_s(700) == pytest.approx(slow.prefill_s(700) / 10)


def test_batches_share_the_fixed_part() -> None:
    """Four requests at once cost more than one and much less than four."""
    cost = CostModel()
    one, four = (cost.step_s([13] * count, [300] * count, drafted=True) for count in (1, 4))
    assert one < four < 2 * one
