"""Doubles, the missing control, and `base=best`."""

from dataclasses import replace

import pytest
from fakes.queues import CHAIN, KNOBS, NOW, TREE, applied, begun, context, ended, queue_of

from ddconsole.core.config import Config, Effective, TopkRule, effective_config
from ddconsole.core.experiment import Experiment, Origin, Queued, Workload
from ddconsole.core.queue import Add, Draft, Hold, Queue, Refusal, Remove
from ddconsole.core.spec import Duplicate, KnobRule, bind_best, duplicates, missing_control, standing_work


def effective(config: Config) -> Effective:
    """An engine that derives its K and only caps it."""
    return effective_config(config, TopkRule.PR29907)


def only(draft: Draft, queue: Queue) -> Duplicate | None:
    """The double of one draft."""
    (found,) = duplicates([("E9", draft)], standing_work(queue, effective), effective)
    return found


def test_two_configs_with_the_same_effective_values_are_the_same_work() -> None:
    """A cap on K that the engine never reaches makes no other engine."""
    assert only(Draft(replace(TREE, topk=4)), queue_of(1)) == Duplicate("E1", "queued")
    assert only(Draft(replace(TREE, topk=1)), queue_of(1)) is None


@pytest.mark.parametrize(
    ("queue", "state"),
    [
        (queue_of(1), "queued"),
        (applied(queue_of(1), Hold(("E1",))), "held"),
        (begun(queue_of(1), "E1"), "running"),
        (ended(queue_of(1), "E1"), "measured"),
        (ended(queue_of(1), "E1", "wrong"), "measured"),
    ],
)
def test_work_that_is_there_is_named_with_its_state(queue: Queue, state: str) -> None:
    assert only(Draft(TREE), queue) == Duplicate("E1", state)


@pytest.mark.parametrize("queue", [applied(queue_of(1), Remove(("E1",))), ended(queue_of(1), "E1", "failed")])
def test_work_without_a_number_is_no_double(queue: Queue) -> None:
    assert only(Draft(TREE), queue) is None


@pytest.mark.parametrize(
    "draft",
    [
        Draft(replace(TREE, window=1024)),
        Draft(TREE, repeats=2),
        Draft(TREE, suite="confirm"),
        Draft(TREE, passes=("coding",)),
        Draft(TREE, base_best=True),
        Draft(None, note="an idea"),
    ],
)
def test_other_work_is_no_double(draft: Draft) -> None:
    assert only(draft, queue_of(1)) is None


def test_the_order_of_the_passes_does_not_matter() -> None:
    assert only(Draft(TREE, passes=("throughput", "coding")), queue_of(1)) == Duplicate("E1", "queued")


def test_work_of_another_profile_is_named_with_it_under_the_same_workload_alone() -> None:
    mine, other = Workload(), Workload(prompts="long")
    there = standing_work(ended(queue_of(1), "E1"), effective, mine, profile="lab")
    assert duplicates([("E9", Draft(TREE))], there, effective, mine) == (Duplicate("lab:E1", "measured"),)
    assert duplicates([("E9", Draft(TREE))], there, effective, other) == (None,)


def test_what_was_measured_before_the_profile_got_another_workload_is_no_double() -> None:
    """The queued one is going to be measured under the present workload, whatever it was queued under."""
    before = {"E1": Workload(prompts="long")}
    there = standing_work(ended(queue_of(2), "E1"), effective, measured_under=before)
    assert duplicates([("E9", Draft(TREE))], there, effective) == (None,)
    assert duplicates([("E9", Draft(replace(TREE, budget=16)))], there, effective) == (Duplicate("E2", "queued"),)


def test_waiting_work_is_named_before_measured_work() -> None:
    queue = applied(ended(queue_of(1), "E1"), Add((Draft(TREE),), Origin()))
    assert only(Draft(TREE), queue) == Duplicate("E2", "queued")


def test_a_double_inside_one_spec_is_pointed_out() -> None:
    found = duplicates([("E8", Draft(TREE)), ("E9", Draft(replace(TREE, topk=5)))], {}, effective)
    assert found == (None, Duplicate("E8", "this spec"))


def test_a_tree_without_its_control_offers_the_chain_at_the_trained_block_size() -> None:
    tree = Draft(replace(TREE, block_size=16, budget=26), suite="confirm", repeats=3)
    control = missing_control([tree], (), context(), trained_block_size=8)
    assert control == Draft(CHAIN, suite="confirm", repeats=3)


def test_a_control_that_is_planned_queued_or_measured_is_not_offered() -> None:
    tree, chain = Draft(TREE), Draft(CHAIN)
    queued = standing_work(applied(Queue(), Add((chain,), Origin())), effective)
    assert missing_control([tree, chain], (), context(), 8) is None
    assert missing_control([tree], queued, context(), 8) is None
    assert missing_control([replace(tree, suite="confirm", repeats=3)], queued, context(), 8) is None
    assert missing_control([tree], queued, context(), 8, Workload(prompts="long")) is not None
    assert missing_control([chain], (), context(), 8) is None


def late(config: Config, *pinned: str) -> Experiment:
    """An experiment that binds the rest at start."""
    return Experiment("E5", config, Queued(), NOW, base_best=True, pinned=pinned)


def test_the_best_so_far_gives_what_is_not_pinned() -> None:
    best = replace(TREE, budget=20, topk=3, window=512, args=(("x", "1"), ("y", "2")))
    own = late(replace(TREE, block_size=16, args=(("y", "9"),)), "block_size", "arg.y")
    assert bind_best(own, best, context()) == replace(best, block_size=16, args=(("x", "1"), ("y", "9")))


def test_a_pinned_knob_that_the_best_does_not_have_is_refused_with_the_reason() -> None:
    against = bind_best(late(TREE, "budget"), CHAIN, context())
    assert isinstance(against, Refusal)
    assert "E5 pins budget, and the best so far is algorithm=chain" in against.reason
    assert bind_best(late(TREE, "budget", "algorithm"), CHAIN, context()) == TREE


def test_a_tied_knob_follows_the_bound_ones() -> None:
    tied = context(knobs=dict(KNOBS) | {"budget": KnobRule(high=512, tied="block_size - 1", fixed="tied")})
    best = replace(TREE, budget=7)
    bound = bind_best(late(replace(TREE, block_size=16, budget=15), "block_size"), best, tied)
    assert bound == replace(best, block_size=16, budget=15)
