"""Every finding by its code: which topic it belongs to, how grave it can be, what it means and what helps.

docs/doctor.md shows this table, and a test holds the two, and the code that makes findings, together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TOPICS: Final = ("config", "engine", "port", "model", "cards", "speed", "loading", "room", "machine", "preflight")
"""In the order in which `doctor` shows them."""


@dataclass(frozen=True, slots=True)
class FindingCode:
    """One kind of finding. `levels` is one of block, warn, note, or several with commas."""

    code: str
    topic: str
    levels: str
    meaning: str
    remedy: str


_TABLE: Final = (
    # config: what the numbers alone say, with or without a host
    ("window-below-block", "config", "block", "The draft window is smaller than a block; the engine refuses it.",
     "A window of at least the block size."),
    ("trained-block-size", "config", "warn", "The drafter is run at a larger block than it was trained at, and accepts "
     "less: published for 8 run at 16 (τ), HumanEval 4.61 → 4.28, Math500 5.21 → 5.02, MT-Bench 3.29 → 3.09.",
     "Compare with the chain at the trained size."),
    ("trained-block-size-smaller", "config", "note", "A smaller block than trained keeps the quality and drafts less.",
     "The chain at the trained size is the control."),
    ("trained-block-size-unknown", "config", "note", "Neither the profile nor the drafter's config.json tells it.",
     "`engine.trained_block_size` in the profile."),
    ("trained-block-size-differs", "config", "warn", "Profile and config.json contradict each other.",
     "`trained_block_size: auto`; the engine goes by config.json."),
    ("budget-below-depth", "config", "warn", "Budget below L = b − 1: a chain cut short, no tree.", "A larger budget."),
    ("spine-only", "config", "note", "Budget equal to L: engines take the spine, the chain's τ at a tree's cost.",
     "A larger budget, or the chain."),
    ("topk-not-reached", "config", "note", "The engine derives a smaller K; what is asked is a cap that never binds.",
     "Configs that differ only in such a cap are the same engine."),
    ("topk-one", "config", "note", "K 1 leaves one path: a chain under the tree's conditions.", "A larger topk."),
    ("page-size", "config", "block", "DDTREE runs with page size 1 only.", "`arg.page-size=1`"),
    ("tree-backend", "config", "warn", "A tree wider than its spine wants triton, prefill and decode (sglang#29907).",
     "`arg.attention-backend=triton`, unless the fork says otherwise."),
    ("pipeline-parallel", "config", "block", "DFLASH runs with one pipeline stage only.", "`arg.pp-size=1`"),
    ("dp-attention", "config", "block", "DFLASH with data-parallel attention wants its own lm_head.",
     "`arg.enable-dp-lm-head=true`"),
    ("drafter-quantisation", "config", "note", "A drafter inherits a quantised target's quantisation, and then may "
     "draft nothing that is accepted, without an error.", "`arg.speculative-draft-model-quantization=unquant`"),
    ("spelling", "config", "block", "The profile's spelling of the knobs cannot give this config.",
     "The message names the key of the profile."),
    ("failed-before", "config", "note",
     "Attempts with the same effective config failed on this host; their ids, causes and when.",
     "`ddconsole results PROFILE show E12` has the evidence."),
    # engine: what its --help says
    ("no-command", "engine", "block", "The program, or the Python package it starts, is not on the host.",
     "The full path in `engine.command`."),
    ("engine-broken", "engine", "block", "`--help` ends in a traceback; the launch would too.",
     "Mend the engine's environment."),
    ("help-unreadable", "engine", "warn", "`--help` cannot be read as flags, so none could be checked.",
     "Run it by hand on the host."),
    ("unknown-flag", "engine", "block", "The engine knows no such flag, or several that begin so.",
     "The nearest flag is named."),
    ("flag-renamed", "engine", "block", "The flag has another name in this version.", "The new name, in the profile."),
    ("flag-abbreviated", "engine", "note", "The flag is a beginning of one; the engine takes it as that.",
     "The whole name, in the profile."),
    ("flag-value", "engine", "block", "A bare flag is given a value, or one that takes a value is given none.",
     "Mend it under `engine.args`."),
    ("no-such-choice", "engine", "block", "The value is not among the flag's choices.", "A choice is named."),
    ("no-ddtree", "engine", "block", "This engine has no draft trees: stock SGLang has none up to 0.5.23.",
     "A DDTree fork (sglang#29907), or `algorithm=chain`."),
    ("package-skew", "engine", "warn", "A kernel package beside the engine has another version than it wants.",
     "Install the version that is named."),
    # port
    ("port-held", "port", "block", "Somebody listens on the engine's port. SGLang finds that out only after loading.",
     "End it, or another `engine.port`."),
    ("service-not-ours", "port", "block",
     "`launcher.unit` is a service of the host, and nobody has said that it may be stopped.",
     "`--take-over`, or `take_over: yes`; docs/launchers.md."),
    ("service-taken-over", "port", "note",
     "The service is stopped for the run and put back at its end; what it holds is no hindrance.",
     "`ddconsole engine PROFILE restore` after a crash."),
    # model
    ("model-absent", "model", "block, warn", "Target or drafter is not on the host; by name the engine would download.",
     "Download it first, or mend the path."),
    ("shard-missing", "model", "block", "Files that the index names are not there.", "Finish the download."),
    ("shard-empty", "model", "block", "Files that the index names have no bytes.", "Download them again."),
    ("shard-unreadable", "model", "block", "The login may not read files of the checkpoint.", "Give it access."),
    ("shards-short", "model", "warn", "The shards together are smaller than the index promises.",
     "Compare checksums; a download may have been cut."),
    ("no-weights", "model", "block", "The folder has no weights at all.", "The folder of the checkpoint."),
    # cards
    ("no-nvidia-smi", "cards", "note", "The host has no nvidia-smi: cards are not watched. Everything else works.",
     "Install it, or put it on the login's PATH."),
    ("driver-mismatch", "cards", "block", "Kernel module and library of the driver differ, after an upgrade.",
     "Reload the module, or reboot."),
    ("driver-down", "cards", "block", "nvidia-smi cannot reach the driver.", "See dmesg on the host."),
    ("no-gpu", "cards", "block", "The driver shows no card to this login.", "Devices of the container, or the cards."),
    ("nvml", "cards", "block", "The driver's library cannot be initialised.", "Start the container again."),
    ("card-lost", "cards", "warn", "A card does not answer any more.", "Reset it, or reboot."),
    ("nvidia-smi", "cards", "warn", "nvidia-smi prints something that is no card.", "Its text is shown."),
    ("too-few-cards", "cards", "block", "Fewer cards answer than ranks are asked for.", "`arg.tp-size`"),
    ("mig", "cards", "warn", "A card is split by MIG: an engine gets an instance, utilisation is not reported.",
     "Turn MIG off for tensor parallelism."),
    ("gpu-busy", "cards", "warn", "A process that is not ours holds memory on cards. It is left alone.",
     "Ask its owner."),
    ("gpu-ours", "cards", "warn", "An engine that ddconsole started is on the cards.",
     "A run keeps or ends it; `ddconsole engine PROFILE stop`."),
    ("gpu-memory-held", "cards", "warn", "Memory is in use and no process can be seen that holds it.",
     "Another container or user, or a process just ended."),
    ("driver-old", "cards", "warn", "The driver is older than SM120 cards need (570).", "A newer driver."),
    ("toolkit-old", "cards", "warn", "nvcc below 12.9 does not know SM120: FlashInfer's JIT fails.", "CUDA 12.9."),
    ("toolkit-new", "cards", "warn", "nvcc 13.3 with headers of CUDA 13.0: FlashInfer's sampler does not compile.",
     "`CUDA_HOME` of the version torch was built with."),
    ("sm120-backend", "cards", "block", "Attention kernels that SM120 cards cannot run (FA3, FA4, trtllm_mla …).",
     "triton or flashinfer."),
    ("sm120-deep-gemm", "cards", "warn", "DeepGEMM has few kernels for SM120: an assertion while it loads or warms up.",
     "triton or cutlass; sgl-deep-gemm 0.1.5."),
    ("sm120-xqa", "cards", "warn", "trtllm_mha decodes by XQA there, without a mask inside the verify window: a step "
     "fails, or 0 % is accepted.", "triton, for target and drafter."),
    ("sm120-fp8-kv", "cards", "warn", "fp8 KV cache on SM120 was measured far slower with an INT4 Kimi.", "bf16."),
    ("sm120-fp4-gemm", "cards", "warn", "flashinfer_cutlass returns zeros on SM120, silently.", "flashinfer_cudnn."),
    ("sm120-segments", "cards", "warn", "expandable_segments crashes the one-shot all-reduce.",
     "Take it out of PYTORCH_CUDA_ALLOC_CONF."),
    # speed
    ("pcie-narrow", "speed", "warn", "A card has fewer PCIe lanes than it could have.", "Reseat it; slot and BIOS."),
    ("pcie-slow", "speed", "warn", "A card's link stayed below its best generation even under load, in a run.",
     "Slot, riser and BIOS."),
    ("no-peer-to-peer", "speed", "warn", "Cards cannot read each other's memory; all-reduce goes through the host.",
     "IOMMU and ACS settings."),
    ("numa-spread", "speed", "note", "Cards on several NUMA nodes, ranks not bound; the tree is built on the CPU.",
     "`arg.numa-node`, or numactl."),
    # loading
    ("page-cache-cold", "loading", "note", "Weights have to be read from disk: this boot is slower than a warm one.",
     "Compare boots of the same warmth."),
    ("jit-cold", "loading", "note", "No kernels compiled by an earlier boot: the first one compiles, for minutes.",
     "Do not measure a config by its first boot."),
    # room
    ("disk-full", "room", "block", "Less than 50 MiB where the host keeps logs.", "Free space."),
    ("disk-low", "room", "warn", "Less than 1 GiB where the host keeps logs.", "Free space."),
    ("tmp-low", "room", "warn", "Less than 1 GiB in /tmp, where kernels are compiled.", "Free space."),
    ("shm-small", "room", "warn", "Less than 1 GiB in /dev/shm, which NCCL uses.", "`--shm-size` of the container."),
    ("memory-low", "room", "warn", "Less than 16 GiB of memory free: the OOM killer ends ranks that load.",
     "Free memory."),
    # machine
    ("cpu-governor", "machine", "note", "The CPU may clock down; the tree is built on it each step.", "`performance`."),
    ("connection", "machine", "note", "The ssh connection stands, but not all of ssh_config is followed.",
     "The note says what, and what helps; docs/connecting.md."),
    (
        "no-service",
        "machine",
        "block",
        "systemd knows no such unit, or does not tell.",
        "`launcher.unit`, `launcher.scope`.",
    ),
    ("no-systemd", "machine", "block", "The launcher's systemd does not answer: there is none, or not for this login.",
     "`launcher: {kind: process}`"),
    ("no-linger", "machine", "warn", "The user's systemd ends with the last login, and the engine with it.",
     "`sudo loginctl enable-linger USER`"),
    ("xid", "machine", "warn, note", "The driver reported an Xid error in the last days.", "NVIDIA's Xid catalogue."),
    # preflight itself
    ("check-failed", "preflight", "warn", "A question could not be put to the host, or its answer broke off.",
     "The message says why; everything else was checked."),
)  # fmt: skip

FINDING_CODES: Final = {row[0]: FindingCode(*row) for row in _TABLE}
"""By code, in the order of the topics."""


def topic_of(code: str) -> str:
    """The topic that a finding is shown under; `preflight` for a code that is not in the table."""
    known = FINDING_CODES.get(code)
    return known.topic if known else "preflight"
