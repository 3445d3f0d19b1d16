"""How far an engine has come in starting: phases with measured times, and the weights' bars."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """A stretch of an attempt. A set with times, not a line: engine versions differ in their order."""

    PREFLIGHT = "preflight"
    LAUNCH = "launch"
    INIT = "init"
    LOAD_TARGET = "load_target"
    LOAD_DRAFT = "load_draft"
    KV = "kv"
    GRAPHS = "graphs"
    WARMUP = "warmup"
    READY = "ready"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class ShardBar:
    """A bar of weight shards as the engine draws it.

    Attributes:
        done: shards loaded.
        total: shards in all, or None where the engine does not know.
        eta_s: our own estimate in seconds, None before it means anything.
    """

    done: int
    total: int | None
    eta_s: float | None = None

    @property
    def fraction(self) -> float | None:
        """0 to 1, or None for a bar without a total."""
        if not self.total:
            return None
        return min(self.done / self.total, 1.0)


@dataclass(frozen=True, slots=True)
class Download:
    """What the engine pulls from elsewhere before it can load it, as its bars say.

    Attributes:
        done_bytes, total_bytes: of the files begun so far; the total grows as files begin, and is None where one of
            them does not know its size.
        done_files, total_files: None where no bar counts files.
    """

    done_bytes: int
    total_bytes: int | None
    done_files: int | None = None
    total_files: int | None = None


@dataclass(frozen=True, slots=True)
class BootProgress:
    """What the log has shown so far.

    Attributes:
        phase: the phase that the slowest rank is in.
        finished: measured seconds by phase, for the phases that have ended.
        target, draft: the weights' bars; None until the first shard line.
        graphs: graph captures done and in all, or None.
        download: what is being pulled just now; None once it is whole, or weights are loaded.
        fired_up: the engine has said that it is ready (its word alone; not a proof).
        waits_for: the ranks that hold the phase back, when others are ahead of them.
        loads: seconds that each rank took to load a model, by its own line: `{"target": {"TP0": 398.8}}`.
    """

    phase: Phase = Phase.INIT
    finished: dict[Phase, float] = field(default_factory=dict)
    target: ShardBar | None = None
    draft: ShardBar | None = None
    graphs: ShardBar | None = None
    fired_up: bool = False
    waits_for: tuple[str, ...] = ()
    loads: dict[str, dict[str, float]] = field(default_factory=dict)
    download: Download | None = None


@dataclass(frozen=True, slots=True)
class LogWarning:
    """What the log says that stops nothing and yet spoils the numbers.

    Attributes:
        code: a stable word: `block-size-mismatch`, `drafter-quantized`, `eager-decode` …
        what: what it means, in a sentence.
        evidence: the line that shows it.
        advice: what to do.
    """

    code: str
    what: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True)
class BootFacts:
    """What the engine's own log says it runs: the evidence for contract 2. None is "not said".

    Attributes:
        verify_width: `num_tokens_per_req` of the target's verify graph, N = B + 1 for a tree.
        trained_block_size: from the mismatch warning, when the drafter was trained at another block size.
        dialect: which of the known versions the log reads like, such as `0.5.11 to 0.5.12`.
        bind_failed: the line that says the port was taken, or None.
        warnings: each once, though eight ranks print it.
    """

    block_size: int | None = None
    budget: int | None = None
    window: int | None = None
    verify_width: int | None = None
    trained_block_size: int | None = None
    version: str | None = None
    dialect: str | None = None
    bind_failed: str | None = None
    warnings: tuple[LogWarning, ...] = ()
