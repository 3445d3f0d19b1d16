"""JSON that a terminal shows without obeying it, and that loses nothing."""

from __future__ import annotations

import json

import pytest
from fakes.hostile import HOSTILE, harmful
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core.json_line import json_line


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_harmful_stands_in_it_and_nothing_is_lost(name: str) -> None:
    """The corpus as a value and as a key."""
    value = {HOSTILE[name]: [HOSTILE[name], 1, None]}
    line = json_line(value)
    assert harmful(line) == []
    assert json.loads(line) == value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_any_value_comes_back(value: object) -> None:
    """Whatever JSON can hold, on one line."""
    line = json_line(value)
    assert json.loads(line) == value
    assert "\n" not in line


def test_what_is_no_number_is_refused() -> None:
    """NaN is a bug of ours."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_line(float("nan"))
