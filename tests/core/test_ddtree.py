"""The draft tree's mathematics, by property and against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.core.ddtree import (
    ROOT,
    Tree,
    build_chain,
    build_tree,
    expected_acceptance,
    reachable_nodes,
    verify,
)


@st.composite
def marginals(draw: st.DrawFn, max_depth: int = 4, max_width: int = 4) -> list[list[tuple[int, float]]]:
    """For each depth a normalised distribution over a few tokens, in descending order."""
    depths = []
    for _ in range(draw(st.integers(1, max_depth))):
        weights = draw(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=max_width))
        total = sum(weights) * 1.1
        depths.append([(token, math.log(w / total)) for token, w in enumerate(sorted(weights, reverse=True))])
    return depths


def paths(tree: Tree) -> set[tuple[int, ...]]:
    return {tree.path(index) for index in range(len(tree.nodes))}


def every_prefix(depths: list[list[tuple[int, float]]], topk: int) -> dict[tuple[int, ...], float]:
    """All prefixes with their log-probabilities, by brute force."""
    found = {}
    for depth in range(1, len(depths) + 1):
        for combination in itertools.product(*(offers[:topk] for offers in depths[:depth])):
            found[tuple(token for token, _ in combination)] = sum(log_prob for _, log_prob in combination)
    return found


@given(marginals(), st.integers(0, 30), st.integers(1, 5))
def test_tree_is_closed_under_prefixes(depths: list[list[tuple[int, float]]], budget: int, topk: int) -> None:
    """Each node's parent is an earlier node one level up, so every prefix of a path is a path."""
    tree = build_tree(depths, budget, topk)
    for index, node in enumerate(tree.nodes):
        assert ROOT <= node.parent < index
        assert node.depth == len(tree.path(index))
    assert all(path[:-1] in paths(tree) for path in paths(tree) if len(path) > 1)
    assert len(paths(tree)) == len(tree.nodes), "no node is there twice"


@given(marginals(), st.integers(1, 40), st.integers(1, 5))
def test_best_first_takes_the_most_probable_prefixes(
    depths: list[list[tuple[int, float]]], budget: int, topk: int
) -> None:
    """The tree's nodes have the same probabilities as the best `budget` prefixes of all."""
    tree = build_tree(depths, budget, topk)
    # A rank is offered only within the budget: no node outside the top B of a depth can be needed.
    best = sorted(every_prefix(depths, topk).values(), reverse=True)[:budget]
    assert sorted((node.log_prob for node in tree.nodes), reverse=True) == pytest.approx(best)
    assert all(every_prefix(depths, topk)[tree.path(i)] == pytest.approx(n.log_prob) for i, n in enumerate(tree.nodes))


@given(marginals(), st.integers(1, 30))
def test_nodes_come_in_descending_order(depths: list[list[tuple[int, float]]], budget: int) -> None:
    """A smaller budget gives the beginning of a larger budget's tree."""
    tree = build_tree(depths, budget, topk=4)
    scores = [node.log_prob for node in tree.nodes]
    assert scores == sorted(scores, reverse=True)
    assert build_tree(depths, budget - 1, topk=4).nodes == tree.nodes[: budget - 1]


@given(marginals(), st.integers(0, 20))
def test_expected_acceptance_rises_with_the_budget(depths: list[list[tuple[int, float]]], budget: int) -> None:
    """Each further node adds its path's probability, never less than nothing; without nodes one token remains."""
    assert expected_acceptance(build_tree(depths, 0)) == 1.0
    smaller = expected_acceptance(build_tree(depths, budget, topk=3))
    larger = expected_acceptance(build_tree(depths, budget + 1, topk=3))
    assert smaller <= larger <= 1 + len(depths)


@given(marginals(max_width=3), st.integers(1, 3))
def test_a_tree_holds_at_most_the_reachable_nodes(depths: list[list[tuple[int, float]]], topk: int) -> None:
    """With a budget to spare the tree is complete, and no larger than Σ Kᵈ."""
    tree = build_tree(depths, 10_000, topk)
    assert len(tree.nodes) == len(every_prefix(depths, topk)) <= reachable_nodes(len(depths), topk)


def test_topk_counts_under_each_parent() -> None:
    """K = 2 over three full levels gives 2 + 4 + 8 nodes, not 2 · 3."""
    level = [(token, math.log(0.2)) for token in range(5)]
    assert len(build_tree([level] * 3, 100, topk=2).nodes) == reachable_nodes(3, 2) == 14


@given(marginals())
def test_chain_is_the_tree_of_one_candidate(depths: list[list[tuple[int, float]]]) -> None:
    """The chain is the first candidate of each depth, one under the other."""
    chain = build_chain(depths)
    assert [node.token for node in chain.nodes] == [offers[0][0] for offers in depths]
    assert [node.parent for node in chain.nodes] == list(range(-1, len(depths) - 1))
    assert chain == build_tree(depths, len(depths), topk=1)
    assert chain.verify_width == len(depths) + 1


def test_equal_probabilities_are_taken_by_rank() -> None:
    """Ties have an order, so that the same marginals always give the same tree."""
    level = [(7, math.log(0.5)), (3, math.log(0.5))]
    assert [node.token for node in build_tree([level], 2).nodes] == [7, 3]


def test_an_impossible_candidate_is_never_drafted() -> None:
    """A log-probability of minus infinity is no node, whatever the budget."""
    assert len(build_tree([[(1, 0.0), (2, -math.inf)]], 5).nodes) == 1


@given(marginals(), st.integers(0, 20), st.data())
def test_verify_gives_the_targets_own_tokens(
    depths: list[list[tuple[int, float]]], budget: int, data: st.DataObject
) -> None:
    """Accepted drafts and bonus are what the target says token by token; the walk ends at its first missing child."""
    tree = build_tree(depths, budget, topk=4)
    said = tuple(data.draw(st.lists(st.integers(0, 4), min_size=len(depths) + 1, max_size=len(depths) + 1)))
    asked: list[tuple[int, ...]] = []

    def target(path: tuple[int, ...]) -> int:
        asked.append(path)
        return said[len(path)]

    verdict = verify(tree, target)
    assert verdict.tokens == said[: len(verdict.tokens)]
    assert not verdict.accepted or verdict.accepted in paths(tree)
    assert verdict.tokens not in paths(tree)
    assert asked == [said[:length] for length in range(len(verdict.tokens))], "it sees ancestors alone"


def test_a_sibling_never_stands_in_for_an_ancestor() -> None:
    """The token 5 at depth 2 hangs under 1 only; a walk that went through 2 must not take it."""
    tree = build_tree([[(1, math.log(0.6)), (2, math.log(0.3))], [(5, math.log(0.4))]], budget=3)
    assert paths(tree) == {(1,), (2,), (1, 5)}
    verdict = verify(tree, lambda path: (2, 5, 9)[len(path)])
    assert (verdict.accepted, verdict.bonus) == ((2,), 5)


@pytest.mark.parametrize(("depth", "topk", "nodes"), [(7, 1, 7), (7, 2, 254), (3, 3, 39), (0, 6, 0), (4, 0, 0)])
def test_reachable_nodes(depth: int, topk: int, nodes: int) -> None:
    """Σ Kᵈ over the levels."""
    assert reachable_nodes(depth, topk) == nodes


def test_nonsense_is_refused() -> None:
    """Negative budgets and depths, and no candidates at all, are mistakes of the caller."""
    with pytest.raises(ValueError, match="budget"):
        build_tree([], -1)
    with pytest.raises(ValueError, match="topk"):
        build_tree([], 1, topk=0)
    with pytest.raises(ValueError, match="depth"):
        reachable_nodes(-1, 2)
