"""The knobs of a speculative-decoding engine, and what they come to once the engine has had its say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Algorithm(StrEnum):
    """How tokens are drafted: not at all, as one chain (DFlash), or as a tree (DDTree)."""

    OFF = "off"
    CHAIN = "chain"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class Config:
    """What is asked of the engine. Only what the algorithm has is set; the rest is None.

    Attributes:
        block_size: b, positions of one draft pass, the anchor included. None with `off`.
        budget: B, tree nodes verified a step, the root not counted. Only with `tree`.
        topk: K, candidates a position may offer under each parent. Only with `tree`.
        window: W, tokens of context that the drafter keeps; None means the engine's default.
        args: further engine arguments as (long flag without dashes, value), sorted by name.
    """

    algorithm: Algorithm
    block_size: int | None = None
    budget: int | None = None
    topk: int | None = None
    window: int | None = None
    args: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what an algorithm cannot have, so that no later code has to ask."""
        drafts = self.algorithm is not Algorithm.OFF
        if drafts != (self.block_size is not None):
            raise ValueError(f"block_size belongs to chain and tree; got {self.block_size} with {self.algorithm}")
        if self.algorithm is not Algorithm.TREE and (self.budget is not None or self.topk is not None):
            raise ValueError(f"budget and topk belong to algorithm=tree; this is {self.algorithm}")
        if self.algorithm is Algorithm.TREE and self.budget is None:
            raise ValueError("algorithm=tree needs a budget")
        if not drafts and self.window is not None:
            raise ValueError("window belongs to the drafter; algorithm=off has none")

    @property
    def depth(self) -> int | None:
        """L = b − 1, the most tokens one step can draft."""
        return None if self.block_size is None else self.block_size - 1

    @property
    def density(self) -> float | None:
        """B / L, tree nodes for each drafted position."""
        if self.budget is None or self.depth is None:
            return None
        return self.budget / self.depth

    def label(self) -> str:
        """The config in one short line, `tree b 8 B 12 K 6 W 2048`."""
        parts = [self.algorithm.value]
        knobs = (("b", self.block_size), ("B", self.budget), ("K", self.topk), ("W", self.window))
        parts += [f"{name} {value}" for name, value in knobs if value is not None]
        parts += [f"{name}={value}" for name, value in self.args]
        return " ".join(parts)

    def to_json(self) -> dict[str, object]:
        """The `config` object of `--json` answers."""
        return {
            "algorithm": self.algorithm.value,
            "block_size": self.block_size,
            "budget": self.budget,
            "topk": self.topk,
            "window": self.window,
            "args": dict(self.args),
        }

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Config:
        """The inverse of `to_json`."""
        args = data.get("args") or {}
        assert isinstance(args, dict)

        def number(key: str) -> int | None:
            value = data.get(key)
            return None if value is None else int(str(value))

        return cls(
            algorithm=Algorithm(str(data["algorithm"])),
            block_size=number("block_size"),
            budget=number("budget"),
            topk=number("topk"),
            window=number("window"),
            args=tuple(sorted((str(name), str(value)) for name, value in args.items())),
        )


class TopkRule(StrEnum):
    """How an engine comes to the K that it really uses."""

    AS_ASKED = "as-asked"
    """K = min(asked, B): no node outside the top B of a position can be needed (DDTree, lemma 1)."""
    PR29907 = "ddtree-pr29907"
    """K = min(max(B // L + 1, 2), asked): derived from the budget; what is asked is only a cap."""


@dataclass(frozen=True, slots=True)
class Effective:
    """What the engine really runs. Two configs with equal effective values are the same engine.

    Attributes:
        verify_width: N = B + 1 tokens verified a step for a tree, b for a chain, 1 without a drafter.
        topk_note: why the effective K differs from the one asked for, or None.
    """

    algorithm: Algorithm
    block_size: int | None
    budget: int | None
    topk: int | None
    window: int | None
    verify_width: int
    args: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The `effective` object of `--json` answers."""
        return {
            "algorithm": self.algorithm.value,
            "block_size": self.block_size,
            "budget": self.budget,
            "topk": self.topk,
            "window": self.window,
            "verify_width": self.verify_width,
            "args": dict(self.args),
        }


def effective_config(config: Config, rule: TopkRule = TopkRule.AS_ASKED) -> Effective:
    """What `config` comes to under an engine's rule for K."""
    topk = None
    width = 1
    if config.algorithm is Algorithm.CHAIN:
        assert config.block_size is not None
        width = config.block_size
    elif config.algorithm is Algorithm.TREE:
        assert config.budget is not None
        topk = effective_topk(config, rule)
        width = config.budget + 1
    return Effective(
        algorithm=config.algorithm,
        block_size=config.block_size,
        budget=config.budget,
        topk=topk,
        window=config.window,
        verify_width=width,
        args=config.args,
    )


def effective_topk(config: Config, rule: TopkRule) -> int:
    """K as the engine uses it. The formula for PR29907 stands in sglang's pull request 29907."""
    assert config.budget is not None
    assert config.depth is not None
    asked = config.topk if config.topk is not None else config.budget
    if rule is TopkRule.AS_ASKED:
        return min(asked, config.budget)
    return min(max(config.budget // max(config.depth, 1) + 1, 2), asked)


def matched_budget(budget: int, from_block_size: int, to_block_size: int) -> int:
    """The budget of the same density at another block size: B' = max(L', round(B · L' / L)), halves up.

    12 at block size 8 is 26 at block size 16.
    """
    from_depth, to_depth = from_block_size - 1, to_block_size - 1
    if from_depth < 1 or to_depth < 1:
        raise ValueError("a block size below 2 drafts nothing, so it has no density")
    return max(to_depth, math.floor(budget * to_depth / from_depth + 0.5))
