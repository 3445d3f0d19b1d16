"""Speculative decoding of one request: off, chain or tree, a step at a time.

The first token comes from prefill: it counts in C (completion tokens) but in no V (verify step). Each later step
drafts, verifies by the ancestor-only greedy walk and yields the accepted drafts and the bonus token. Whatever the
config, the output is the target's own greedy text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.core.ddtree import build_chain, build_tree, verify
from ddconsole.demo.drafter import Context
from ddconsole.demo.language import END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.config import Effective
    from ddconsole.core.ddtree import Tree
    from ddconsole.demo.drafter import Drafter
    from ddconsole.demo.language import Recall


@dataclass(frozen=True, slots=True)
class Step:
    """One forward of the target for one request.

    Attributes:
        tokens: what it added to the output, cut at the end mark and at the request's limit.
        width: tokens that the target computed, the root included (N of the tree as built, b of a chain).
        accepted: drafts that the walk accepted, before any cut; None without a drafter or for prefill.
    """

    tokens: tuple[int, ...]
    width: int
    accepted: int | None = None


@dataclass(slots=True)
class SpecCounts:
    """Speculative counts of one request, as SGLang keeps them.

    Attributes:
        verify_steps: V.
        accepted: drafts accepted over all steps, before the cut of the last one.
        proposed: V · (b − 1): SGLang counts by depth, not by node.
        histogram: entry k counts the steps that accepted k drafts; b entries.
    """

    depth: int
    verify_steps: int = 0
    accepted: int = 0
    histogram: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.histogram = [0] * (self.depth + 1)

    @property
    def proposed(self) -> int:
        """The denominator of SGLang's accept rate."""
        return self.verify_steps * self.depth

    def add(self, accepted: int) -> None:
        """Count one verify step."""
        self.verify_steps += 1
        self.accepted += accepted
        self.histogram[accepted] += 1


class Generation:
    """One request being decoded. Call `prefill` once, then `step` until `finish` says why it ended."""

    def __init__(
        self,
        effective: Effective,
        drafter: Drafter | None,
        recall: Recall,
        prompt: Sequence[int],
        *,
        max_new_tokens: int,
        ignore_eos: bool = False,
    ) -> None:
        """`drafter` is None exactly when the algorithm is off; `max_new_tokens` is at least 1."""
        self.effective = effective
        self.prompt_tokens = len(prompt)
        self.output: list[int] = []
        self.counts = SpecCounts(depth=(effective.block_size or 1) - 1)
        self.finish: str | None = None
        """None while it runs, then `stop` (end mark) or `length` (limit)."""
        self._drafter = drafter
        self._recall = recall
        self._context = Context(prompt)
        self._limit = max_new_tokens
        self._ignore_eos = ignore_eos

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and output so far."""
        return len(self._context)

    def prefill(self) -> Step:
        """Read the prompt; gives the first token."""
        return Step(self._take((self._recall[0],)), width=self.prompt_tokens)

    def step(self) -> Step:
        """Decode once."""
        if self._drafter is None:
            return Step(self._take((self._recall[len(self.output)],)), width=1)
        tree = self._draft(self._drafter)
        spoken = len(self.output)
        verdict = verify(tree, lambda path: self._recall[spoken + len(path)])
        self.counts.add(len(verdict.accepted))
        return Step(self._take(verdict.tokens), width=tree.verify_width, accepted=len(verdict.accepted))

    def _draft(self, drafter: Drafter) -> Tree:
        marginals = drafter.marginals(self._context)
        if self.effective.algorithm is Algorithm.CHAIN:
            return build_chain(marginals)
        assert self.effective.budget is not None
        return build_tree(marginals, self.effective.budget, self.effective.topk)

    def _take(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Add tokens to the output up to the end mark or the limit, whichever comes first."""
        room = tokens[: self._limit - len(self.output)]
        if END in room and not self._ignore_eos:
            room = room[: room.index(END) + 1]
            self.finish = "stop"
        elif len(self.output) + len(room) >= self._limit:
            self.finish = "length"
        self.output += room
        self._context.extend(room)
        return room


def autoregressive(recall: Recall, *, max_new_tokens: int, ignore_eos: bool = False) -> list[int]:
    """The target's own text without any speculation: what every config has to give."""
    output: list[int] = []
    while len(output) < max_new_tokens:
        output.append(recall[len(output)])
        if output[-1] == END and not ignore_eos:
            break
    return output
