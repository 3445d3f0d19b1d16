"""What SGLang's failures look like in its log: data. Texts from its sources 0.5.10 to 0.5.23, its forks and issues.

Within one line the first row that matches wins, so the order matters; `{names}` are groups of the pattern, `{when}`
says in which phase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Strength(IntEnum):
    """How much a line explains. Of equally strong ones, the earliest in the log is the cause."""

    ROOT = 0
    """A cause."""
    HINT = 1
    """Explains a death only when nothing better does."""
    FOLLOWER = 2
    """What the other ranks say once one has died."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One kind of failure. `what` and `advice` may name the pattern's groups."""

    cause: str
    pattern: re.Pattern[str]
    what: str
    advice: str
    strength: Strength = Strength.ROOT


def _row(cause: str, pattern: str, what: str, advice: str, strength: Strength = Strength.ROOT) -> Signature:
    return Signature(cause, re.compile(pattern), what, advice, strength)


_SIZE = r"[\d.]+ [KMGT]?i?B"

ARGUMENTS: Final = (
    _row("unknown-flag", r"error: unrecognized arguments: (?P<args>.+)",
         "this engine does not know {args}",
         "spell the knob as this engine's --help does (knobs in the profile), or install the fork that has it"),
    _row("unknown-algorithm", r"Unknown speculative algorithm name: (?P<name>\S+)",
         "this engine has no algorithm {name}",
         "install the fork that has it, or give knobs.algorithm the name that this engine knows"),
    _row("unknown-algorithm", r"argument --speculative-algorithm: invalid choice: (?P<name>\S+)",
         "this engine has no algorithm {name}",
         "install the fork that has it, or give knobs.algorithm the name that this engine knows"),
    _row("bad-argument", r"error: argument (?P<flag>[^:]+): (?P<text>.+)",
         "{flag}: {text}", "mend the value in engine.args of the profile or in the experiment's arg."),
    _row("bad-argument", r"error: the following arguments are required: (?P<args>.+)",
         "the engine wants {args}", "add it to engine.args of the profile"),
    _row("no-command", r"(?:sh: (?:line )?\d*:? ?|env: |exec: )[^:]*: (?:command )?not found|env: .*: No such file",
         "the engine's command is not on the host", "mend engine.command in the profile, or install the engine"),
    _row("no-command", r"No module named '?(?P<name>sglang\b[\w.]*)",
         "the host's Python has no module {name}", "name the Python that has SGLang in engine.command"),
)  # fmt: skip

RULES: Final = (
    _row("window-below-block", r"draft-window-size must be >= .*window_size=(?P<w>\d+), block_size=(?P<b>\d+)",
         "the window ({w}) is smaller than the block ({b})", "ask for a window of at least the block size"),
    _row("ddtree-rules", r"(?P<text>DDTREE (?:currently|full-tree|does|requires)[^\n]{0,200})",
         "{text}", "set page-size 1 and attention-backend triton in engine.args, or a budget of at most b - 1"),
    _row("ddtree-rules", r"(?P<text>(?i:tree[- ](?:verify|attention|mask)\w*)[^\n]{0,80}?"
         r"(?:only supports|only supported|does not support|not supported|requires)[^\n]{0,160})",
         "this attention backend cannot verify a tree: {text}",
         "a tree's verify step needs a mask of its own: set attention-backend triton in engine.args"),
    _row("refused-config", r"(?P<text>--speculative-ddtree-budget must be[^\n]{0,200})",
         "{text}", "mend the budget of this experiment"),
    _row("refused-config", r"(?P<text>(?:DFLASH|DSPARK) [a-z ]*requires[^\n]{0,200}"
         r"|Currently DFLASH[^\n]{0,200}|Both --speculative-num-draft-tokens and[^\n]{0,200}"
         r"|--speculative-draft-window-size must be positive[^\n]{0,100})",
         "{text}", "mend engine.args of the profile or this experiment"),
    _row("drafter-mismatch", r"(?P<text>DFLASH (?:fc\.weight shape mismatch|target_layer_ids contains|mask_token_id is"
         r" outside|config mismatch)[^\n]{0,200})",
         "the drafter does not fit the target: {text}", "use the drafter that was trained for this target"),
    _row("drafter-unsupported", r"Model (?P<model>\S+) implements neither set_dspark_layers_to_capture nor",
         "this engine cannot draft for {model}", "use a version whose model class has set_dflash_layers_to_capture"),
    _row("no-tree-kernel", r"(?P<text>TRTLLM FMHAv2 prefill on SM120 does not support[^\n]{0,160})",
         "{text}", "use attention-backend triton and a bf16 KV cache on these cards"),
    _row("no-tree-kernel", r"Mask is required for speculative decoding",
         "this card's trtllm_mha decodes by XQA, which gets no mask for the tokens that a step verifies",
         "set attention-backend triton for target and drafter in engine.args (sglang#32269)"),
)  # fmt: skip

MEMORY: Final = (
    _row("graph-oom", r"Capture cuda graph failed: (?P<text>.*out of memory.*)",
         "out of GPU memory while capturing graphs: {text}",
         "lower mem-fraction-static or cuda-graph-max-bs: the graphs need room beside the KV pool"),
    _row("graph-capture", r"Capture cuda graph failed: (?P<text>.+)",
         "graph capture failed: {text}", "read the lines above; try disable-cuda-graph to tell capture from kernel"),
    _row("gpu-oom", rf"CUDA out of memory\. Tried to allocate (?P<asked>{_SIZE})\. GPU (?P<gpu>\d+) has a total"
         rf" capacity of (?P<total>{_SIZE}) of which (?P<free>{_SIZE}) is free\..*?"
         rf"Process (?P<pid>\d+) has (?P<held>{_SIZE})",
         "GPU {gpu} is out of memory: {asked} asked for, {free} of {total} free; process {pid} holds {held}",
         "see whose process {pid} is (nvidia-smi, ps): free the card, or wait for it"),
    _row("gpu-oom", rf"CUDA out of memory\. Tried to allocate (?P<asked>{_SIZE})\. GPU (?P<gpu>\d+) has a total"
         rf" capacity of (?P<total>{_SIZE}) of which (?P<free>{_SIZE}) is free",
         "GPU {gpu} is out of memory: {asked} asked for, {free} of {total} free",
         "lower mem-fraction-static or the context length, or use more cards"),
    _row("kv-too-small", r"Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static="
         r"(?P<now>[\d.]+)\. Raise --mem-fraction-static above (?P<need>[\d.]+\d)",
         "no room for the KV cache: mem-fraction-static is {now} and has to be above {need}",
         "raise arg.mem-fraction-static above {need}"),
    _row("kv-too-small", r"Not enough memory\. Please try to increase --mem-fraction-static\. Current value: \S*?"
         r"(?P<now>[\d.]*\d)\b",
         "no room for the KV cache with mem-fraction-static={now}", "raise arg.mem-fraction-static"),
    _row("host-oom", r"[Oo]ut of memory: Killed process (?P<pid>\d+)",
         "the host ran out of memory and its kernel killed process {pid}",
         "free host memory; loading needs room for shards in flight"),
    _row("host-oom", r"killed by the OOM killer|Failed with result 'oom-kill'",
         "the host ran out of memory and its kernel killed a process of the engine",
         "free host memory, or raise the unit's MemoryMax; loading needs room for shards in flight"),
    _row("gpu-oom", r"(?:CUDA )?[Oo]ut of memory(?!: Killed)|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED",
         "out of GPU memory", "lower mem-fraction-static or the context length, or free the cards"),
    _row("gpu-busy", r"The memory capacity is unbalanced.*pre_model_load_memory=(?P<before>[\d.]+)",
         "another process holds memory on one of the cards ({before} GB were free before loading)",
         "see nvidia-smi for whose it is; free the card, or leave it out", Strength.HINT),
)  # fmt: skip

CARD: Final = (
    _row("unsupported-card", r"(?P<text>Assertion error \([^)\n]{0,200}(?:deep_?gemm|csrc/apis/|utils/layout\.hpp)"
         r"[^)\n]{0,80}\): (?:Unsupported architecture|Unknown recipe)"
         r"|(?:DeepGEMM|deep_gemm)[^\n]{0,90}(?:not (?:available|supported)(?! or)|on consumer Blackwell)[^\n]{0,120})",
         "DeepGEMM does not run on this card: {text}",
         "set moe-runner-backend and fp8-gemm-backend to triton or cutlass; SM120 needs sgl-deep-gemm 0.1.5 or newer"),
    _row("unsupported-card", r"(?P<text>Only SM 10\.x and 11\.x are supported|[^\n:]{0,80}for FA4 CuTe"
         r"|Unsupported compute capability\. Supported: [^\n]{0,60})",
         "FlashAttention 4 has no kernel for this card: {text}",
         "use attention-backend triton (or flashinfer's FA2), for the drafter too; FA3 and FA4 do not run on SM120"),
    _row("sm120-shared-memory",
         r"out of resource: shared memory, Required: (?P<need>\d+), Hardware limit: (?P<limit>\d+)",
         "a Triton kernel needs {need} bytes of shared memory and this card has {limit}",
         "SM120 cards have 99 KB: use a version with SM120 block sizes (sglang#17908), or num_stages=1"),
    _row("unsupported-card", r"TllmGenFmhaRunner|Unsupported architecture",
         "an attention kernel of this backend does not exist for this card",
         "use attention-backend triton (or flashinfer's FA2); trtllm_mla, FA3 and FA4 do not run on SM120"),
    _row("unsupported-card", r"no kernel image is available for execution on the device",
         "a compiled kernel was not built for this card's architecture",
         "install builds for this compute capability (sgl-kernel, torch with SM120)"),
    _row("unsupported-card", r"(?P<text>[^\n:]{0,80}(?:[Bb]ackend requires SM|requires (?:SM|sm_?)(?:90|100)"
         r"|only (?:supported|available) on (?:Blackwell|Hopper|SM|sm_?)[^\n]{0,60}))",
         "a backend wants another card: {text}",
         "SM120 has no FA3, FA4, trtllm_mla, DeepGEMM nor FlashMLA: use attention-backend triton (or flashinfer FA2)"),
    _row("toolkit-too-old", r"No supported CUDA architectures",
         "the CUDA toolkit on the host is too old to compile for this card",
         "SM120 wants nvcc 12.9 or newer on PATH (flashinfer#3633)"),
    _row("jit-stale", r"(?P<file>\S+\.so): undefined symbol",
         "a compiled kernel in {file} is of another version",
         "empty the JIT caches (flashinfer, torch_extensions, triton): they outlive an upgrade"),
    _row("jit-failed",
         r"(?:Ninja build failed|Error building extension|ninja: build stopped|nvcc fatal)(?P<text>.{0,120})",
         "a kernel could not be compiled on the host{text}",
         "check nvcc against torch's CUDA version: a newer one fails too (13.3 against cu130 headers, vllm#44305)"),
    _row("missing-kernel", r"(?:sgl_kernel stub: |'sgl_kernel' object has no attribute ')(?P<name>\w+)",
         "this build of sgl-kernel has no {name}", "install the sgl-kernel that this SGLang wants, for this card"),
    _row("illegal-memory", r"an illegal memory access was encountered|CUDA error: misaligned address",
         "a kernel touched memory that is not its own",
         "on SM120 with an fp8 KV cache: use triton, or FLASHINFER_CUDA_ARCH_LIST=12.0f (vllm#54225)"),
    _row("driver", r"CUDA driver version is insufficient|NVIDIA driver on your system is too old|no NVIDIA driver",
         "the host's driver does not fit this build", "update the driver, or use a build for its CUDA version"),
    _row("version-skew", r"(?P<text>\S+ (?:is installed with version \S+, which is less than the minimum"
         r" required version \S+|with minimum required version \S+ is not installed))",
         "{text}", "install the version that it asks for"),
)  # fmt: skip

FILES: Final = (
    _row("weights-missing", r"(?P<text>\S+ references \d+ shard file\(s\) missing from [^\n]{0,200})",
         "{text}", "complete the download of the model"),
    _row("weights-missing", r"Cannot find any model weights with (?P<path>\S+)",
         "no weights in {path}", "check engine.model and engine.drafter in the profile"),
    _row("weights-damaged", r"SafetensorError|Error while deserializing header",
         "a weights file is damaged or cut short", "download the shard named above again"),
    _row("model-not-found", r"Repository Not Found|is not a local folder and is not a valid model identifier"
         r"|does not appear to have a file named config\.json",
         "the model is not where the profile says", "check engine.model and engine.drafter in the profile"),
    _row("model-access", r"gated repo|401 Client Error|403 Client Error",
         "the host may not download this model", "give engine.secrets an HF_TOKEN, or download it beforehand"),
    _row("disk-full", r"No space left on device", "the host's disk is full", "free space on the host"),
)  # fmt: skip

PORTS: Final = (
    _row("port-held", r"error while attempting to bind on address \('(?P<host>[^']*)', (?P<port>\d+)",
         "port {port} was held by another process, so this engine never served, whatever its log says after",
         "see who holds the port, end it, or use another port in the profile"),
    _row("port-held", r"[Aa]ddress already in use",
         "a port that the engine needs was held by another process",
         "see who holds it (ss -ltnp), or use another port"),
    _row("internal-port", r"(?P<name>\w*port) at (?P<port>\d+) (?:is not available in|is used by a process already)"
         r"|is used by a process already\. process\.name|Port is already in use",
         "an internal port of the engine is taken", "end the earlier engine, or set another nccl-port"),
)  # fmt: skip

DEATHS: Final = (
    _row("watchdog", r"(?:Scheduler )?[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<limit>\d+)",
         "the engine hung {when}: its own watchdog ended it after {limit} s without progress",
         "see the py-spy dumps above the line; if it was only slow (repacking weights), raise watchdog-timeout"),
    _row("warmup-failed", r"Initialization failed\. warmup error: (?P<text>.+)",
         "the engine's own first request failed: {text}", "read the lines above", Strength.HINT),
    _row("child-died", r"Rank (?P<rank>\d+) scheduler died during initialization \(exit code: (?P<code>-?\d+)\)",
         "the scheduler of rank {rank} died without a word (exit code {code})",
         "-9 is often the kernel's OOM killer: look at dmesg on the host", Strength.HINT),
    _row("child-died", r"Subprocess (?P<name>\S+) \(pid=\d+\) crashed with exit code (?P<code>-?\d+)",
         "{name} died (exit code {code})", "read the lines above; -9 is often the kernel's OOM killer", Strength.HINT),
    _row("stopped", r"SIGTERM received", "somebody asked the engine to stop (SIGTERM)",
         "look for who did: a service manager, another login, a time limit", Strength.HINT),
    _row("unresponsive", r"Health check failed\. Server couldn't get a response from detokenizer",
         "the engine stopped answering its own health checks {when}",
         "see the lines above; GPU busy with another's work and a hung rank look alike", Strength.HINT),
    _row("nccl", r"NCCL error|DistBackendError|WorkNCCL\(|TCPStore|ProcessGroupNCCL",
         "the ranks lost each other (NCCL)", "look for the rank that died first; else check P2P, NCCL and the cables",
         Strength.FOLLOWER),
    _row("child-died", r"Received sigquit from a child process|SIGQUIT received\.",
         "a process of the engine died {when} and left no word",
         "look at dmesg on the host for the OOM killer, and at the end of the full log", Strength.FOLLOWER),
)  # fmt: skip

SIGNATURES: Final = (*ARGUMENTS, *RULES, *MEMORY, *CARD, *FILES, *PORTS, *DEATHS)
"""All of them, in the order in which a line is tried."""
