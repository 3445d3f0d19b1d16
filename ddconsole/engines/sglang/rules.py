"""What a config is known to do to this engine, before anything runs: pure rules, no host needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, effective_config
from ddconsole.core.config_findings import config_findings
from ddconsole.core.errors import DdconsoleError
from ddconsole.core.ports import Finding
from ddconsole.engines.sglang.command import launch_plan, merged_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Profile


def check_config(profile: Profile, config: Config, trained: int | None) -> Iterator[Finding]:
    """Findings from the config and the profile alone. `trained` is the drafter's block size, None when not known."""
    try:
        launch_plan(profile, config, 0, {})
    except DdconsoleError as exc:
        yield Finding("block", "spelling", exc.what, exc.advice)
        return
    yield from config_findings(config, effective_config(config, profile.knobs.topk.rule), trained)
    if config.algorithm is Algorithm.OFF:
        return
    if trained is None:
        yield Finding("note", "trained-block-size-unknown", "the drafter's trained block size is not known",
                      "set engine.trained_block_size in the profile")  # fmt: skip
    args = merged_args(profile, config)
    yield from check_parallelism(args)
    if config.algorithm is Algorithm.TREE:
        yield from check_tree_rules(config, args)


def check_parallelism(args: Mapping[str, str | None]) -> Iterator[Finding]:
    """DFLASH, and a tree with it: no pipeline stages, and data-parallel attention only with its own lm_head."""
    stages = args.get("pp-size") or args.get("pipeline-parallel-size")
    if stages not in (None, "1"):
        yield Finding("block", "pipeline-parallel", f"pp-size {stages} with a drafter: DFLASH runs with one stage only",
                      "set arg.pp-size=1")  # fmt: skip
    if is_set(args, "enable-dp-attention") and not is_set(args, "enable-dp-lm-head"):
        yield Finding("block", "dp-attention", "enable-dp-attention with a drafter, without enable-dp-lm-head",
                      "set arg.enable-dp-lm-head=true")  # fmt: skip


def check_tree_rules(config: Config, args: Mapping[str, str | None]) -> Iterator[Finding]:
    """sglang#29907: page size 1 for every budget, and triton for a tree wider than its spine, prefill and decode."""
    page = args.get("page-size")
    if page not in (None, "1"):
        yield Finding("block", "page-size", f"page size {page} with a tree: DDTREE runs with page size 1 only",
                      "set arg.page-size=1")  # fmt: skip
    if (config.budget or 0) > (config.depth or 0):
        yield from _tree_backends(args)


def _tree_backends(args: Mapping[str, str | None]) -> Iterator[Finding]:
    """A stage's own flag goes before the common one; the common one is said once."""
    common = args.get("attention-backend")
    named = {f"{stage}-attention-backend": args.get(f"{stage}-attention-backend") for stage in ("prefill", "decode")}
    if None in named.values():
        named["attention-backend"] = common
    for name, backend in named.items():
        if backend not in (None, "triton"):
            yield Finding("warn", "tree-backend",
                          f"{name.replace('-', ' ')} {backend} with a tree wider than its spine: sglang#29907 wants "
                          "triton", f"set arg.{name}=triton unless this fork says otherwise")  # fmt: skip


def is_set(args: Mapping[str, str | None], name: str) -> bool:
    """Whether a bare flag is given."""
    return args.get(name) not in (None, "false")
