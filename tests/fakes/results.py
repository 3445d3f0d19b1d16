"""Results with known figures, as `results list --json` has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NIGHT = datetime(2026, 12, 1, 22, tzinfo=UTC)
PROMPTS = 6


def measured(
    identity: str,
    rate: float,
    *,
    budget: int | None = 12,
    hour: float = 0.0,
    tau: float = 4.0,
    step_ms: float = 30.0,
    noise: tuple[float, ...] = (0.0,),
    **changes: Any,
) -> dict[str, Any]:
    """A passed result whose six prompts run at about `rate` tok/s end to end.

    `noise` moves single prompts, as shares of the rate; a budget of None makes a chain. `hour` is when it ended.
    """
    config: dict[str, Any] = {
        "algorithm": "chain" if budget is None else "tree",
        "block_size": 8,
        "budget": budget,
        "topk": None if budget is None else 6,
        "window": 2048,
        "args": {},
    }
    prompts = {}
    for place in range(PROMPTS):
        tokens = 200.0 + 20 * place
        speed = rate * (1 + place / 50) * (1 + noise[place % len(noise)])
        steps = tokens / tau
        decode_s = steps * step_ms / 1000
        prompts[f"p{place}"] = [tokens, tokens / speed, tokens - 1, decode_s, tokens, steps, decode_s]
    total, seconds, decoded, decode_s = (sum(row[column] for row in prompts.values()) for column in range(4))
    at = (NIGHT + timedelta(hours=hour)).isoformat()
    fields = {
        "id": identity,
        "attempt": 1,
        "outcome": "passed",
        "config": config,
        "effective": config | {"verify_width": 8 if budget is None else budget + 1},
        "workload": {"prompts": "code", "temperature": 0.0, "thinking": False},
        "suite": "quick",
        "engine_version": "0.5.23",
        "measured_on": "box",
        "tok_s_e2e": total / seconds,
        "tok_s_decode": decoded / decode_s,
        "tau": tau,
        "step_ms": step_ms,
        "by_prompt": prompts,
        "boot": f"boot-{identity}",
        "started_at": at,
        "finished_at": at,
    }
    return fields | changes
