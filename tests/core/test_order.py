"""Another order is proposed, never made: fewest restarts, or what tells most first."""

from dataclasses import replace
from typing import Literal

import pytest
from fakes.queues import CHAIN, TREE, applied, begun, ended, line
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core.config import Config, Effective, TopkRule, effective_config
from ddconsole.core.experiment import Origin
from ddconsole.core.order import engine_kept, propose
from ddconsole.core.queue import Add, Draft, Hold, Queue

WAYS: tuple[Literal["restarts", "information"], ...] = ("restarts", "information")
WIDE = replace(TREE, block_size=32, budget=124)


def effective(config: Config) -> Effective:
    """An engine that derives its K and only caps it."""
    return effective_config(config, TopkRule.PR29907)


def queue_of(*configs: Config | Draft) -> Queue:
    """E1, E2 … with these configs."""
    drafts = tuple(each if isinstance(each, Draft) else Draft(each) for each in configs)
    return applied(Queue(), Add(drafts, Origin()))


def test_equal_engines_stand_side_by_side_in_the_order_of_the_first_of_each() -> None:
    """A cap on K that is never reached makes no other engine; equal ones keep their order."""
    queue = queue_of(TREE, CHAIN, replace(TREE, topk=4), CHAIN)
    proposal = propose(queue, "restarts", effective)
    assert (proposal.ids, proposal.boots_before, proposal.boots_after) == (("E1", "E3", "E2", "E4"), 4, 2)
    assert line(queue) == ["E1", "E2", "E3", "E4"]
    assert proposal.edit is not None
    assert line(applied(queue, proposal.edit)) == ["E1", "E3", "E2", "E4"]


def test_the_engine_that_is_up_is_used_first() -> None:
    queue = begun(queue_of(CHAIN, TREE, Draft(CHAIN, repeats=2)), "E1")
    proposal = propose(queue, "restarts", effective)
    assert (proposal.ids, proposal.saved_boots) == (("E3", "E2"), 1)


def test_what_is_in_the_best_order_is_left_alone() -> None:
    proposal = propose(queue_of(TREE, TREE, CHAIN), "restarts", effective)
    assert (proposal.edit, proposal.saved_boots) == (None, 0)
    assert propose(Queue(), "restarts", effective).edit is None
    assert propose(Queue(), "information", effective).edit is None


def test_held_ones_keep_their_places() -> None:
    queue = applied(queue_of(TREE, WIDE, CHAIN, TREE), Hold(("E2",)))
    proposal = propose(queue, "restarts", effective)
    assert proposal.edit is not None
    assert line(applied(queue, proposal.edit)) == ["E1", "E2", "E4", "E3"]


def test_a_config_that_is_bound_at_start_counts_as_a_start_of_its_own() -> None:
    queue = queue_of(Draft(TREE, base_best=True), Draft(TREE, base_best=True), TREE)
    assert propose(queue, "restarts", effective).boots_before == 3
    assert engine_kept(queue, effective) == frozenset()


def test_the_engine_is_kept_over_a_held_one_and_from_the_running_one() -> None:
    queue = applied(begun(queue_of(TREE, TREE, CHAIN, TREE, TREE), "E1"), Hold(("E3",)))
    assert engine_kept(queue, effective) == {"E2", "E4", "E5"}


def test_controls_come_first_then_what_is_farthest_from_all_that_is_known() -> None:
    queue = queue_of(replace(TREE, budget=14), replace(TREE, budget=13), WIDE, CHAIN)
    proposal = propose(queue, "information", effective)
    assert proposal.ids == ("E4", "E3", "E1", "E2")
    assert (proposal.why["E4"], proposal.why["E3"]) == ("a control", "far from E4, the nearest before it")


def test_what_was_measured_counts_as_known() -> None:
    queue = ended(queue_of(WIDE, replace(WIDE, budget=120), TREE), "E1")
    assert propose(queue, "information", effective).ids == ("E3", "E2")


def test_the_same_knobs_again_tell_least() -> None:
    proposal = propose(queue_of(TREE, Draft(TREE, repeats=3), WIDE), "information", effective)
    assert proposal.ids == ("E1", "E3", "E2")
    assert proposal.why["E2"] == "the same knobs as E1"


@given(st.lists(st.tuples(st.sampled_from([TREE, CHAIN, WIDE]), st.sampled_from([None, "E1", "E2", "E3"])), max_size=7))
def test_any_order_keeps_everybody_and_costs_no_restart_and_breaks_no_condition(rows: list[tuple[Config, str]]) -> None:
    """Whatever waits for whom, rings included."""
    queue = queue_of(*(config for config, _ in rows)) if rows else Queue()
    items = tuple(
        replace(item, requires=None if item.id == required else required)
        for item, (_, required) in zip(queue.items, rows, strict=True)
    )
    queue = replace(queue, items=items)
    for by in WAYS:
        proposal = propose(queue, by, effective)
        assert sorted(proposal.ids) == sorted(proposal.before)
        if by == "restarts":
            assert proposal.saved_boots >= 0
    free = all(item.requires is None for item in items)
    if free:
        assert propose(queue, "restarts", effective).boots_after == len({config for config, _ in rows})
    chained = [item for item in items if item.requires in {"E1"} and items[0].requires is None]
    ids = propose(queue, "information", effective).ids
    assert all(ids.index("E1") < ids.index(item.id) for item in chained)


@pytest.mark.parametrize("by", WAYS)
def test_a_condition_is_respected(by: Literal["restarts", "information"]) -> None:
    """E3 equals E1, but has to wait for E2."""
    queue = queue_of(TREE, WIDE, TREE)
    queue = replace(queue, items=(*queue.items[:2], replace(queue.items[2], requires="E2")))
    ids = propose(queue, by, effective).ids
    assert ids.index("E2") < ids.index("E3")
