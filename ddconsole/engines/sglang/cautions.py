"""What SGLang says in passing and goes on: lines that stop nothing and yet spoil the numbers. Data.

Texts from its sources 0.5.11 to 0.5.23 and its DDTree forks. A row is found by how a message begins; `{names}` are
groups of its pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ddconsole.core.progress import LogWarning


@dataclass(frozen=True, slots=True)
class Caution:
    """One kind of silent trouble. `begins` is how its messages begin; the pattern is searched in such a message.

    `what` and `advice` may name the pattern's groups.
    """

    code: str
    begins: str
    pattern: re.Pattern[str]
    what: str
    advice: str


def _row(code: str, begins: str, pattern: str, what: str, advice: str) -> Caution:
    return Caution(code, begins, re.compile(pattern), what, advice)


_UNQUANT = "pass arg.speculative-draft-model-quantization=unquant: else a drafter inherits the target's quantisation"

CAUTIONS: Final = (
    _row("block-size-mismatch", "DFLASH block size mismatch",
         r"using \w+=(?P<run>\d{1,9}) but draft config block_size=(?P<trained>\d{1,9})",
         "the drafter was trained at block size {trained} and runs at {run}",
         "expect fewer accepted drafts; measure b={trained} beside it, or use a drafter trained at {run}"),
    _row("block-size-guessed", "Failed to infer DFLASH block_size", r"(?P<text>defaulting[^.]*\.?)",
         "the drafter's block size could not be read: {text}",
         "check the drafter's config.json (dflash_config.block_size), and set the block size"),
    _row("block-size-guessed", "speculative_num_draft_tokens is not set", r"defaulting to (?P<run>\d{1,9})",
         "no block size was passed, so the engine took {run}", "check the flag that knobs.block_size names"),
    _row("drafter-backend", "DFLASH draft worker",
         r"(?:does not support|only supports)(?P<text>.*?)[.;,] [Ff]alling back to '?(?P<to>\w+)",
         "the drafter's attention backend fell back to {to}",
         "set arg.speculative-draft-attention-backend to one that this engine can draft with (triton on SM120)"),
    _row("drafter-quantized", "DFLASH fused KV materialization disabled", r"quantized",
         "the drafter runs quantised, off its fast path: silently, next to no draft may be accepted", _UNQUANT),
    _row("drafter-slow-path", "DFLASH fused KV materialization disabled", r"disabled:? ?(?P<text>.{0,160})",
         "the drafter builds its KV cache layer by layer ({text})", "compare step times with care; see the reason"),
    _row("drafter-slow-path", "DFLASH draft greedy head kept eager", r"reason=(?P<text>[^)]{0,160})",
         "the drafter's head runs outside its graph ({text})", "compare step times with care; see the reason"),
    _row("drafter-no-graph", "Disable DFLASH draft cuda graph", r"only (?P<free>[\d.]+ GB)",
         "the drafter runs without a CUDA graph: only {free} of GPU memory were left",
         "lower arg.mem-fraction-static, so that its graph fits"),
    _row("drafter-quantized", "Load weight end", r"type=(?P<type>\w*(?:DFlash|Draft)\w*), quant=(?P<quant>[\w-]+)",
         "the drafter ({type}) was loaded with the quantisation {quant}: silently, next to no draft may be accepted",
         _UNQUANT),
    _row("dtype-changed", "Casting torch.", r"Casting torch\.(?P<of>\w+) to torch\.(?P<to>\w+)",
         "a model's weights were cast from {of} to {to}", "set arg.dtype to what target and drafter were trained in"),
    _row("dtype-changed", "Compute capability below sm80", r"Use (?P<to>\w+)",
         "a model's weights were cast to {to}", "look whether the engine sees the card that it should use"),
    _row("kv-below-context", "KV pool holds",
         r"holds (?P<has>\d+) tokens, fewer than --context-length (?P<wants>\d+)",
         "the KV cache holds {has} tokens and the context length is {wants}: one full request does not fit",
         "lower arg.context-length, or raise arg.mem-fraction-static"),
    _row("gpu-unbalanced", "The memory capacity is unbalanced", r"pre_model_load_memory=(?P<before>[\d.]+)",
         "another process holds memory on one of the cards ({before} GB were free before loading)",
         "see nvidia-smi for whose it is; free the card, or leave it out"),
)  # fmt: skip
"""Tried in this order among those whose beginning fits."""

EAGER: Final = "cuda graph: False, gen throughput"
"""On a decode line: the batch ran without a CUDA graph."""

LOW: Final = re.compile(r"\baccept len: (?P<tau>[01]\.\d{0,9})")
"""On a decode line: an acceptance length below 2."""

LOW_TAU: Final = 1.2
"""Below this acceptance length a drafter only costs time; the same limit as in `core/quality.py`."""

LOW_LINES: Final = 3
"""Decode lines in a row below it, before it is said: one alone may be the end of an answer."""


def find_caution(message: str) -> LogWarning | None:
    """The caution that a message (without its prefix) is."""
    for row in CAUTIONS:
        if message.startswith(row.begins) and (match := row.pattern.search(message)) is not None:
            groups = {name: (text or "").strip()[:200] for name, text in match.groupdict().items()}
            return LogWarning(row.code, row.what.format(**groups), message, row.advice.format(**groups))
    return None


def eager_decode(line: str) -> LogWarning:
    """The caution for decoding outside a graph."""
    return LogWarning(
        "eager-decode",
        "the engine decodes without a CUDA graph: the batch is larger than the captured sizes, or capture is off",
        line,
        "raise arg.cuda-graph-max-bs to the concurrency that is measured; a tree's cost shows only with graphs",
    )


def useless_drafter(line: str) -> LogWarning:
    """The caution for an acceptance length of about 1 with a drafter set."""
    return LogWarning(
        "drafter-not-helping",
        f"the acceptance length stays below {LOW_TAU:g}: nearly every draft is rejected, the drafter only costs time",
        line,
        "check that drafter, block size and quantisation fit this target; an attention backend without a mask inside "
        "the verify window does the same (use triton on SM120)",
    )
