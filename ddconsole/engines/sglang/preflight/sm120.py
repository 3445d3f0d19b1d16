"""Known traps of SM120 cards (RTX PRO 6000 and RTX 50, compute capability 12.0): no TMEM, no WGMMA, 99 KiB of smem."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ddconsole.engines.sglang.preflight.sections import rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.engines.sglang.preflight.cards import Card
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "cards"
CAPABILITY: Final = "12."
OLDEST_DRIVER: Final = 570
"""The first driver branch with these cards."""

OLDEST_NVCC: Final = (12, 9)
"""FlashInfer's JIT says "No supported CUDA architectures" below (flashinfer#3633, vllm#50705)."""

MISFIT_NVCC: Final = (13, 3)
"""With headers of CUDA 13.0 the sampler's JIT fails (vllm#44305)."""

BACKEND_ARGS: Final = (
    "attention-backend",
    "prefill-attention-backend",
    "decode-attention-backend",
    "speculative-draft-attention-backend",
)
NO_BACKENDS: Final = frozenset(
    {"fa3", "fa4", "trtllm_mla", "flashmla", "cutlass_mla", "cutedsl_mla", "tokenspeed_mla", "hpc_ops"}
)
"""Kernels that need what these cards do not have."""

DEEP_GEMM: Final = {
    "moe-runner-backend": frozenset({"deep_gemm", "megamoe", "flashinfer_megamoe"}),
    "speculative-moe-runner-backend": frozenset({"deep_gemm", "megamoe", "flashinfer_megamoe"}),
    "moe-a2a-backend": frozenset({"megamoe"}),
    "fp8-gemm-backend": frozenset({"deep_gemm", "flashinfer_deepgemm"}),
}
"""Arguments that choose DeepGEMM: "Unsupported architecture" or "Unknown recipe" here (sglang#25877, #34827)."""

XQA: Final = "trtllm_mha"
"""By XQA on these cards: without a mask a verify step fails or accepts nothing (sglang#32269)."""


def check_driver(cards: Sequence[Card], found: Sections, report: Report) -> None:
    """Tell driver, toolkit and compute capability, and which of them does not fit the cards."""
    drivers = sorted({text for card in cards if (text := card.text("driver_version"))})
    capabilities = sorted({text for card in cards if (text := card.text("compute_cap"))})
    toolkit = next((row[0] for row in rows(found.get("toolkit", []), "nvcc", 2)), "")
    report.facts["cuda"] = {"driver": drivers, "compute_capability": capabilities, "nvcc": toolkit or None}
    if cards:
        report.see(TOPIC, "driver", f"{', '.join(drivers) or 'not told'}, compute capability "
                   f"{', '.join(capabilities) or 'not told'}, nvcc {toolkit or 'not installed'}")  # fmt: skip
    if not is_sm120(cards):
        return
    if drivers and (number := _pair(drivers[0])) and number[0] < OLDEST_DRIVER:
        report.warn("driver-old", f"driver {drivers[0]} is older than the cards",
                    f"SM120 needs {OLDEST_DRIVER} or newer")  # fmt: skip
    _check_toolkit(toolkit, report)


def is_sm120(cards: Sequence[Card]) -> bool:
    """Whether any card is of that kind."""
    return any((card.text("compute_cap") or "").startswith(CAPABILITY) for card in cards)


def _check_toolkit(toolkit: str, report: Report) -> None:
    number = _pair(toolkit)
    if number is None:
        return
    if number < OLDEST_NVCC:
        report.warn("toolkit-old", f"nvcc {toolkit} does not know SM120: FlashInfer's JIT fails below 12.9",
                    "install CUDA 12.9 or newer, or keep every backend on triton")  # fmt: skip
    elif number >= MISFIT_NVCC:
        report.warn("toolkit-new", f"nvcc {toolkit} with headers of CUDA 13.0: FlashInfer's sampler does not compile",
                    "set CUDA_HOME to a toolkit of the version that torch was built with")  # fmt: skip


def _pair(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,5})\.(\d{1,5})", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def check_traps(
    cards: Sequence[Card], args: Mapping[str, str | None], env: Mapping[str, str], drafts: bool, report: Report
) -> None:
    """Arguments and variables that these cards are known to punish. `drafts` says that a drafter is used."""
    if not is_sm120(cards):
        return
    _check_kernels(args, drafts, report)
    _check_numbers(args, env, report)


def _check_kernels(args: Mapping[str, str | None], drafts: bool, report: Report) -> None:
    """Backends without a kernel for these cards, or without the mask that verifying needs."""
    for name in BACKEND_ARGS:
        if args.get(name) in NO_BACKENDS:
            report.block("sm120-backend", f"{name} {args[name]} does not run on SM120", "use triton or flashinfer")
    for name, backends in DEEP_GEMM.items():
        if args.get(name) in backends:
            report.warn("sm120-deep-gemm", f"{name} {args[name]} is DeepGEMM, which has few kernels for SM120",
                        f"set arg.{name} to triton or cutlass, or install sgl-deep-gemm 0.1.5 or newer")  # fmt: skip
    if not drafts:
        return
    for name in _verifying(args):
        if args.get(name) == XQA:
            report.warn("sm120-xqa", f"{name} {XQA} decodes by XQA on SM120, without a mask inside the verify window",
                        "verifying fails, or accepts no draft in silence; use triton (sglang#32269)")  # fmt: skip


def _verifying(args: Mapping[str, str | None]) -> tuple[str, ...]:
    """The arguments that name the backends of decode and draft: decode's own goes before the common one."""
    decode = "attention-backend" if args.get("decode-attention-backend") is None else "decode-attention-backend"
    return decode, "speculative-draft-attention-backend"


def _check_numbers(args: Mapping[str, str | None], env: Mapping[str, str], report: Report) -> None:
    """What runs, and is slow, wrong or breaks later."""
    if (args.get("kv-cache-dtype") or "").startswith("fp8"):
        report.warn("sm120-fp8-kv", "fp8 KV cache on SM120: an INT4 Kimi ran at 16 tok/s with it and at 90 without",
                    "compare with bf16; with flashinfer set FLASHINFER_CUDA_ARCH_LIST=12.0f (vllm#54225)")  # fmt: skip
    if args.get("fp4-gemm-backend") == "flashinfer_cutlass":
        report.warn("sm120-fp4-gemm", "fp4-gemm-backend flashinfer_cutlass returns zeros on SM120, silently",
                    "set arg.fp4-gemm-backend=flashinfer_cudnn (flashinfer#2577, #2708)")  # fmt: skip
    if "expandable_segments:True" in env.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        report.warn("sm120-segments", "expandable_segments:True crashes the one-shot all-reduce between PCIe cards",
                    "take it out of PYTORCH_CUDA_ALLOC_CONF")  # fmt: skip
