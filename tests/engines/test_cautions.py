"""What stops nothing and spoils the numbers is a warning: what it means, the line that shows it, what to do."""

from __future__ import annotations

import pytest

from ddconsole.core.progress import LogWarning
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.cautions import CAUTIONS

DFLASH_KV = "DFLASH fused KV materialization disabled: "
ROWS = [
    ("block-size-mismatch", "DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config "
     "block_size=8.", "trained at block size 8 and runs at 16", "b=8"),
    ("block-size-guessed", "Failed to infer DFLASH block_size from draft model config; defaulting "
     "speculative_num_draft_tokens to 16. Error: x", "could not be read", "config.json"),
    ("block-size-guessed", "speculative_num_draft_tokens is not set; defaulting to 16 for DFLASH.", "took 16", "knobs"),
    ("drafter-backend", "DFLASH draft worker does not support attention_backend 'trtllm_mla' on cuda. Falling back to "
     "'flashinfer'.", "fell back to flashinfer", "speculative-draft-attention-backend"),
    ("drafter-backend", "DFLASH draft worker does not support 'trtllm_mha' because the draft path requires non-causal "
     "attention. Falling back to 'triton'.", "fell back to triton", "speculative-draft-attention-backend"),
    ("drafter-backend", "DFLASH draft worker only supports attention_backend in ('flashinfer', 'fa3') for now, but got "
     "'x'. Falling back to 'flashinfer'.", "fell back to flashinfer", "speculative-draft-attention-backend"),
    ("drafter-quantized", DFLASH_KV + "quantized qkv_proj is not supported", "quantised", "unquant"),
    ("drafter-quantized", "Load weight end. elapsed=3.90 s, type=DFlashDraftModel, quant=fp8, avail mem=1 GB, mem "
     "usage=1 GB.", "quantisation fp8", "unquant"),
    ("drafter-slow-path", DFLASH_KV + "non-neox RoPE is not supported: layer=0", "non-neox", "reason"),
    ("drafter-slow-path", "DFLASH draft greedy head kept eager (reason=tp=8).", "outside its graph", "reason"),
    ("drafter-no-graph", "Disable DFLASH draft cuda graph because only 0.91 GB GPU memory is available after target "
     "backend initialization.", "0.91 GB", "mem-fraction-static"),
    ("dtype-changed", "Casting torch.bfloat16 to torch.float16.", "from bfloat16 to float16", "arg.dtype"),
    ("dtype-changed", "Compute capability below sm80. Use float16 due to lack of bfloat16 support.", "float16", "card"),
    ("kv-below-context", "KV pool holds 4096 tokens, fewer than --context-length 131072. One full-length request "
     "cannot fit, ...", "131072", "context-length"),
    ("gpu-unbalanced", "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
     "pre_model_load_memory=33.1, local_gpu_memory=94.0", "33.1 GB", "nvidia-smi"),
]  # fmt: skip


def warned(*messages: str, rank: str = " TP0") -> tuple[LogWarning, ...]:
    """The warnings of a log of these messages."""
    log = BootLog()
    log.feed("".join(f"[2026-11-18 14:02:01{rank}] {message}\n" for message in messages).encode(), 0.0)
    return log.facts.warnings


def decode(tau: float, *, graph: bool = True) -> str:
    """A decode line."""
    return (
        f"Decode batch, #running-req: 1, #token: 1311, token usage: 0.01, accept len: {tau:.2f}, accept rate: 0.02, "
        f"cuda graph: {graph}, gen throughput (token/s): 31.20, #queue-req: 0"
    )


@pytest.mark.parametrize(("code", "message", "what", "advice"), ROWS)
def test_each_silent_trouble_is_told(code: str, message: str, what: str, advice: str) -> None:
    """In words, with its line and with what to do."""
    (warning,) = warned(message)
    assert warning.code == code
    assert what in warning.what
    assert advice in warning.advice
    assert warning.evidence == f"[2026-11-18 14:02:01 TP0] {message}"


def test_every_caution_has_a_line_that_shows_it() -> None:
    """A row that no line of an engine matches is a guess."""
    assert {row.code for row in CAUTIONS} == {code for code, *_ in ROWS}


def test_a_drafter_that_never_helps_is_told_once() -> None:
    """An acceptance length of about 1 is lossless and silent."""
    (warning,) = warned(*[decode(1.02)] * 9)
    assert warning.code == "drafter-not-helping"
    assert "below 1.2" in warning.what
    assert "accept len: 1.02" in warning.evidence


@pytest.mark.parametrize("taus", [[1.02, 1.02, 4.6, 1.02, 1.02], [1.3] * 9, [4.8] * 9, [1.0, 1.1]])
def test_low_moments_are_no_trouble(taus: list[float]) -> None:
    """The end of an answer, or a drafter that is merely poor."""
    assert warned(*map(decode, taus)) == ()


def test_decoding_without_a_graph_is_told_once() -> None:
    """The prefill line says False in every healthy run; the decode line must not."""
    prefill = "Prefill batch, #new-seq: 1, #new-token: 71, cuda graph: False, input throughput (token/s): 3.10"
    assert warned(prefill) == ()
    (warning,) = warned(prefill, *[decode(4.8, graph=False)] * 5)
    assert warning.code == "eager-decode"
    assert "cuda-graph-max-bs" in warning.advice


def test_a_healthy_drafter_raises_no_warning() -> None:
    """Its load has no quantisation, and the target's may have one."""
    loads = (
        "Load weight end. elapsed=398 s, type=KimiK25ForConditionalGeneration, quant=compressed-tensors",
        "Load weight end. elapsed=3 s, type=DFlashDraftModel, avail mem=18.69 GB, mem usage=0.83 GB.",
        "DFLASH fused KV materialization enabled. n_layers=5",
        "DFLASH draft greedy head folded into the draft cuda graph (tp=8).",
    )
    assert warned(*loads) == ()
