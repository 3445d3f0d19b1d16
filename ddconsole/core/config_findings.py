"""What can be said of a config without a host: the rules of drafting that cost a boot when they are found out late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.core.ports.engine import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.config import Config, Effective


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
    if trained is not None and config.block_size != trained:
        yield Finding(
            "warn",
            "trained-block-size",
            f"trained at {trained}",
            f"a drafter run at another block size than {trained} accepts less; the chain at {trained} is the control",
        )


def _tree(config: Config, effective: Effective) -> Iterator[Finding]:
    if config.algorithm is not Algorithm.TREE:
        return
    assert config.budget is not None
    assert config.depth is not None
    if config.budget < config.depth:
        text = f"budget {config.budget} is below the depth {config.depth}"
        yield Finding("warn", "budget-below-depth", text, "even the spine does not fit; raise the budget")
    elif config.budget == config.depth:
        text = "a budget of the depth is the spine alone"
        yield Finding("note", "spine-only", text, "it accepts what the chain accepts, at a tree's cost")
    if config.topk is not None and effective.topk is not None and effective.topk < config.topk:
        text = f"runs K {effective.topk}, {config.topk} is only a cap"
        yield Finding("note", "topk-not-reached", text, "a topk above this is the same engine")
