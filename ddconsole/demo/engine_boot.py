"""The toy engine's start as a timed stage play: SGLang's phases, in its order and with its lines.

At speed 1 it takes about 15 s; `DDCONSOLE_DEMO_SPEED` divides every stretch. The port stays closed all the while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

from ddconsole.core.config import Algorithm
from ddconsole.demo.engine_flags import DRAFT_SHARDS
from ddconsole.demo.engine_log import capture_bar, shard_bar
from ddconsole.demo.engine_ranks import crash

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.demo.engine_flags import EngineArgs
    from ddconsole.demo.engine_gpu import CardState
    from ddconsole.demo.engine_log import EngineLog
    from ddconsole.demo.engine_ranks import Ranks

IMPORTS_S, PARALLEL_S, TARGET_S, REPACK_S, DRAFT_S, KV_S, VERIFY_GRAPHS_S, DRAFT_GRAPHS_S = (
    0.6, 0.5, 9.0, 1.0, 1.0, 0.2, 1.3, 0.7,
)  # fmt: skip
"""Seconds of each stretch at speed 1. REPACK is the silence between the last shard and the end of loading."""
BEFORE_GB, TARGET_GB, DRAFT_GB, POOL_GB, DRAFT_POOL_GB, GRAPHS_GB = 94.3, 74.7, 0.83, 7.9, 0.6, 0.44
"""Memory free on a card before loading, and what each part takes, in GiB."""
KV_TOKENS = 131072
GRAPH_BATCHES = (16, 8, 4, 2, 1)
OOM_SHARDS = 4
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 3011, in run_scheduler_process\n'
    "    scheduler = Scheduler(server_args, port_args)\n"
)


class Boot:
    """Plays the start of an engine. `timings` are the measured seconds of its phases, by SGLang's names."""

    def __init__(self, args: EngineArgs, log: EngineLog, ranks: Ranks, cards: CardState, speed: float) -> None:
        self.timings: dict[str, float] = {}
        self.graph_timings: dict[str, float] = {}
        self.avail_gb = BEFORE_GB
        self._args = args
        self._log = log
        self._ranks = ranks
        self._cards = cards
        self._speed = speed
        self._began = time.monotonic()

    def run(self) -> None:
        """Everything up to the moment before the port is bound."""
        self._log.main(f"server_args={self._args.flat!r}")
        self._wait(IMPORTS_S)
        self._init_parallel()
        began = time.monotonic()
        self._load_target()
        if self._args.effective.algorithm is not Algorithm.OFF:
            self._load_draft()
            self._say_drafter()
        self.timings["load_weight"] = time.monotonic() - began
        self._allocate_kv()
        self._capture_graphs()
        self._say_limits()

    def _wait(self, seconds: float) -> None:
        """Let `seconds` of the play pass, and notice schedulers that died."""
        time.sleep(seconds / self._speed)
        if died := self._ranks.died():
            rank, code = died
            self._log.main(
                f"Rank {rank} scheduler died during initialization (exit code: {code}). If exit code is -9 (SIGKILL), "
                "a common cause is the OS OOM killer."
            )
            self._crash()

    def _crash(self) -> NoReturn:
        """End as SGLang does when a scheduler fails."""
        self._cards.remove()
        crash(self._log, self._ranks, SIGQUIT)

    def _avail(self, rank: int) -> str:
        return f"avail mem={self.avail_gb - rank / 100:.2f} GB"

    def _init_parallel(self) -> None:
        self._log.every_rank(lambda _: "Init parallel begin.")
        self._wait(PARALLEL_S)
        self._log.every_rank(lambda rank: f"Init parallel ends. elapsed={(PARALLEL_S + rank / 50) / self._speed:.2f} s")
        self._log.rank(0, "sglang is using nccl==2.28.3")
        self._log.every_rank(lambda _: "Memory baseline taken. mem usage=0.60 GB")

    def _load_target(self) -> None:
        hang = self._args.fail == "hang-at-100"
        oom = self._args.fail == "oom-at-load"
        self._load("KimiK25ForConditionalGeneration, quant=compressed-tensors", TARGET_GB, self._args.target_shards,
                   TARGET_S, after=self._hang if hang else self._repack, until=OOM_SHARDS if oom else None)  # fmt: skip

    def _load_draft(self) -> None:
        self._load("DFlashDraftModel", DRAFT_GB, DRAFT_SHARDS, DRAFT_S, after=lambda: None)

    def _load(
        self,
        kind: str,
        gigabytes: float,
        shards: int,
        seconds: float,
        *,
        after: Callable[[], None],
        until: int | None = None,
    ) -> None:
        """Load one model shard by shard; out of memory behind shard `until` if given."""
        began, before = time.monotonic(), self.avail_gb
        self._log.every_rank(lambda rank: f"Load weight begin. {self._avail(rank)}")
        self._log.raw(shard_bar(0, shards, 0.0))
        for done in range(1, shards + 1):
            self._wait(seconds / shards)
            self._cards.loading(before - gigabytes * done / shards)
            self._log.raw(shard_bar(done, shards, time.monotonic() - began))
            if done == until:
                self._log.raw("\n")
                self._out_of_memory()
        self._log.raw("\n")
        after()
        self.avail_gb = before - gigabytes
        self._cards.idle(self.avail_gb)
        elapsed = time.monotonic() - began
        self._log.every_rank(
            lambda rank: (
                f"Load weight end. elapsed={elapsed + rank / 100:.2f} s, type={kind}, {self._avail(rank)}, "
                f"mem usage={gigabytes:.2f} GB."
            )
        )

    def _repack(self) -> None:
        """The silent stretch after the last shard."""
        self._wait(REPACK_S)

    def _hang(self) -> NoReturn:
        """Nothing more happens until SGLang's watchdog ends it."""
        time.sleep(float(self._args.flat["watchdog_timeout"]))
        self._log.rank(2 % self._args.ranks, f"Scheduler watchdog timeout (self.watchdog_timeout="
                       f"{self._args.flat['watchdog_timeout']:g}, self.soft=False)")  # fmt: skip
        self._crash()

    def _out_of_memory(self) -> NoReturn:
        """Rank 5 fails first, the others follow."""
        self._log.every_rank(
            lambda rank: (
                f"Scheduler hit an exception: {TRACEBACK}"
                f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU {rank} has a total "
                "capacity of 94.97 GiB of which 2.11 GiB is free. Process 9911 has 61.20 GiB memory in use.\n"
            ),
            first=5 if self._args.ranks > 5 else 0,
        )
        self._crash()

    def _say_drafter(self) -> None:
        """What the drafter's workers say of themselves: the evidence of the effective config."""
        effective = self._args.effective
        size, trained = effective.block_size, self._args.trained_block_size
        if size != trained:
            self._log.every_rank(
                lambda _: (
                    f"DFLASH block size mismatch: using speculative_num_draft_tokens={size} but draft config "
                    f"block_size={trained}."
                )
            )
        window = self._args.flat["speculative_draft_window_size"]
        backend = self._args.flat["speculative_draft_attention_backend"] or self._args.flat["attention_backend"]
        self._log.rank(
            0,
            f"Initialized DFLASH draft runner. attention_backend={backend}, model=DFlashDraftModel, block_size={size}, "
            f"draft_window_size={window}, compact_cache={window is not None}",
        )
        self._log.rank(
            0,
            "DFLASH draft runner ready. mask_token=<|MASK|>, mask_token_id=163838, mask_token_id_override=None, "
            "noise_embed_scale=None",
        )
        if effective.algorithm is Algorithm.TREE:
            self._log.rank(
                0,
                f"Initialized DDTree worker. block_size={size}, tree_budget={effective.budget}, "
                f"max_tree_nodes={effective.verify_width}",
            )

    def _allocate_kv(self) -> None:
        began = time.monotonic()
        drafts = self._args.effective.algorithm is not Algorithm.OFF
        for size in (POOL_GB, DRAFT_POOL_GB) if drafts else (POOL_GB,):
            self._wait(KV_S / 2)
            self.avail_gb -= size
            self._cards.idle(self.avail_gb)
            self._log.every_rank(
                lambda _, size=size: (
                    f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {KV_TOKENS}, "  # type: ignore[misc]
                    f"KV size: {size:.2f} GB"
                )
            )
            self._log.every_rank(lambda rank: f"Memory pool end. {self._avail(rank)}")
        self.timings["kv_cache_allocation"] = time.monotonic() - began

    def _capture_graphs(self) -> None:
        effective = self._args.effective
        if effective.block_size is None:
            self._capture("target decode", effective.verify_width, VERIFY_GRAPHS_S)
            return
        self._capture("target verify", effective.verify_width, VERIFY_GRAPHS_S)
        self._capture("draft verify", effective.block_size, DRAFT_GRAPHS_S)

    def _capture(self, name: str, width: int, seconds: float) -> None:
        began, total = time.monotonic(), len(GRAPH_BATCHES)
        self._log.every_rank(
            lambda rank: (
                f"Capture {name} CUDA graph begin. backend=full, num_tokens_per_req={width}, {self._avail(rank)}"
            )
        )
        if self._args.fail == "graph-crash":
            self._wait(seconds / total)
            self._graph_out_of_memory()
        for done in range(total + 1):
            batch = GRAPH_BATCHES[min(done, total - 1)]
            free = self.avail_gb - GRAPHS_GB * done / total
            self._cards.capturing(free)
            self._log.raw(capture_bar(batch, free, done, total, time.monotonic() - began))
            if done < total:
                self._wait(seconds / total)
        self._log.raw("\n")
        self.avail_gb -= GRAPHS_GB
        elapsed = time.monotonic() - began
        self.graph_timings[name.replace(" ", "_")] = elapsed
        self._log.every_rank(
            lambda rank: (
                f"Capture {name} CUDA graph end. bs={sorted(GRAPH_BATCHES)}, elapsed={elapsed:.2f} s, "
                f"mem usage={GRAPHS_GB:.2f} GB, {self._avail(rank)}."
            )
        )

    def _graph_out_of_memory(self) -> NoReturn:
        text = "Capture cuda graph failed: CUDA out of memory. Tried to allocate 512.00 MiB."
        self._log.every_rank(lambda _: text)
        self._log.rank(
            3 % self._args.ranks,
            f"Scheduler hit an exception: {TRACEBACK}Exception: {text}\nPossible solutions:\n"
            "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
            "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n",
        )
        self._crash()

    def _say_limits(self) -> None:
        flat = self._args.flat
        self._cards.idle(self.avail_gb)
        self._log.rank(
            0,
            f"max_total_num_tokens={KV_TOKENS}, chunked_prefill_size={flat['chunked_prefill_size']}, "
            f"max_prefill_tokens=16384, max_running_requests={flat['max_running_requests']}, "
            f"context_len={flat['context_length']}, available_gpu_mem={self.avail_gb:.2f} GB",
        )
        self.timings["scheduler_e2e"] = time.monotonic() - self._began
        self.timings["tokenizer_e2e"] = time.monotonic() - self._began
        graphs = ", ".join(f"{name}={seconds:.2f}" for name, seconds in self.graph_timings.items())
        parts = {name: f"{seconds:.2f}" for name, seconds in self.timings.items()}
        self._log.main(
            f"Engine startup timings (s): load_weight={parts['load_weight']}, "
            f"kv_cache_allocation={parts['kv_cache_allocation']}, scheduler_e2e={parts['scheduler_e2e']}, "
            f"cuda_graph={{{graphs}}}, tokenizer_e2e={parts['tokenizer_e2e']}"
        )
