"""What can be said of a config without a host: the rules of drafting that cost a boot when they are found out late.

The queue and the preflight say the same finding in the same words, for both take it from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.config import Algorithm
from ddconsole.core.ports.engine import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.config import Config, Effective

PUBLISHED_LOSS: Final = (
    "published for a drafter trained at 8 and run at 16 (τ, DFlash table 8): HumanEval 4.61 → 4.28, "
    "Math500 5.21 → 5.02, MT-Bench 3.29 → 3.09"
)
"""Why a block size above the trained one is the bad direction. An 8-layer drafter, arXiv 2602.06036."""


def config_findings(config: Config, effective: Effective, trained_block_size: int | None) -> tuple[Finding, ...]:
    """Findings in the order of their weight. `trained_block_size` is the drafter's, None when it is not known."""
    if config.algorithm is Algorithm.OFF:
        return ()
    return (*_window(config), *_trained(config, trained_block_size), *_tree(config, effective))


def _window(config: Config) -> Iterator[Finding]:
    assert config.block_size is not None
    if config.window is not None and config.window < config.block_size:
        yield Finding(
            "block",
            "window-below-block",
            f"window {config.window} is below the block size {config.block_size}",
            "the drafter cannot see its own block; take a window of at least the block size",
        )


def _trained(config: Config, trained: int | None) -> Iterator[Finding]:
    """Beyond the trained size a drafter is worse than at it; below it keeps its quality and drafts less."""
    assert config.block_size is not None
    if trained is None or config.block_size == trained:
        return
    text = f"trained at {trained}"
    if config.block_size > trained:
        advice = f"{PUBLISHED_LOSS}; the chain at {trained} is the control"
        yield Finding("warn", "trained-block-size", text, advice)
    else:
        advice = f"a smaller block keeps the drafter's quality and drafts less; the chain at {trained} is the control"
        yield Finding("note", "trained-block-size-smaller", text, advice)


def _tree(config: Config, effective: Effective) -> Iterator[Finding]:
    if config.algorithm is not Algorithm.TREE:
        return
    assert config.budget is not None
    assert config.depth is not None
    if config.budget < config.depth:
        text = f"budget {config.budget} is below the depth {config.depth}"
        yield Finding(
            "warn", "budget-below-depth", text, "a chain cut short: even the spine does not fit; raise the budget"
        )
    elif config.budget == config.depth:
        text = "a budget of the depth is the spine alone"
        yield Finding("note", "spine-only", text, "it accepts what the chain accepts, at a tree's cost")
    yield from _topk(config, effective)


def _topk(config: Config, effective: Effective) -> Iterator[Finding]:
    if config.topk is None or effective.topk is None:
        return
    if effective.topk < config.topk:
        text = f"runs K {effective.topk}, {config.topk} is only a cap"
        yield Finding("note", "topk-not-reached", text, "a topk above this is the same engine")
    elif effective.topk == 1 and config.budget != config.depth:
        yield Finding("note", "topk-one", "K 1 leaves one path", "a chain under the tree's conditions; raise topk")
