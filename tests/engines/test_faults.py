"""Failure logs to their cause: each signature has a line that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ddconsole.core.errors import Failure
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.faults import describe_exit

DATA = Path(__file__).parent / "data"


def died(text: str | bytes, status: int | None = 137) -> Failure:
    """What a tracker says of an engine whose whole log is `text`."""
    log = BootLog()
    log.feed(text if isinstance(text, bytes) else text.encode(), 0.0)
    return log.failure(status)


@pytest.mark.parametrize(
    ("name", "cause", "what", "phase"),
    [
        ("fail-oom-while-loading", "gpu-oom", "GPU 5 .* process 9911 holds 61.20 GiB", "load_target"),
        ("fail-graph-capture-oom", "graph-oom", "while capturing graphs", "graphs"),
        ("fail-kv-pool-too-small", "kv-too-small", "mem-fraction-static=0.7", "load_target"),
        ("fail-port-held-false-ready", "port-held", "port 30000 was held", "ready"),
        ("fail-unknown-flag", "unknown-flag", "--speculative-ddtree-budget 12", "init"),
        ("fail-unknown-algorithm", "unknown-algorithm", "DDTREE", "init"),
        ("fail-sm120-shared-memory", "sm120-shared-memory", "106496 bytes .* 101376", "warmup"),
        ("fail-hang-after-100-percent", "watchdog", "hung while loading the target", "load_target"),
    ],
)
def test_each_sample_names_its_cause(name: str, cause: str, what: str, phase: str) -> None:
    """Among all ranks' noise; with evidence and advice."""
    failure = died((DATA / f"{name}.log").read_bytes())
    assert failure.cause == cause
    assert re.search(what, failure.what)
    assert failure.phase == phase
    assert failure.evidence
    assert failure.advice


def test_opposite_advice_for_the_two_kinds_of_too_little_memory() -> None:
    """The KV pool wants a larger fraction, the graphs a smaller one."""
    assert died((DATA / "fail-kv-pool-too-small.log").read_bytes()).advice.startswith("raise")
    assert died((DATA / "fail-graph-capture-oom.log").read_bytes()).advice.startswith("lower")


ROWS = [
    ("unknown-flag", "sglang serve: error: unrecognized arguments: --enforce-eager"),
    ("unknown-algorithm", "x: error: argument --speculative-algorithm: invalid choice: 'DDTREE' (choose from 'EAGLE')"),
    ("bad-argument", "x.py: error: argument --tp-size: invalid int value: 'eight'"),
    ("bad-argument", "x.py: error: the following arguments are required: --model-path"),
    ("no-command", "sh: 1: sglang: not found"),
    ("no-command", "env: 'sglang': No such file or directory"),
    ("no-command", "/usr/bin/python3: No module named sglang.launch_server"),
    ("window-below-block", "ValueError: --speculative-draft-window-size must be >= --speculative-num-draft-tokens "
     "(block_size). window_size=4, block_size=8."),
    ("ddtree-rules", "ValueError: DDTREE currently supports only page_size == 1. Got page_size=64."),
    ("ddtree-rules",
     "ValueError: DDTREE full-tree mode currently supports only the triton attention backend because it"),
    ("refused-config", "ValueError: --speculative-ddtree-budget must be >= 1, got 0."),
    ("refused-config", "ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path."),
    ("refused-config", "ValueError: Currently DFLASH speculative decoding only supports pp_size == 1."),
    ("refused-config",
     "ValueError: Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but"),
    ("drafter-mismatch", "ValueError: DFLASH fc.weight shape mismatch. This usually means the draft checkpoint's"),
    ("drafter-unsupported", "ValueError: Model KimiK3 implements neither set_dspark_layers_to_capture nor set_dflash_"),
    ("no-tree-kernel",
     "ValueError: TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache or skip-softmax."),
    ("graph-capture", "[2026-11-18 14:09:34 TP0] Capture cuda graph failed: invalid argument"),
    ("gpu-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 0 has a total capacity of "
     "94.97 GiB of which 2.11 GiB is free."),
    ("kv-too-small",
     "RuntimeError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.8. "
     "Raise --mem-fraction-static above 0.87 (minimum viable = x)"),
    ("host-oom", "Out of memory: Killed process 7310 (python) total-vm:1kB, anon-rss:1kB"),
    ("host-oom", "systemd: ddconsole-E1-1.service: Failed with result 'oom-kill'."),
    ("gpu-busy", "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
     "pre_model_load_memory=33.1, local_gpu_memory=94.0"),
    ("unsupported-card", "Error in function 'TllmGenFmhaRunner' at x/fmhaRunner.cuh:37: Unsupported architecture"),
    ("unsupported-card",
     "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"),
    ("unsupported-card", "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90."),
    ("toolkit-too-old", "RuntimeError: No supported CUDA architectures found for major versions [12]"),
    ("jit-failed", "RuntimeError: Ninja build failed. Ninja output:"),
    ("illegal-memory", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    ("driver", "RuntimeError: The NVIDIA driver on your system is too old (found version 12020)."),
    ("version-skew",
     "Exception: sglang-kernel is installed with version 0.4.1, which is less than the minimum required "
     "version 0.4.9."),
    ("weights-missing",
     "RuntimeError: index.json references 3 shard file(s) missing from /m (incomplete download?): []"),
    ("weights-missing", "RuntimeError: Cannot find any model weights with `/models/x`"),
    ("weights-damaged", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    ("model-not-found", "OSError: x/y is not a local folder and is not a valid model identifier listed on"),
    ("model-access", "huggingface_hub.errors.GatedRepoError: 401 Client Error"),
    ("disk-full", "OSError: [Errno 28] No space left on device"),
    ("port-held", "OSError: [Errno 98] Address already in use"),
    ("internal-port", "ValueError: nccl_port at 28000 is not available in 30 seconds. "),
    ("watchdog", "[2026-11-18 14:23:29 TP2] Watchdog timeout (self.watchdog_timeout=300)"),
    ("warmup-failed", "[2026-11-18 14:23:29] Initialization failed. warmup error: Traceback"),
    ("child-died",
     "[2026-11-18 14:23:29] Rank 3 scheduler died during initialization (exit code: -9). If exit code is"),
    ("child-died",
     "[2026-11-18 14:23:29] Subprocess scheduler_0 (pid=1) crashed with exit code -11. Triggering SIGQUIT"),
    ("stopped",
     "[2026-11-18 14:23:29] SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),
    ("nccl", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote process exited"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "text"), ROWS)
def test_each_text_has_its_cause(cause: str, text: str) -> None:
    """One line alone is enough, behind any program's name."""
    failure = died(text + "\n")
    assert failure.cause == cause
    assert any(text[:60] in line for line in failure.evidence)
    assert "{" not in failure.what + failure.advice


def test_followers_before_the_root_do_not_hide_it() -> None:
    """NCCL noise of seven ranks may be printed first."""
    log = "".join(f"[2026-11-18 14:10:18 TP{rank}] NCCL error in: x\n" for rank in (1, 2, 3))
    log += "[2026-11-18 14:10:19 TP5] Scheduler hit an exception: Traceback (most recent call last):\n"
    log += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
    failure = died(log)
    assert failure.cause == "gpu-oom"
    assert failure.evidence[0].startswith("[2026-11-18 14:10:19 TP5]")


def test_an_exception_without_a_name_is_told_with_the_rank_that_raised_first() -> None:
    """Its own last lines, not the other ranks'."""
    log = "[2026-11-18 14:10:18 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    log += "".join(f'  File "x.py", line {number}, in f\n    g()\n' for number in range(80))
    log += "NotImplementedError: copy_all_layer_kv_cache\n"
    log += "[2026-11-18 14:10:18 TP1] Scheduler hit an exception: Traceback (most recent call last):\nKeyError: 'x'\n"
    log += "[2026-11-18 14:10:18] Received sigquit from a child process. It usually means the child failed.\n"
    failure = died(log)
    assert failure.cause == "exception"
    assert "rank TP3" in failure.what
    assert "copy_all_layer_kv_cache" in failure.what
    assert failure.evidence[-1].startswith("NotImplementedError")
    assert not any("KeyError" in line for line in failure.evidence)


def test_harmless_lines_are_no_cause() -> None:
    """SGLang prints import errors that mean nothing before it loads."""
    log = (
        "[2026-12-02 07:11:02] Ignore import error when loading sglang.srt.models.inkling: No module named 'cutlass'\n"
    )
    log += "[2026-12-02 07:11:03] Load weight begin. avail mem=21.55 GB\n"
    assert died(log).cause == "killed"


@pytest.mark.parametrize(
    ("status", "cause", "words"),
    [
        (None, "unknown-end", "not known"),
        (137, "killed", "OOM killer, by somebody, or by itself"),
        (-9, "killed", "SIGKILL"),
        (143, "stopped", "SIGTERM"),
        (-15, "stopped", "SIGTERM"),
        (139, "crashed", "SIGSEGV"),
        (0, "ended", "status 0"),
        (2, "unknown", "status 2"),
        (127, "no-command", "not found"),
    ],
)
def test_an_exit_status_is_worded_honestly(status: int | None, cause: str, words: str) -> None:
    """137 is no proof of the OOM killer; an unknown end is no success."""
    failure = died("[2026-11-18 14:10:18 TP3] Load weight begin.\n", status)
    assert failure.cause == cause == describe_exit(status)[0]
    assert words in failure.what
    assert "while loading the target" in failure.what
    assert failure.evidence == ("[2026-11-18 14:10:18 TP3] Load weight begin.",)


KERNEL = "kernel: [ 8123.5] Out of memory: Killed process 7310 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB"
CGROUP = "kernel: [ 8123.5] Memory cgroup out of memory: Killed process 7310 (python) total-vm:9kB"
UNIT = "systemd: ddconsole-E1.service: A process of this unit has been killed by the OOM killer."


def ended(text: str, *notes: str, status: int = 137) -> Failure:
    """What a tracker says of an engine of whose end the host has notes."""
    log = BootLog()
    log.feed(text.encode(), 0.0)
    return log.failure(status, notes)


@pytest.mark.parametrize("note", [KERNEL, CGROUP, UNIT])
@pytest.mark.parametrize(
    "text",
    [
        "[2026-11-18 14:10:18 TP3] Load weight begin.\n",
        "[2026-11-18 14:10:18] Received sigquit from a child process. It usually means the child failed.\n",
        "[2026-11-18 14:10:18] Rank 3 scheduler died during initialization (exit code: -9). If exit code is\n",
    ],
)
def test_a_kill_by_the_kernel_is_known_where_the_host_tells_it(text: str, note: str) -> None:
    """137 alone is no proof; the kernel's or systemd's own line is, and is the evidence."""
    assert ended(text).cause in ("killed", "child-died")
    failure = ended(text, note)
    assert failure.cause == "host-oom"
    assert note in failure.evidence
    assert "memory" in failure.advice


def test_what_the_log_knows_goes_before_what_the_host_notes() -> None:
    """The kernel may have killed another process in the same hour; an exception of a rank explains itself."""
    gpu = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
    assert ended(gpu, KERNEL).cause == "gpu-oom"
    raised = "[2026-11-18 14:10:18 TP3] Scheduler hit an exception: Traceback (most recent call last):\nKeyError: 'x'\n"
    assert ended(raised, KERNEL).cause == "exception"


def test_notes_that_explain_nothing_stand_behind_the_last_lines() -> None:
    """systemd tells the signal, which the engine's log cannot."""
    note = "systemd: ddconsole-E1.service: Main process exited, code=killed, status=9/KILL"
    failure = ended("[2026-11-18 14:10:18 TP3] Load weight begin.\n", note)
    assert failure.cause == "killed"
    assert failure.evidence[-1] == note
