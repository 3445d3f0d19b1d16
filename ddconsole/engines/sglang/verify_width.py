"""The verify graph's width, as the log tells it: does it hold the tree that was asked for, and does it prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, effective_config
from ddconsole.core.errors import Failure

if TYPE_CHECKING:
    from ddconsole.core.config import Config
    from ddconsole.core.progress import BootFacts


@dataclass(frozen=True, slots=True)
class Width:
    """What the verify graph's width says, and whether that proves that the config runs.

    Attributes:
        contested: the width would fit another budget as well, whatever /server_info repeats.
    """

    text: str
    proved: bool
    contested: bool = False


def check_verify_width(config: Config, facts: BootFacts) -> Width | Failure:
    """The verify graph's width against N = B + 1 (tree) or b (chain).

    A chain is never padded. A tree's graph may be wider than its tree: one fork captures graphs for buckets of nodes
    (`graph_buckets` of its worker's line). A wider graph that could be this tree's padding could as well be another
    budget's own: only a worker that names the budget tells them apart, for /server_info repeats what was asked.
    """
    wanted, logged = effective_config(config).verify_width, facts.verify_width
    if config.algorithm is Algorithm.OFF and logged is None:
        return Width("no verify graph (log)", proved=True)
    if config.algorithm is Algorithm.OFF:
        what = "the engine drafts, and this config asks for none"
        return Failure("identity-mismatch", what, (f"num_tokens_per_req={logged}",), "see who started it", "graphs")
    if logged is None:
        return Width(f"verify width {wanted} (no verify graph in the log)", proved=False)
    if logged == wanted:
        return Width(f"verify width {logged} (log)", proved=True)
    if logged < wanted:
        return _too_narrow(config, wanted, logged)
    if config.algorithm is Algorithm.TREE and is_padding(wanted, logged):
        if facts.budget is not None:
            return Width(f"verify width {wanted}, padded to {logged} (log)", proved=True)
        either = f"{wanted} padded, or a budget of {logged - 1}: no line of the worker names the budget"
        return Width(f"verify width {wanted} (the graph holds {logged}: {either})", proved=False, contested=True)
    return _too_wide(config, wanted, logged)


def _too_narrow(config: Config, wanted: int, logged: int) -> Failure:
    what = f"the verify graph holds {logged} tokens a request and this config verifies {wanted}"
    if config.algorithm is Algorithm.CHAIN:
        asked, advice = f"block size = {wanted}", "this engine runs another block size: compare knobs.block_size"
    else:
        asked = f"budget + 1 = {wanted}"
        advice = "this fork sizes its graph by the block, not by the tree: use a version that sizes it by the budget"
    return Failure("verify-graph-too-small", what, (f"num_tokens_per_req={logged}", asked), advice, "graphs")


def _too_wide(config: Config, wanted: int, logged: int) -> Failure:
    knob = "block_size" if config.algorithm is Algorithm.CHAIN else "budget"
    word = knob.replace("_", " ")
    return Failure(
        "identity-mismatch",
        f"the verify graph holds {logged} tokens a request and this config verifies {wanted}: another {word} runs",
        (f"num_tokens_per_req={logged}", f"asked for {wanted}"),
        f"this fork ignores the {word}, or spells it otherwise: compare knobs.{knob} with its --help",
        "graphs",
    )


def is_padding(wanted: int, logged: int) -> bool:
    """Whether `logged` may be `wanted` rounded up: to a power of two, or to a multiple of one up to 32."""
    return logged == 1 << (wanted - 1).bit_length() or any(
        logged == -(-wanted // unit) * unit for unit in (2, 4, 8, 16, 32)
    )
