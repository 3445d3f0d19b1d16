"""One log for each kind of failure that SGLang, its DDTree forks and SM120 cards are known for, in eight ranks' noise.

The rows are named after what fails; the text is what the engine prints, the rest of the log is what surrounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from engines.test_faults import ROWS as LINES

from ddconsole.core.errors import Failure
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.signatures import SIGNATURES

BOOT = "".join(
    f"[2026-11-18 14:02:2{second} TP{rank}] {message}\n"
    for second, message in ((2, "Init parallel begin."), (8, "Load weight begin. avail mem=94.2 GB"))
    for rank in range(8)
)
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote process exited\n"
SIGQUIT = "[2026-11-18 14:10:18] Received sigquit from a child process. It usually means the child failed.\n"


def raised(text: str) -> str:
    """Rank 5 raised `text` while loading; the other ranks lost each other before and after it was printed."""

    def block(rank: int, error: str) -> str:
        head = f"[2026-11-18 14:10:1{rank} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        return head + '  File "/opt/sglang/scheduler.py", line 3011, in run\n    Scheduler(server_args)\n' + error

    return BOOT + block(2, NCCL) + block(5, text + "\n\n") + "".join(block(rank, NCCL) for rank in (0, 1, 7)) + SIGQUIT


def printed(text: str, rank: str = "") -> str:
    """A line of the root process, or of `rank`, in a boot that ended with it."""
    return f"{BOOT}[2026-11-18 14:10:15{rank}] {text}\n{SIGQUIT}"


def at_once(text: str) -> str:
    """Before any rank existed."""
    return text + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of failure: its log, the cause it has to get, and words that have to be in what is said and advised."""

    name: str
    log: str
    cause: str
    what: str
    advice: str


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 5 has a total capacity of 94.97 GiB"
ROWS = (
    Row("bad flag", at_once("launch_server.py: error: unrecognized arguments: --speculative-ddtree-budget 16"),
        "unknown-flag", "--speculative-ddtree-budget 16", "--help"),
    Row("invalid choice", at_once("x.py: error: argument --attention-backend: invalid choice: 'fa9' (choose from 'a')"),
        "bad-argument", "--attention-backend", "engine.args"),
    Row("unknown algorithm", at_once("ValueError: Unknown speculative algorithm name: DDTREE"),
        "unknown-algorithm", "no algorithm DDTREE", "fork"),
    Row("config: no drafter", at_once("ValueError: DFLASH speculative decoding requires setting "
        "--speculative-draft-model-path."), "refused-config", "draft-model-path", "engine.args"),
    Row("config: pipeline", at_once("ValueError: Currently DFLASH speculative decoding only supports pp_size == 1."),
        "refused-config", "pp_size", "engine.args"),
    Row("config: block size", at_once("ValueError: DFLASH requires --speculative-dflash-block-size to be positive, got "
        "0."), "refused-config", "positive", "engine.args"),
    Row("config: two block sizes", at_once("ValueError: Both --speculative-num-draft-tokens and "
        "--speculative-dflash-block-size are set but they differ. For DFLASH they must match."),
        "refused-config", "differ", "engine.args"),
    Row("config: window", at_once("ValueError: --speculative-draft-window-size must be >= "
        "--speculative-num-draft-tokens (block_size). window_size=4, block_size=8."),
        "window-below-block", "window (4)", "at least the block size"),
    Row("config: window not positive", at_once("ValueError: --speculative-draft-window-size must be positive, got 0."),
        "refused-config", "positive", "engine.args"),
    Row("config: dp attention", at_once("ValueError: DFLASH with dp attention requires --enable-dp-lm-head."),
        "refused-config", "enable-dp-lm-head", "engine.args"),
    Row("config: budget", at_once("ValueError: --speculative-ddtree-budget must be >= 1, got 0."),
        "refused-config", "budget", "budget"),
    Row("config: page size", at_once("ValueError: DDTREE currently supports only page_size == 1. Got page_size=64."),
        "ddtree-rules", "page_size=64", "page-size 1"),
    Row("config: full tree backend", at_once("ValueError: DDTREE full-tree mode currently supports only the triton "
        "attention backend because it forwards tree_budget + 1 verify tokens per request."),
        "ddtree-rules", "triton", "triton"),
    Row("drafter does not fit", raised("ValueError: DFLASH fc.weight shape mismatch. This usually means the draft "
        "checkpoint's number of context features (K) does not match this config."),
        "drafter-mismatch", "shape mismatch", "trained for this target"),
    Row("drafter not supported", raised("ValueError: Model KimiK3 implements neither set_dspark_layers_to_capture nor "
        "set_dflash_layers_to_capture, one of which is required for DFLASH/DSPARK."),
        "drafter-unsupported", "KimiK3", "version"),
    Row("GPU OOM", raised(f"{OOM} of which 2.11 GiB is free. Including non-PyTorch memory"),
        "gpu-oom", "GPU 5", "mem-fraction-static"),
    Row("GPU OOM, another's memory", raised(f"{OOM} of which 2.11 GiB is free. Process 9911 has 61.20 GiB memory in "
        "use."), "gpu-oom", "process 9911 holds 61.20 GiB", "9911"),
    Row("GPU OOM, in other words", raised("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
        "`cublasCreate(handle)`"), "gpu-oom", "out of GPU memory", "free the cards"),
    Row("KV too small", raised("RuntimeError: Loaded weights leave no GPU memory for the KV cache under "
        "--mem-fraction-static=0.8. Raise --mem-fraction-static above 0.87 (minimum viable = 0.8699)"),
        "kv-too-small", "above 0.87", "raise arg.mem-fraction-static above 0.87"),
    Row("KV too small (2)", raised("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: mem_fraction_static=0.7"), "kv-too-small", "0.7", "raise"),
    Row("graph OOM", raised("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 512.00 MiB.\n"
        "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)"),
        "graph-oom", "capturing graphs", "lower"),
    Row("graph capture", raised("Exception: Capture cuda graph failed: invalid configuration argument"),
        "graph-capture", "invalid configuration", "disable-cuda-graph"),
    Row("GPU busy", raised("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other "
        "processes. pre_model_load_memory=33.1, local_gpu_memory=94.0"), "gpu-busy", "33.1", "nvidia-smi"),
    Row("HTTP port busy", printed("ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', "
        "30000): address already in use"), "port-held", "port 30000 was held", "port"),
    Row("internal port busy", raised("ValueError: nccl_port at 28000 is not available in 30 seconds. "),
        "internal-port", "internal port", "nccl-port"),
    Row("internal port busy, by a process", raised("ValueError: dist_init_port at 28001 is used by a process already. "
        "process.name()='python3'"), "internal-port", "internal port", "nccl-port"),
    Row("internal port busy, short", raised("ValueError: Port is already in use."),
        "internal-port", "internal port", "earlier engine"),
    Row("SM120 triton", raised("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
        "106496, Hardware limit: 101376. Reducing block sizes or `num_stages` may help."),
        "sm120-shared-memory", "106496 bytes", "99 KB"),
    Row("SM120 flashinfer", raised("RuntimeError: Error in function 'TllmGenFmhaRunner' at /x/fmhaRunner.cuh:37: "
        "Unsupported architecture"), "unsupported-card", "does not exist for this card", "triton"),
    Row("wrong arch", raised("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the "
        "device"), "unsupported-card", "not built", "compute capability"),
    Row("version skew", at_once("Exception: flashinfer_python is installed with version 0.6.1, which is less than the "
        "minimum required version 0.7.2. Please reinstall"), "version-skew", "0.6.1", "install"),
    Row("version missing", at_once("Exception: sglang-kernel with minimum required version 0.4.9 is not installed. "
        "Please install"), "version-skew", "sglang-kernel", "install"),
    Row("NCCL", BOOT + f"[2026-11-18 14:10:15 TP3] Scheduler hit an exception: {NCCL}" + SIGQUIT,
        "nccl", "NCCL", "P2P"),
    Row("NCCL, pynccl", printed("RuntimeError: NCCL error: unhandled cuda error", " TP1"), "nccl", "NCCL", "P2P"),
    Row("NCCL timeout", printed("[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)", " TP3"),
        "nccl", "NCCL", "P2P"),
    Row("weights: none", raised("RuntimeError: Cannot find any model weights with `/models/Kimi-K2.6`"),
        "weights-missing", "/models/Kimi-K2.6", "engine.model"),
    Row("weights: shard missing", raised("RuntimeError: model.safetensors.index.json references 3 shard file(s) "
        "missing from /models/Kimi-K2.6 (incomplete download?): ['model-00007-of-00064.safetensors']"),
        "weights-missing", "references 3 shard", "download"),
    Row("weights: damaged", raised("safetensors_rust.SafetensorError: Error while deserializing header: "
        "HeaderTooLarge"), "weights-damaged", "damaged", "again"),
    Row("scheduler exception", raised("RecursionError: maximum recursion depth exceeded"),
        "exception", "rank TP5 died while loading the target: RecursionError", "rank that died first"),
    Row("parent, launch phase", BOOT + SIGQUIT, "child-died", "left no word", "dmesg"),
    Row("parent, running", BOOT + "[2026-11-18 14:10:18] SIGQUIT received. signum=3, frame=None. It usually means one "
        "child failed.\n", "child-died", "left no word", "dmesg"),
    Row("child died silently", printed("Rank 3 scheduler died during initialization (exit code: -9). If exit code is "
        "-9 (SIGKILL), a common cause is the OS OOM killer."), "child-died", "rank 3", "dmesg"),
    Row("child died silently, running", printed("Subprocess scheduler_0 (pid=48215) crashed with exit code -11. "
        "Triggering SIGQUIT for cleanup..."), "child-died", "scheduler_0 died (exit code -11)", "OOM"),
    Row("hang", printed("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", " TP2"),
        "watchdog", "hung while loading the target", "watchdog-timeout"),
    Row("hang, old", printed("Watchdog timeout (self.watchdog_timeout=300)", " TP2"), "watchdog", "300 s", "py-spy"),
    Row("hang, seen from outside", printed("Health check failed. Server couldn't get a response from detokenizer for "
        "last 20 seconds. tic start time: 14:10:11"), "unresponsive", "stopped answering", "hung rank"),
    Row("warm-up", printed("Initialization failed. warmup error: Traceback (most recent call last): ... timed out"),
        "warmup-failed", "first request", "lines above"),
    Row("host OOM", printed("Out of memory: Killed process 7310 (python) total-vm:1kB, anon-rss:1kB"),
        "host-oom", "process 7310", "host memory"),
    Row("stopped by somebody", printed("SIGTERM received. signum=None frame=None. Draining requests and shutting "
        "down..."), "stopped", "asked the engine to stop", "who did"),
    # --- SM120 cards
    Row("SM120: FA3", raised("AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use "
        "`--attention-backend flashinfer`."), "unsupported-card", "FlashAttention v3", "triton"),
    Row("SM120: FA4", raised("AssertionError: Only SM 10.x and 11.x are supported"),
        "unsupported-card", "FlashAttention 4 has no kernel for this card", "triton"),
    Row("SM120: FA4, by its list", raised("AssertionError: Unsupported compute capability. Supported: 9.x, 10.x, 11.x"),
        "unsupported-card", "Supported: 9.x, 10.x, 11.x", "FA4"),
    Row("SM120: FA4 with fp8", raised("AssertionError: FP8 is only supported on SM100 (compute capability 10.x) for "
        "FA4 CuTe."), "unsupported-card", "FlashAttention 4 has no kernel", "triton"),
    Row("SM120: DeepGEMM", raised("tvm.error.InternalError: Assertion error (/deepgemm/csrc/apis/hyperconnection.hpp:56"
        "): Unsupported architecture"), "unsupported-card", "DeepGEMM does not run on this card", "moe-runner-backend"),
    Row("SM120: DeepGEMM's scales", raised("RuntimeError: Assertion error (/build/_deps/src/csrc/utils/layout.hpp:56): "
        "Unknown recipe"), "unsupported-card", "DeepGEMM does not run on this card", "fp8-gemm-backend"),
    Row("SM120: DeepGEMM asked for", raised("RuntimeError: DeepGEMM backend requested via --fp8-gemm-backend=deep_gemm,"
        " but DeepGEMM is not available. This usually means the deep_gemm package is not installed"),
        "unsupported-card", "DeepGEMM is not available", "sgl-deep-gemm 0.1.5"),
    Row("SM120: DeepGEMM for experts", raised("RuntimeError: --moe-runner-backend deep_gemm on consumer Blackwell "
        "(SM120) requires the standard-layout MoE path, which is unavailable in this build."),
        "unsupported-card", "consumer Blackwell (SM120)", "triton"),
    Row("SM120: DeepGEMM, in short", raised("RuntimeError: DeepGEMM is not supported on this GPU"),
        "unsupported-card", "DeepGEMM is not supported on this GPU", "moe-runner-backend"),
    Row("SM120: XQA without a mask", raised("AssertionError: Mask is required for speculative decoding"),
        "no-tree-kernel", "XQA", "triton"),
    Row("SM120: FlashMLA, in other words", raised("RuntimeError: flash_mla is only available on SM90"),
        "unsupported-card", "flash_mla is only available on SM90", "FlashMLA"),
    Row("SM120: trtllm_mla", raised("ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100). "
        "Please use a different backend."), "unsupported-card", "TRTLLM MLA backend", "triton"),
    Row("SM120: FlashMLA", raised("RuntimeError: Dense decode MLA is only supported on SM90a architecture"),
        "unsupported-card", "SM90a", "FlashMLA"),
    Row("SM120: trtllm prefill with fp8 KV", raised("ValueError: TRTLLM FMHAv2 prefill on SM120 does not support "
        "fp8_e4m3 KV cache or skip-softmax."), "no-tree-kernel", "FMHAv2", "bf16"),
    Row("SM120: MLA decode", raised("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
        "102400, Hardware limit: 101376."), "sm120-shared-memory", "102400", "num_stages=1"),
    Row("SM120: nvcc too old", raised("RuntimeError: No supported CUDA architectures found for major versions [12]."),
        "toolkit-too-old", "too old", "12.9"),
    Row("SM120: nvcc newer than the headers", raised("RuntimeError: Ninja build failed. Ninja output:\nninja: build "
        "stopped: subcommand failed."), "jit-failed", "compiled", "cu130"),
    Row("SM120: stale JIT cache", raised("ImportError: /x/flashinfer/sampling.so: undefined symbol: _ZN3c1"),
        "jit-stale", "sampling.so", "JIT caches"),
    Row("SM120: illegal access with fp8 KV", raised("torch.AcceleratorError: CUDA error: an illegal memory access was "
        "encountered"), "illegal-memory", "not its own", "FLASHINFER_CUDA_ARCH_LIST=12.0f"),
    Row("SM120: no mask for a tree", raised("RuntimeError: Tree verify is only supported on triton, got trtllm_mha"),
        "ddtree-rules", "cannot verify a tree", "triton"),
    Row("kernel missing in the build", raised("AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute "
        "'ngram_verify'"), "missing-kernel", "ngram_verify", "sgl-kernel"),
)  # fmt: skip


def died(text: str) -> Failure:
    """What a tracker says of an engine whose whole log is `text`; 137 is the status of nearly every death."""
    log = BootLog()
    log.feed(text.encode(), 0.0)
    return log.failure(137)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_kind_of_failure_is_named_among_all_ranks_noise(row: Row) -> None:
    """Cause, words, evidence and advice."""
    failure = died(row.log)
    assert failure.cause == row.cause
    assert row.what in failure.what
    assert row.advice in failure.advice
    assert failure.evidence
    assert all(line in row.log for line in failure.evidence)


def test_names_of_rows_are_different() -> None:
    """Each row has its own."""
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_rank_that_died_silently_is_shown_by_its_last_lines() -> None:
    """The parent names the rank; its own last words are the evidence, not the other ranks'."""
    log = BOOT + "[2026-11-18 14:10:15 TP3] loading expert 211\n[2026-11-18 14:10:15 TP4] loading expert 9\n"
    failure = died(log + "[2026-11-18 14:10:18] Rank 3 scheduler died during initialization (exit code: -9).\n")
    assert failure.evidence[-2].endswith("TP3] loading expert 211")
    assert all("TP3]" in line for line in failure.evidence[:-1])


@pytest.mark.parametrize("hint", ["Rank 5 scheduler died during initialization (exit code: -9).", NCCL.strip()])
def test_an_exception_without_a_name_explains_more_than_what_follows_it(hint: str) -> None:
    """What the parent and the other ranks say is no cause while a rank has raised something."""
    failure = died(raised("RecursionError: too deep") + f"[2026-11-18 14:10:19] {hint}\n")
    assert failure.cause == "exception"
    assert "TP5" in failure.what
    assert failure.evidence[-1] == "RecursionError: too deep"


def test_a_stop_explains_the_exceptions_that_follow_it() -> None:
    """Ranks that are torn down raise all sorts of things."""
    text = printed("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    text += "[2026-11-18 14:10:19 TP2] Scheduler hit an exception: Traceback (most recent call last):\nEOFError: end\n"
    assert died(text).cause == "stopped"


def test_a_crash_of_the_real_engine_is_named() -> None:
    """SGLang 0.5.23 on a CPU without the kernel that its n-gram drafter needs."""
    failure = died((Path(__file__).parent / "data" / "real-0.5.23-cpu-crash.log").read_text())
    assert failure.cause == "missing-kernel"
    assert "copy_all_layer_kv_cache_cpu" in failure.what
    assert failure.phase == "kv"


def test_every_signature_can_be_told_from_the_next() -> None:
    """No row of the table is dead: each is the first to explain some text of this file or of the one-line table."""
    texts = [line for row in ROWS for line in row.log.splitlines()] + [text for _, text in LINES]
    alive = set()
    for text in texts:
        first = next((number for number, one in enumerate(SIGNATURES) if one.pattern.search(text)), None)
        alive.add(first)
    dead = [SIGNATURES[number].pattern.pattern for number in range(len(SIGNATURES)) if number not in alive]
    assert dead == []
