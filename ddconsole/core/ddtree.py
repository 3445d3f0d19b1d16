"""The mathematics of draft trees (DDTree): build under a node budget, verify, expected acceptance.

A block drafter gives one marginal distribution q_i for each depth i = 1 … L, not conditionals. Under the factorised
model the probability that a prefix is right is the product of its marginals, and the expected number of accepted
drafts is the sum of these products over the tree's nodes. So the best tree of B nodes holds the B most probable
prefixes; a prefix is never less probable than its continuations, so that set is closed under taking prefixes.
(Ringel and Romano, "Accelerating Speculative Decoding with Block Diffusion Draft Trees", arXiv 2604.12989.)

The root is the token that is known already (the last step's bonus). It is no node and does not count in B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Candidate: TypeAlias = "tuple[int, float]"
"""(token, log-probability) at one depth."""
Marginals: TypeAlias = "Sequence[Sequence[Candidate]]"
"""For each depth 1 … L, the candidates in descending order of log-probability."""

ROOT = -1
"""The parent index of the nodes at depth 1."""


@dataclass(frozen=True, slots=True)
class Node:
    """One drafted token.

    Attributes:
        token: its id.
        depth: 1 for a child of the root; at most L = b − 1.
        parent: index of its parent in the tree's nodes, or ROOT. Always smaller than its own index.
        log_prob: natural logarithm of its path's probability, the sum over its ancestors and itself.
    """

    token: int
    depth: int
    parent: int
    log_prob: float


@dataclass(frozen=True, slots=True)
class Tree:
    """A draft tree: nodes in the order in which they were taken, so that parents come before children."""

    nodes: tuple[Node, ...]

    @property
    def verify_width(self) -> int:
        """N, the tokens that the target computes in a step: the root and every node."""
        return len(self.nodes) + 1

    def path(self, index: int) -> tuple[int, ...]:
        """The tokens from depth 1 down to node `index`: all that this node may see beyond the context."""
        tokens: list[int] = []
        while index != ROOT:
            tokens.append(self.nodes[index].token)
            index = self.nodes[index].parent
        return tuple(reversed(tokens))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verify step gives: the drafts that the target agreed with, and its own next token after them."""

    accepted: tuple[int, ...]
    bonus: int

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens of the step, 1 to b of them."""
        return (*self.accepted, self.bonus)


def build_tree(log_probs_per_depth: Marginals, budget: int, topk: int | None = None) -> Tree:
    """The tree of the `budget` most probable prefixes, best first.

    Args:
        log_probs_per_depth: candidates for each depth, each list in descending order; a list may be short or empty.
        budget: B, the most nodes; at least 0. The tree is smaller when there are no more candidates.
        topk: K, candidates that a depth offers under each parent. None means `budget`: more can never be needed.

    The heap holds at most one sibling and one child for each node taken, so the cost is O(B log B). Prefixes of equal
    probability are taken in the order of their ranks.

    Raises:
        ValueError: a negative budget, or a topk below 1.
    """
    if budget < 0:
        raise ValueError(f"a budget is at least 0 nodes, got {budget}")
    if topk is not None and topk < 1:
        raise ValueError(f"topk is at least 1 candidate, got {topk}")
    width = budget if topk is None else min(topk, budget)
    offers = [depth[:width] for depth in log_probs_per_depth]
    nodes: list[Node] = []
    heap: list[_Entry] = []
    _offer(heap, offers, (0,), ROOT, 0.0)
    while heap and len(nodes) < budget:
        cost, ranks, parent, above = heappop(heap)
        *stem, rank = ranks
        token = offers[len(stem)][rank][0]
        _offer(heap, offers, (*stem, rank + 1), parent, above)
        _offer(heap, offers, (*ranks, 0), len(nodes), -cost)
        nodes.append(Node(token, len(ranks), parent, -cost))
    return Tree(tuple(nodes))


_Entry: TypeAlias = "tuple[float, tuple[int, ...], int, float]"
"""(minus the path's log-probability, rank at each depth from 0, parent's index, the parent's log-probability)."""


def _offer(
    heap: list[_Entry], offers: list[Sequence[Candidate]], ranks: tuple[int, ...], parent: int, above: float
) -> None:
    """Put the candidate with these ranks on the heap, if there is one."""
    depth, rank = len(ranks), ranks[-1]
    if depth > len(offers) or rank >= len(offers[depth - 1]):
        return
    log_prob = offers[depth - 1][rank][1]
    if log_prob > -math.inf:
        heappush(heap, (-(above + log_prob), ranks, parent, above))


def build_chain(log_probs_per_depth: Marginals) -> Tree:
    """DFlash's chain: the first candidate of each depth. The tree of budget L with one candidate a position."""
    return build_tree(log_probs_per_depth, budget=len(log_probs_per_depth), topk=1)


def verify(tree: Tree, target: Callable[[tuple[int, ...]], int]) -> Verdict:
    """Walk down from the root for as long as the target's own token is a child.

    `target` gives the target's greedy token after a path of drafts, and sees this path alone (ancestors, never
    siblings). A real engine computes it for every node in one forward; nodes off the walk cannot change the result,
    so only the walk is asked for here. Every token of the verdict is the target's own choice after the tokens
    before it, so the output equals autoregressive decoding.
    """
    children = {(node.parent, node.token): index for index, node in enumerate(tree.nodes)}
    accepted: tuple[int, ...] = ()
    here = ROOT
    while True:
        token = target(accepted)
        child = children.get((here, token))
        if child is None:
            return Verdict(accepted, token)
        accepted = (*accepted, token)
        here = child


def expected_acceptance(tree: Tree) -> float:
    """Expected tokens a step under the drafter's own model: 1 for the bonus, plus the sum of path probabilities.

    Exact for the factorised model, not for the target: compare it with the measured τ = ΣC/ΣV, never print it as τ.
    """
    return 1.0 + math.fsum(math.exp(node.log_prob) for node in tree.nodes)


def reachable_nodes(depth: int, topk: int) -> int:
    """The most nodes that a tree of `depth` levels with K candidates under each parent can have: Σ Kᵈ, d = 1 … L.

    A budget above this is never spent. K = 1 reaches L nodes: the chain.
    """
    if depth < 0 or topk < 0:
        raise ValueError(f"depth and topk are at least 0, got {depth} and {topk}")
    return sum(topk**level for level in range(1, depth + 1))
