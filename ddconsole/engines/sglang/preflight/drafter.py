"""The drafter: at which block size it was trained, and how it is quantised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.engines.sglang.preflight.weights import TOPIC, block_size_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Profile
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.weights import Weights


def trained_block_size(profile: Profile, drafter: Weights, report: Report) -> int | None:
    """As the profile says, else as the drafter's own config.json does; a contradiction between the two is told."""
    said, read = profile.engine.known_block_size, block_size_in(drafter.config)
    if said is not None and read is not None and said != read:
        report.warn("trained-block-size-differs",
                    f"the profile says the drafter was trained at {said}, its config.json says {read}",
                    "the engine goes by config.json; write `trained_block_size: auto`")  # fmt: skip
    found, source = (said, "profile") if said is not None else (read, "config.json")
    report.facts["trained_block_size"] = {"value": found, "by": source if found is not None else None}
    if profile.engine.drafter is not None and found is not None:
        report.see(TOPIC, "trained at", f"block size {found} ({source})")
    return found


def check_quantisation(config: Config, target: Weights, args: Mapping[str, str | None], report: Report) -> None:
    """A drafter beside a quantised target inherits the target's quantisation unless it is told otherwise."""
    if config.algorithm is Algorithm.OFF or "quantization_config" not in target.config:
        return
    if args.get("speculative-draft-model-quantization") is None:
        report.note("drafter-quantisation", "the target is quantised and the drafter inherits that",
                    "a bf16 drafter wants arg.speculative-draft-model-quantization=unquant; "
                    "a wrong one drafts nothing that is accepted, without an error")  # fmt: skip
