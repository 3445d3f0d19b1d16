"""What a profile gives the language to work with."""

import pytest

from ddconsole.core.config import Algorithm, Config, TopkRule
from ddconsole.core.profile import Profile
from ddconsole.core.queue import Queue
from ddconsole.core.spec import Command, SpecContext, SpecRefusal, parse
from ddconsole.core.spec.context import tied_value


def profile(**knobs: object) -> Profile:
    """A small profile with these knobs."""
    engine = {"command": ["serve"], "model": "m", "drafter": "d"}
    return Profile.model_validate({"schema": 1, "host": "lab", "engine": engine, "knobs": knobs})


def test_defaults_ranges_rule_and_suites_come_from_the_profile() -> None:
    where = SpecContext.of(profile(block_size={"flag": "--n", "default": 6, "min": 4, "max": 12}), Queue())
    assert where.defaults == Config(Algorithm.TREE, block_size=6, budget=12, topk=6, window=2048)
    assert (where.knobs["block_size"].low, where.knobs["block_size"].high) == (4, 12)
    assert where.rule is TopkRule.PR29907
    assert where.suites["confirm"] == ("coding", "throughput", "quality")


def test_a_default_chain_has_no_budget_and_a_tree_is_filled_from_the_knobs() -> None:
    where = SpecContext.of(profile(algorithm={"default": "chain"}), Queue())
    assert where.defaults == Config(Algorithm.CHAIN, block_size=8, window=2048)
    parsed = parse("add algorithm=tree", where)
    assert isinstance(parsed, Command)
    assert parsed.drafts[0].config == Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)


def test_a_tied_knob_takes_its_default_from_the_one_that_it_follows() -> None:
    where = SpecContext.of(profile(budget={"tied": "block_size - 1"}), Queue())
    assert where.defaults.budget == 7
    assert where.knobs["budget"].fixed == "it follows block_size - 1 in this profile"


@pytest.mark.parametrize(
    ("topk", "says"),
    [
        ({"derived": "ddtree-pr29907", "default": 6}, "this engine derives it"),
        ({"default": 6}, "the profile does not say how the engine is told"),
    ],
)
def test_a_knob_that_cannot_be_spelled_cannot_be_set(topk: dict[str, object], says: str) -> None:
    against = parse("add K=4", SpecContext.of(profile(topk=topk), Queue()))
    assert isinstance(against, SpecRefusal)
    assert says in against.reason


def test_a_knobs_own_flag_is_no_argument() -> None:
    against = parse("add arg.speculative_ddtree_budget=4", SpecContext.of(profile(), Queue()))
    assert isinstance(against, SpecRefusal)
    assert "it is spelled budget=…" in against.reason


@pytest.mark.parametrize(
    ("tied", "value"),
    [("block_size - 1", 7), ("block_size", 8), ("block_size*3", 24), ("window + 2", None), ("budget-1", 11)],
)
def test_what_a_tie_comes_to(tied: str, value: int | None) -> None:
    assert tied_value(tied, {"block_size": 8, "budget": 12, "window": None}) == value


def test_a_tie_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a knob and a number"):
        tied_value("block_size / 2", {"block_size": 8})
