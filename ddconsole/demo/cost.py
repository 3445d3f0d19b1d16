"""The toy engine's stated cost of time: computed, then waited for. Speed on the demo host is simulated by this alone.

    step    = draft (if any) + target + node · ΣN + convex · (ΣN)² + context · Σcontext      over the batch
    prefill = fixed + token · new tokens

ΣN are the tokens that the target computes over all requests of the batch. The convex part stands for experts of a
mixture that a wider batch reads, and for the all-reduce that leaves its fast range. The neighbourhood is that of a
trillion-parameter model on eight PCIe cards: 30 ms for a chain of block size 8, which at τ 3.9 are 131 tokens a
second; without a drafter 89. Since τ flattens with the budget and the step does not, the speed at concurrency 1 rises
with the budget, peaks around 16 to 24 nodes, and falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class CostModel:
    """Times in milliseconds; `scale` multiplies them all (0.1 is ten times faster than stated)."""

    scale: float = 1.0
    draft_ms: float = 17.3
    target_ms: float = 11.0
    node_ms: float = 0.198
    convex_ms: float = 0.002
    context_ms: float = 0.0004
    prefill_ms: float = 24.0
    prefill_token_ms: float = 0.03

    def step_s(self, widths: Sequence[int], contexts: Sequence[int], *, drafted: bool) -> float:
        """Seconds of one decode step: tokens verified and tokens of context, for each request of the batch."""
        nodes = sum(widths)
        fixed = self.target_ms + (self.draft_ms if drafted else 0.0)
        load = self.node_ms * nodes + self.convex_ms * nodes**2 + self.context_ms * sum(contexts)
        return self.scale * (fixed + load) / 1000.0

    def prefill_s(self, new_tokens: int) -> float:
        """Seconds to read `new_tokens` tokens of prompts that no cache holds."""
        return self.scale * (self.prefill_ms + self.prefill_token_ms * new_tokens) / 1000.0
