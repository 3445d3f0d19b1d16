"""Small statistics against published tables and hand counts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core.stats import pass_at_k, small_sample_stretch, t_95


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.706), (2, 4.303), (7, 2.365), (30, 2.042), (40, 2.021), (60, 2.0003), (120, 1.980)]
)
def test_students_t(freedom: int, value: float) -> None:
    """The 97.5 % column of every printed table."""
    assert t_95(freedom) == pytest.approx(value, abs=0.002)


def test_t_needs_a_degree_of_freedom() -> None:
    """A spread of one value is none."""
    with pytest.raises(ValueError, match="degree of freedom"):
        t_95(0)


@pytest.mark.parametrize(
    ("count", "value"), [(3, math.sqrt(3 / 2) * 4.303 / 1.96), (8, math.sqrt(8 / 7) * 2.365 / 1.96), (1000, 1.0)]
)
def test_stretch(count: int, value: float) -> None:
    """√(n/(n − 1)) · t/z; nothing for many."""
    assert small_sample_stretch(count) == pytest.approx(value, rel=0.002)


@pytest.mark.parametrize(
    ("samples", "passed", "k", "value"),
    [(5, 3, 1, 0.6), (5, 0, 1, 0.0), (5, 5, 1, 1.0), (5, 3, 2, 0.9), (5, 4, 2, 1.0), (10, 3, 5, 1 - 21 / 252)],
)
def test_pass_at_k(samples: int, passed: int, k: int, value: float) -> None:
    """1 − C(n − c, k)/C(n, k): 5 samples, 3 passed, k 2 leave 1 pair of 10; 10, 3, 5 leave C(7,5) of C(10,5)."""
    assert pass_at_k(samples, passed, k) == pytest.approx(value)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_1_is_the_share(counts: tuple[int, int]) -> None:
    """c/n, whatever n."""
    samples, passed = counts
    assert pass_at_k(samples, passed) == pytest.approx(passed / samples)


@pytest.mark.parametrize(("samples", "passed", "k"), [(5, 6, 1), (0, 0, 1), (3, 1, 4), (3, -1, 1)])
def test_impossible_counts_are_refused(samples: int, passed: int, k: int) -> None:
    """Rather than answered with a number."""
    with pytest.raises(ValueError, match="needs"):
        pass_at_k(samples, passed, k)
