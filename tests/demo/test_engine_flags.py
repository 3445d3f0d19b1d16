"""The toy engine's command line: SGLang's flags, rules and texts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from ddconsole.core.config import Algorithm
from ddconsole.demo.engine_flags import TARGET_SHARDS, build_parser, parse

if TYPE_CHECKING:
    from pathlib import Path

DRAFT = ("--speculative-draft-model-path", "no-such-folder")
TREE = ("--model-path", "m", "--speculative-algorithm", "DDTREE", *DRAFT)


def test_tree_flags_become_the_effective_config() -> None:
    """Block size, budget, topk and window are what the engine runs."""
    args = parse([*TREE, "--speculative-num-draft-tokens", "16", "--speculative-ddtree-budget", "26",
                  "--speculative-ddtree-topk", "4", "--speculative-draft-window-size", "512"])  # fmt: skip
    effective = args.effective
    assert (effective.algorithm, effective.block_size, effective.budget) == (Algorithm.TREE, 16, 26)
    assert (effective.topk, effective.window, effective.verify_width) == (4, 512, 27)
    assert args.flat["speculative_ddtree_budget"] == 26


def test_defaults_are_inferred_as_the_engine_does() -> None:
    """Budget b − 1, block size from the drafter, window the whole context, topk the budget."""
    args = parse(TREE)
    assert (args.effective.block_size, args.effective.budget, args.effective.topk) == (8, 7, 7)
    assert args.effective.window == args.flat["context_length"]
    assert (args.port, args.host, args.ranks, args.target_shards) == (30000, "127.0.0.1", 8, TARGET_SHARDS)


def test_algorithms_by_name() -> None:
    """Lower case is taken; none means autoregressive."""
    assert parse(["--model-path", "m"]).effective.verify_width == 1
    chain = parse(["--model-path", "m", "--speculative-algorithm", "dflash", *DRAFT])
    assert (chain.effective.algorithm, chain.effective.verify_width) == (Algorithm.CHAIN, 8)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--model-path", "m", "--speculative-algorithm", "NOPE"], "Unknown speculative algorithm name: NOPE"),
        (["--model-path", "m", "--speculative-algorithm", "DDTREE"], "requires setting --speculative-draft-model-path"),
        ([*TREE, "--speculative-ddtree-budget", "0"], "--speculative-ddtree-budget must be >= 1, got 0."),
        ([*TREE, "--speculative-ddtree-topk", "0"], "--speculative-ddtree-topk must be >= 1"),
        ([*TREE, "--page-size", "64"], "supports only page_size == 1. Got page_size=64."),
        ([*TREE, "--speculative-ddtree-budget", "8", "--attention-backend", "flashinfer"], "only the triton attention"),
        ([*TREE, "--speculative-draft-window-size", "7"], "window_size=7, block_size=8."),
        ([*TREE, "--speculative-num-draft-tokens", "1"], "at least 2, got 1"),
        ([*TREE, "--tp-size", "9"], "--tp-size must be 1 to 8"),
        ([*TREE, "--step-scale", "-1"], "--step-scale must not be negative"),
        ([*TREE, "--fail", "sometimes"], "--fail must be one of"),
    ],
)
def test_flags_that_do_not_go_together(words: list[str], text: str) -> None:
    """Refused before anything is loaded, in the words of SGLang where it has them."""
    with pytest.raises(ValueError, match=re.escape(text)):
        parse(words)


@pytest.mark.parametrize("words", [["--model-path", "m", "--no-such-flag", "1"], [], [*TREE, "--port", "x"]])
def test_usage_errors_are_argparses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and argparse's own text."""
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == 2
    assert "ddconsole-toy-engine: error: " in capsys.readouterr().err


def test_help_names_every_knob() -> None:
    """The console looks for flags in `--help`."""
    text = build_parser().format_help()
    for knob in ("num-draft-tokens", "ddtree-budget", "ddtree-topk", "draft-window-size", "algorithm"):
        assert f"--speculative-{knob}" in text


def test_failures_come_by_flag_or_environment() -> None:
    """The flag wins; one of them carries a number."""
    assert parse(TREE, "oom-at-load").fail == "oom-at-load"
    assert parse([*TREE, "--fail", "graph-crash"], "oom-at-load").fail == "graph-crash"
    garbage = parse([*TREE, "--fail", "garbage-at-budget=16"])
    assert (garbage.fail, garbage.garbage_budget) == ("garbage-at-budget", 16)


def test_folders_are_read(tmp_path: Path) -> None:
    """Shards are counted by the index, a missing one is refused, and the drafter's block size is its config's."""
    shards = [f"model-{number}.safetensors" for number in range(3)]
    index = {"weight_map": {f"layer.{number}": name for number, name in enumerate(shards)}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text(json.dumps({"dflash_config": {"block_size": 10}}))
    for name in shards:
        (tmp_path / name).touch()
    words = ["--model-path", str(tmp_path), "--speculative-algorithm", "DFLASH",
             "--speculative-draft-model-path", str(tmp_path)]  # fmt: skip
    args = parse(words)
    assert (args.target_shards, args.trained_block_size, args.effective.block_size) == (3, 10, 10)
    (tmp_path / shards[1]).unlink()
    with pytest.raises(ValueError, match=r"references 1 shard file\(s\) missing from"):
        parse(words)
