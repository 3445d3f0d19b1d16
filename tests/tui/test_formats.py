"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.tui import formats


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0, "0s"), (9.4, "9s"), (59.4, "59s"), (59.6, "1:00"), (372, "6:12"), (3599.9, "1:00:00"),
     (3753, "1:02:33"), (-3, "0s"), (float("nan"), "–"), (float("inf"), "–")],
)  # fmt: skip
def test_span(seconds: float | None, text: str) -> None:
    """A measured time has minutes and seconds; an unknown one is a dash."""
    assert formats.span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (45, "45 s"), (89, "89 s"), (540, "9 min"), (3_600, "1 h"), (4_800, "1 h 20 min"),
     (86_400, "1 d"), (97_200, "1 d 3 h"), (float("nan"), "–")],
)  # fmt: skip
def test_about(seconds: float | None, text: str) -> None:
    """An estimate is no finer than it deserves."""
    assert formats.about(seconds) == text


def test_unknown_numbers_are_dashes_never_zeros() -> None:
    """None is not 0, in every form there is."""
    said = [formats.number(None), formats.percent(None), formats.size(None), formats.delta(None, None)]
    assert said == ["–"] * 4
    assert formats.number(0) == "0"
    assert formats.percent(0) == "0%"


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (8_200_000, "8.2 MB"), (612e9, "612 GB"),
                                              (1.4e12, "1.4 TB")])  # fmt: skip
def test_size(count: float, text: str) -> None:
    """Bytes in powers of ten."""
    assert formats.size(count) == text


def test_delta_shows_its_interval() -> None:
    """A change stands with the half width of its interval."""
    assert formats.delta(12.4, 3.1) == "+12.4 ±3.1%"
    assert formats.delta(-2.0, None) == "-2.0%"


@given(st.one_of(st.none(), st.floats(0, 1)), st.integers(0, 80))
def test_bar_has_exactly_its_width(fraction: float | None, width: int) -> None:
    """Whatever the fraction, a bar never moves what stands beside it."""
    filled, empty = formats.bar(fraction, width)
    assert len(filled) + len(empty) == width


@given(st.floats(0, 0.9999), st.integers(1, 80))
def test_bar_is_full_only_when_all_is_done(fraction: float, width: int) -> None:
    """63 of 64 must not look like 64 of 64."""
    filled, empty = formats.bar(fraction, width)
    assert empty or filled.endswith(formats.HALF)
    assert formats.bar(1.0, width) == (formats.FULL * width, "")


@given(st.lists(st.one_of(st.none(), st.floats(-10, 500)), max_size=300), st.integers(0, 60))
def test_spark_has_exactly_its_width(values: list[float | None], width: int) -> None:
    """A sparkline is as wide as asked, whatever was measured."""
    assert len(formats.spark(values, width)) == width


def test_spark_leaves_a_gap_where_nothing_is_known() -> None:
    """An unknown value is blank, zero is the lowest mark, and the top is the highest."""
    assert formats.spark([None, 0, 100], 4) == "  ▁▇"
