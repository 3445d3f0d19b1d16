"""The toy engine's command line: SGLang 0.5.23's flags as far as the console and its profiles use them.

An unknown flag ends in argparse's own error and exit code 2, as with the real engine. What the flags mean together
is checked by `resolve`, whose errors carry SGLang's texts.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Algorithm, Config, Effective, effective_config

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "ddconsole-toy-engine"
VERSION = "0.5.23+ddtree"
CONTEXT_LENGTH = 131072
CARDS = 8
DEFAULT_BLOCK_SIZE = 8
TARGET_SHARDS, DRAFT_SHARDS = 64, 3
ALGORITHMS = {None: Algorithm.OFF, "DFLASH": Algorithm.CHAIN, "DDTREE": Algorithm.TREE}
FAILURES = ("oom-at-load", "graph-crash", "hang-at-100", "port-taken", "garbage-at-budget=N")

Option = tuple[str, dict[str, Any]]
OPTIONS: tuple[Option, ...] = (
    ("--model-path", {"required": True, "help": "Folder of the target model's weights."}),
    ("--tokenizer-path", {"help": "Folder of the tokenizer; the model's by default."}),
    ("--served-model-name", {"help": "Name of the model in answers; the model path by default."}),
    ("--host", {"default": "127.0.0.1", "help": "Address to listen on."}),
    ("--port", {"type": int, "default": 30000, "help": "Port to listen on."}),
    ("--tp-size", {"type": int, "default": CARDS, "help": "Tensor-parallel ranks, 1 to 8."}),
    ("--page-size", {"type": int, "default": 1, "help": "Tokens in a page of the KV cache."}),
    ("--attention-backend", {"default": "triton", "help": "Attention kernels of the target."}),
    ("--context-length", {"type": int, "default": CONTEXT_LENGTH, "help": "Longest context in tokens."}),
    ("--max-running-requests", {"type": int, "default": 48, "help": "Most requests decoded at once."}),
    ("--mem-fraction-static", {"type": float, "default": 0.88, "help": "Share of memory for weights and KV cache."}),
    ("--kv-cache-dtype", {"default": "auto", "help": "Type of the KV cache's entries."}),
    ("--dtype", {"default": "auto", "help": "Type of the weights in computing."}),
    ("--quantization", {"help": "How the weights are quantised."}),
    ("--chunked-prefill-size", {"type": int, "default": 8192, "help": "Most tokens of one prefill."}),
    ("--cuda-graph-max-bs", {"type": int, "default": 16, "help": "Largest batch with a captured graph."}),
    ("--random-seed", {"type": int, "default": 42, "help": "Accepted; decoding is greedy."}),
    ("--watchdog-timeout", {"type": float, "default": 300.0, "help": "Seconds without progress until it ends itself."}),
    ("--decode-log-interval", {"type": int, "default": 40, "help": "Decode steps between two lines of the log."}),
    ("--api-key", {"help": "Key that every request has to bring as a bearer token."}),
    ("--log-level", {"default": "info", "help": "Accepted; the log is always that of info."}),
    ("--reasoning-parser", {"help": "Accepted; answers hold no reasoning."}),
    ("--tool-call-parser", {"help": "Accepted; answers hold no tool calls."}),
    ("--trust-remote-code", {"action": "store_true", "help": "Accepted; there is no remote code."}),
    ("--disable-radix-cache", {"action": "store_true", "help": "Do not keep prompts in the prefix cache."}),
    ("--disable-overlap-schedule", {"action": "store_true", "help": "Accepted; there is nothing to overlap."}),
    ("--enable-metrics", {"action": "store_true", "help": "Answer /metrics, and add times to answers."}),
    ("--speculative-algorithm", {"help": "DFLASH (chain) or DDTREE (tree); none without it."}),
    ("--speculative-draft-model-path", {"help": "Folder of the drafter's weights."}),
    ("--speculative-draft-model-quantization", {"help": "How the drafter's weights are quantised."}),
    ("--speculative-draft-attention-backend", {"help": "Attention kernels of the drafter."}),
    ("--speculative-num-draft-tokens", {"type": int, "help": "Block size b, the anchor included."}),
    ("--speculative-draft-window-size", {"type": int, "help": "Tokens of context that the drafter keeps."}),
    ("--speculative-ddtree-budget", {"type": int, "help": "Nodes of the draft tree, the root not counted."}),
    ("--speculative-ddtree-topk", {"type": int, "help": "Candidates of a position under each parent."}),
    ("--step-scale", {"type": float, "default": 1.0, "help": "Factor on the simulated step time; 0.1 is faster."}),
    ("--fail", {"help": "Fail on purpose: " + ", ".join(FAILURES) + "."}),
)


def build_parser() -> argparse.ArgumentParser:
    """The parser, whose `--help` the console reads."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="A toy DDTree engine: real acceptance over a tiny language, simulated speed."
    )
    for flag, options in OPTIONS:
        parser.add_argument(flag, **options)
    parser.add_argument("--version", action="version", version=VERSION)
    return parser


@dataclass(frozen=True, slots=True)
class EngineArgs:
    """The resolved arguments.

    Attributes:
        flat: every flag with underscores, resolved, as /server_info shows them.
        effective: what is really run.
        trained_block_size: the block size in the drafter's config.json.
        fail: the failure asked for, without its number, or None.
        garbage_budget: N of garbage-at-budget=N.
    """

    argv: tuple[str, ...]
    flat: dict[str, Any]
    effective: Effective
    trained_block_size: int
    target_shards: int
    fail: str | None = None
    garbage_budget: int | None = None

    @property
    def port(self) -> int:
        return int(self.flat["port"])

    @property
    def host(self) -> str:
        return str(self.flat["host"])

    @property
    def ranks(self) -> int:
        return int(self.flat["tp_size"])

    @property
    def model_name(self) -> str:
        return str(self.flat["served_model_name"])


def parse(argv: Sequence[str], env_fail: str | None = None) -> EngineArgs:
    """Parse and resolve; `env_fail` is the failure asked for by the environment.

    Raises:
        SystemExit: 2, by argparse.
        ValueError: flags that do not go together, with SGLang's texts.
    """
    flat = vars(build_parser().parse_args(argv))
    flat["tokenizer_path"] = flat["tokenizer_path"] or flat["model_path"]
    flat["served_model_name"] = flat["served_model_name"] or flat["model_path"]
    fail, garbage = _failure(flat.pop("fail") or env_fail)
    if not 1 <= flat["tp_size"] <= CARDS:
        raise ValueError(f"--tp-size must be 1 to {CARDS}, got {flat['tp_size']}.")
    if flat["step_scale"] < 0:
        raise ValueError(f"--step-scale must not be negative, got {flat['step_scale']}.")
    trained = trained_block_size(flat["speculative_draft_model_path"])
    effective = _effective(flat, trained)
    return EngineArgs(
        argv=tuple(argv),
        flat=flat,
        effective=effective,
        trained_block_size=trained,
        target_shards=count_shards(flat["model_path"]),
        fail=fail,
        garbage_budget=garbage,
    )


def _failure(word: str | None) -> tuple[str | None, int | None]:
    if not word:
        return None, None
    name, _, number = word.partition("=")
    if name == "garbage-at-budget" and number.isdigit():
        return name, int(number)
    if word not in FAILURES[:-1]:
        raise ValueError(f"--fail must be one of {', '.join(FAILURES)}, got {word}.")
    return word, None


def _effective(flat: dict[str, Any], trained: int) -> Effective:
    """Check the speculative flags as SGLang does, and fill in what was left out."""
    name = flat["speculative_algorithm"]
    flat["speculative_algorithm"] = name = name.upper() if name else None
    if name not in ALGORITHMS:
        raise ValueError(f"Unknown speculative algorithm name: {name}")
    algorithm = ALGORITHMS[name]
    if algorithm is Algorithm.OFF:
        return effective_config(Config(algorithm))
    if not flat["speculative_draft_model_path"]:
        raise ValueError(f"{name} speculative decoding requires setting --speculative-draft-model-path.")
    block_size = flat["speculative_num_draft_tokens"] or trained
    if block_size < 2:
        raise ValueError(f"{name} requires --speculative-num-draft-tokens to be at least 2, got {block_size}.")
    flat["speculative_num_draft_tokens"] = block_size
    window = flat["speculative_draft_window_size"]
    if window is not None and window < block_size:
        raise ValueError(
            "--speculative-draft-window-size must be >= --speculative-num-draft-tokens (block_size). "
            f"window_size={window}, block_size={block_size}."
        )
    window = window or flat["context_length"]
    if algorithm is Algorithm.CHAIN:
        return effective_config(Config(algorithm, block_size, window=window))
    budget, topk = _tree_knobs(flat, block_size)
    return effective_config(Config(algorithm, block_size, budget, topk, window))


def _tree_knobs(flat: dict[str, Any], block_size: int) -> tuple[int, int | None]:
    """Budget and topk of a tree, by the rules of sglang's pull request 29907."""
    if flat["speculative_ddtree_budget"] is None:
        flat["speculative_ddtree_budget"] = block_size - 1
    budget, topk = flat["speculative_ddtree_budget"], flat["speculative_ddtree_topk"]
    if budget < 1:
        raise ValueError(f"--speculative-ddtree-budget must be >= 1, got {budget}.")
    if topk is not None and topk < 1:
        raise ValueError(f"--speculative-ddtree-topk must be >= 1, got {topk}.")
    if flat["page_size"] != 1:
        raise ValueError(f"DDTREE currently supports only page_size == 1. Got page_size={flat['page_size']}.")
    if budget > block_size - 1 and flat["attention_backend"] != "triton":
        raise ValueError(
            "DDTREE full-tree mode currently supports only the triton attention backend because it forwards "
            f"tree_budget + 1 verify tokens per request. Got attention_backend={flat['attention_backend']}."
        )
    return budget, topk


def trained_block_size(draft_path: str | None) -> int:
    """`block_size` of the drafter's config.json, as SGLang looks it up; 8 where there is no such file."""
    config = _read_json(draft_path, "config.json")
    found = config.get("dflash_config", {}).get("block_size", config.get("block_size"))
    return int(found) if found else DEFAULT_BLOCK_SIZE


def count_shards(model_path: str) -> int:
    """Shards named by the model's index; 64 where there is none.

    Raises:
        ValueError: a shard is missing, with SGLang's text.
    """
    shards = sorted(set(_read_json(model_path, "model.safetensors.index.json").get("weight_map", {}).values()))
    missing = [name for name in shards if not Path(model_path, name).exists()]
    if missing:
        raise ValueError(
            f"model.safetensors.index.json references {len(missing)} shard file(s) missing from {model_path} "
            f"(incomplete download?): {missing[:5]}"
        )
    return len(shards) or TARGET_SHARDS


def _read_json(folder: str | None, name: str) -> dict[str, Any]:
    path = Path(folder or "", name)
    if not folder or not path.is_file():
        return {}
    data = json.loads(path.read_text("utf-8"))
    return data if isinstance(data, dict) else {}
