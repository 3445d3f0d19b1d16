"""What a config is known to do to this engine, before anything runs: pure rules, no host needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.config import Algorithm, TopkRule, effective_topk
from ddconsole.core.errors import DdconsoleError
from ddconsole.core.ports import Finding
from ddconsole.engines.sglang.command import launch_plan, merged_args

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Profile

PUBLISHED_LOSS: Final = (
    "published for DFlash trained at 8 and run at 16 (τ): HumanEval 4.61 -> 4.28, Math500 5.21 -> 5.02, "
    "MT-Bench 3.29 -> 3.09; smaller than trained is fine"
)
"""Table 8 of the DFlash paper, an 8-layer drafter."""


def check_config(profile: Profile, config: Config, trained: int | None) -> Iterator[Finding]:
    """Findings from the config and the profile alone. `trained` is the drafter's block size, None when not known."""
    try:
        launch_plan(profile, config, 0, {})
    except DdconsoleError as exc:
        yield Finding("block", "spelling", exc.what, exc.advice)
        return
    yield from check_trained(config, trained)
    yield from check_window(config)
    if config.algorithm is Algorithm.TREE:
        yield from check_budget(config)
        yield from check_topk(profile, config)
        yield from check_tree_rules(profile, config)


def check_trained(config: Config, trained: int | None) -> Iterator[Finding]:
    """A drafter run beyond its trained block size only warns in the engine's log, and is slower."""
    if config.block_size is None:
        return
    if trained is None:
        yield Finding("note", "trained-block-size-unknown", "the drafter's trained block size is not known",
                      "set engine.trained_block_size in the profile")  # fmt: skip
    elif config.block_size > trained:
        yield Finding("warn", "trained-block-size",
                      f"block size {config.block_size} on a drafter trained at {trained}; {PUBLISHED_LOSS}",
                      f"compare with block size {trained}")  # fmt: skip
    elif config.block_size < trained:
        text = f"block size {config.block_size} on a drafter trained at {trained}: keeps its quality, drafts less"
        yield Finding("note", "trained-block-size-smaller", text)


def check_window(config: Config) -> Iterator[Finding]:
    """The engine refuses a window smaller than a block."""
    if config.window is not None and config.block_size is not None and config.window < config.block_size:
        yield Finding("block", "window-below-block",
                      f"window {config.window} is smaller than the block size {config.block_size}",
                      "the drafter has to see at least its own block")  # fmt: skip


def check_budget(config: Config) -> Iterator[Finding]:
    """Below L a tree cannot reach full depth; at L engines take the spine alone."""
    budget, depth = config.budget, config.depth
    if budget is None or depth is None:
        return
    if budget < depth:
        yield Finding("warn", "budget-below-depth",
                      f"budget {budget} is below the depth {depth}: a chain cut short, no tree",
                      f"use at least {depth}, or a smaller block size")  # fmt: skip
    elif budget == depth:
        text = f"budget {budget} equals the depth: some engines verify the spine alone, with the chain's τ"
        yield Finding("note", "budget-is-spine", text)


def check_topk(profile: Profile, config: Config) -> Iterator[Finding]:
    """Where the engine derives K, a cap above the derived value never binds: such configs are the same engine."""
    if profile.knobs.topk.rule is not TopkRule.PR29907 or config.topk is None:
        return
    effective = effective_topk(config, TopkRule.PR29907)
    if config.topk > effective:
        yield Finding("note", "topk-cap-unused",
                      f"K is {effective} here (budget // depth + 1, at least 2): a cap of {config.topk} never binds",
                      "configs that differ only in such a cap are the same engine")  # fmt: skip
    elif config.topk == effective == 1:
        yield Finding("note", "topk-one", "K = 1 leaves one path: a chain under the tree's conditions")


def check_tree_rules(profile: Profile, config: Config) -> Iterator[Finding]:
    """sglang#29907: page size 1, and triton for a tree wider than its spine."""
    args = merged_args(profile, config)
    wide = (config.budget or 0) > (config.depth or 0)
    page = args.get("page-size")
    if page not in (None, "1"):
        yield Finding("block" if wide else "warn", "page-size",
                      f"page size {page} with a tree: DDTREE runs with page size 1 only",
                      "set arg.page-size=1")  # fmt: skip
    backend = args.get("attention-backend")
    if wide and backend not in (None, "triton"):
        yield Finding("warn", "tree-backend",
                      f"attention backend {backend} with a tree wider than its spine: sglang#29907 wants triton",
                      "set arg.attention-backend=triton unless this fork says otherwise")  # fmt: skip
