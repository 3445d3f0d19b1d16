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
NO_BACKENDS: Final = frozenset({"fa3", "fa4", "trtllm_mla", "flashmla", "cutlass_mla", "cutedsl_mla"})
"""Kernels that need what these cards do not have."""


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


def check_traps(cards: Sequence[Card], args: Mapping[str, str | None], env: Mapping[str, str], report: Report) -> None:
    """Arguments and variables that these cards are known to punish."""
    if not is_sm120(cards):
        return
    for name in BACKEND_ARGS:
        if args.get(name) in NO_BACKENDS:
            report.block("sm120-backend", f"{name} {args[name]} does not run on SM120", "use triton or flashinfer")
    if (args.get("kv-cache-dtype") or "").startswith("fp8"):
        report.warn("sm120-fp8-kv", "fp8 KV cache on SM120: an INT4 Kimi ran at 16 tok/s with it and at 90 without",
                    "compare with bf16; with flashinfer set FLASHINFER_CUDA_ARCH_LIST=12.0f (vllm#54225)")  # fmt: skip
    if args.get("fp4-gemm-backend") == "flashinfer_cutlass":
        report.warn("sm120-fp4-gemm", "fp4-gemm-backend flashinfer_cutlass returns zeros on SM120, silently",
                    "set arg.fp4-gemm-backend=flashinfer_cudnn (flashinfer#2577, #2708)")  # fmt: skip
    if "expandable_segments:True" in env.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        report.warn("sm120-segments", "expandable_segments:True crashes the one-shot all-reduce between PCIe cards",
                    "take it out of PYTORCH_CUDA_ALLOC_CONF")  # fmt: skip
