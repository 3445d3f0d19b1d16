"""An anchor is proposed between the others, so that drift can be seen; nothing is changed until it is taken."""

import math
from dataclasses import replace

import pytest
from fakes.queues import CHAIN, TREE, applied, begun, ended, line, refused
from fakes.results import measured

from ddconsole.core.anchor import propose_anchors
from ddconsole.core.config import Config, Effective, TopkRule, effective_config
from ddconsole.core.drift import drifts
from ddconsole.core.experiment import Origin
from ddconsole.core.order import Proposal
from ddconsole.core.queue import Add, Draft, Queue, Redo, Undo, by_id


def effective(config: Config) -> Effective:
    """An engine that derives its K and only caps it."""
    return effective_config(config, TopkRule.PR29907)


def trees(count: int, *first: Draft) -> Queue:
    """A queue of some drafts and then as many trees, every one another engine."""
    drafts = [*first, *(Draft(replace(TREE, budget=12 + 4 * number)) for number in range(count))]
    return applied(Queue(), Add(tuple(drafts), Origin()))


def proposed(queue: Queue, **more: object) -> Proposal:
    """At the block size that the drafter was trained at."""
    return propose_anchors(queue, effective, **({"trained_block_size": 8} | more))  # type: ignore[arg-type]


def taken(queue: Queue, proposal: Proposal) -> Queue:
    """The queue after the proposal was accepted."""
    assert proposal.edit is not None
    return applied(queue, proposal.edit)


def test_a_measured_chain_is_measured_again_first_last_and_between() -> None:
    queue = ended(trees(8, Draft(CHAIN)), "E1")
    proposal = proposed(queue)
    new = ("E10", "E11", "E12")
    assert proposal.ids == ("E10", "E2", "E3", "E4", "E5", "E11", "E6", "E7", "E8", "E9", "E12")
    assert (proposal.boots_before, proposal.boots_after) == (8, 11)
    assert all(proposal.why[id_] == "anchor: E1 again" for id_ in new)
    after = taken(queue, proposal)
    assert line(after) == list(proposal.ids)
    for id_ in new:
        item = by_id(after, id_)
        assert item is not None
        assert (item.config, item.suite, item.passes, item.repeats) == (CHAIN, "quick", ("coding",), 1)
        assert (item.origin.verb, item.note) == ("anchor", "anchor: repeats E1, to see drift")


def test_one_undo_takes_all_of_it_back() -> None:
    """The order too."""
    queue = trees(5, Draft(replace(TREE, budget=60)), Draft(CHAIN))
    after = applied(taken(queue, proposed(queue)), Undo())
    assert line(after) == line(queue)
    assert len(queue.history.undo) == len(after.history.undo)
    again = applied(after, Redo())
    assert line(again) == line(taken(queue, proposed(queue)))


def test_a_queued_control_is_the_first_of_them_and_accepting_twice_adds_nothing() -> None:
    queue = trees(4, Draft(replace(TREE, budget=60)), Draft(CHAIN))
    proposal = proposed(queue)
    assert (proposal.ids[0], len(proposal.drafts), proposal.why["E2"]) == ("E2", 2, "the anchor")
    after = taken(queue, proposal)
    assert proposed(after).edit is None


def test_every_says_how_many_others_stand_between() -> None:
    queue = ended(trees(8, Draft(CHAIN)), "E1")
    assert [len(proposed(queue, every=every).drafts) for every in (1, 2, 4, 100)] == [9, 5, 3, 3]


def test_the_running_chain_is_the_first_anchor() -> None:
    queue = begun(trees(4, Draft(CHAIN)), "E1")
    assert proposed(queue).ids == ("E2", "E3", "E6", "E4", "E5", "E7")


def test_the_trained_block_size_comes_before_another_and_the_best_only_without_a_chain() -> None:
    other = replace(CHAIN, block_size=16)
    both = ended(ended(trees(3, Draft(CHAIN), Draft(other)), "E1"), "E2")
    assert proposed(both).drafts[0].config == CHAIN
    no_chain = ended(trees(4), "E1")
    assert proposed(no_chain, best="E1").drafts[0].config == TREE


def test_without_an_anchor_or_without_others_it_says_why() -> None:
    assert "no chain is queued" in proposed(trees(4)).none
    assert "fewer than two" in proposed(trees(1, Draft(CHAIN))).none
    failed = ended(trees(4, Draft(CHAIN)), "E1", "wrong")
    assert (proposed(failed).edit, "no chain is queued" in proposed(failed).none) == (None, True)


def test_what_is_required_or_requires_keeps_its_place() -> None:
    queue = trees(3, Draft(CHAIN))
    items = tuple(replace(item, requires="E1") if item.id == "E3" else item for item in queue.items)
    ids = proposed(replace(queue, items=items)).ids
    assert ids.index("E1") < ids.index("E3")


def test_it_holds_only_at_the_revision_that_it_was_made_for() -> None:
    """Its ids are those that come next: somebody else may have taken them meanwhile."""
    queue = ended(trees(4, Draft(CHAIN)), "E1")
    proposal = proposed(queue)
    assert proposal.edit is not None
    moved = applied(queue, Add((Draft(TREE, repeats=3),), Origin()))
    assert refused(moved, proposal.edit).code == "stale"


def test_what_the_anchors_measure_is_what_drift_reads() -> None:
    """The chain's own result and its three short repeats are one group; the host lost 2 % an hour."""
    queue = ended(trees(8, Draft(CHAIN)), "E1")
    rows = []
    for hour, id_ in enumerate(("E1", *proposed(queue).ids)):
        drifted = math.exp(math.log(0.98) * hour)
        is_anchor = id_ == "E1" or id_ not in line(queue)
        rate, budget = (100.0, None) if is_anchor else (120.0 + int(id_[1:]), 10 + int(id_[1:]))
        rows.append(measured(id_, rate * drifted, budget=budget, hour=hour))
    (drift,) = drifts(rows)
    assert drift.anchors == ("E1", "E10", "E11", "E12")
    assert drift.pct_per_hour == pytest.approx(-2.0)
