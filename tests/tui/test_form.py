"""The form's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tui.story import queue_item, tree

from ddconsole.core.config import Algorithm
from ddconsole.core.profile import Knob, Knobs
from ddconsole.tui import form

KNOBS = Knobs(block_size=Knob(flag="--b", default=8, min=2, max=32))
PLAIN = form.defaults(KNOBS, ("coding", "throughput"))


def typed(**numbers: str) -> form.Typed:
    """The default form with some numbers typed over."""
    return replace(PLAIN, numbers={**PLAIN.numbers, **numbers})


def test_defaults_are_a_config() -> None:
    """What the form opens with can be taken as it is."""
    read = form.read(PLAIN, KNOBS)
    assert read.config == tree(8, 12)
    assert read.effective is not None
    assert read.effective.topk == 2


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("block_size", "64", "must be 2 to 32"),
        ("block_size", "", "must not be empty"),
        ("budget", "many", "a whole number is needed"),
        ("budget", "12.5", "a whole number is needed"),
        ("window", "4", "must be at least the block size, 8"),
        ("repeats", "0", "must be 1 to 100"),
    ],
)
def test_a_bad_field_has_a_reason(name: str, value: str, reason: str) -> None:
    """The reason stands at the field that it is about."""
    read = form.read(typed(**{name: value}), KNOBS)
    assert read.config is None
    assert read.problems == {name: reason}


def test_no_pass_is_a_problem() -> None:
    """An experiment measures something."""
    assert "passes" in form.read(replace(PLAIN, passes=()), KNOBS).problems


@pytest.mark.parametrize("algorithm", ["chain", "off"])
def test_fields_that_an_algorithm_lacks_are_not_looked_at(algorithm: str) -> None:
    """A bad budget does not stand in the way of a chain."""
    read = form.read(replace(typed(budget="many", topk="x"), algorithm=algorithm), KNOBS)
    assert read.config is not None
    assert read.config.algorithm is Algorithm(algorithm)
    assert read.config.budget is None


def test_an_item_survives_the_form() -> None:
    """Opening and taking a form changes nothing, further arguments included."""
    config = replace(tree(16, 26, 4, 512), args=(("page-size", "1"),))
    item = queue_item("E5", config, repeats=3, note="why not")
    read = form.read(form.of_item(item, KNOBS, ("coding",)), KNOBS)
    assert (read.config, read.repeats, read.note) == (config, 3, "why not")


def test_an_engines_own_default_stays_unset() -> None:
    """An empty topk or window leaves the choice to the engine."""
    config = replace(tree(16, 26), topk=None, window=None)
    read = form.read(form.of_item(queue_item("E5", config), KNOBS, ("coding",)), KNOBS)
    assert read.config == config
