"""What SGLang counts of itself: `/metrics` (with `--enable-metrics` only), and `/server_info`'s acceptance length."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

import httpx

from ddconsole.core.ports import DecodeTick, ServerCounts
from ddconsole.engines.sglang.bootlines import is_decode, read_decode, split_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.engines.sglang.http import EngineHttp

COUNTERS_TIMEOUT_S: Final = 10.0
TOKENS: Final = "sglang:generation_tokens_total"
STEPS: Final = "sglang:spec_verify_calls_total"

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+([-+.\w]+)")
_OTHER_RANK = re.compile(r'\b(?:tp_rank|pp_rank|moe_ep_rank)="(?!0")')


async def read_counts(http: EngineHttp) -> ServerCounts | None:
    """The engine's counters now; None where it has none or cannot be asked."""
    info, _ = await http.server_info()
    text = await _metrics(http)
    if info is None and text is None:
        return None
    return ServerCounts(
        tokens=None if text is None else counter(text, TOKENS),
        steps=None if text is None else counter(text, STEPS),
        lifetime_tau=lifetime_tau(info or {}),
    )


def counter(text: str, name: str) -> float | None:
    """A counter of Prometheus text, summed over its label sets; of ranks that all count the same, the first alone."""
    total: float | None = None
    for line in text.splitlines():
        if not line.startswith(name):
            continue
        sample = _SAMPLE.match(line)
        if sample is None or sample[1] != name or _OTHER_RANK.search(sample[2] or ""):
            continue
        try:
            total = (total or 0.0) + float(sample[3])
        except ValueError:
            return None
    return total


def lifetime_tau(info: Mapping[str, Any]) -> float | None:
    """The acceptance length of the first scheduler that has one, since its start or the last flush.

    Under data parallelism each scheduler has its own, null where it was idle: one of them is never a run's figure.
    """
    states = info.get("internal_states")
    for state in states if isinstance(states, list) else ():
        value = state.get("avg_spec_accept_length") if isinstance(state, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def decode_tick(line: str) -> DecodeTick | None:
    """What a decode line says; None for any other line."""
    message = split_stamp(line)[1]
    if not is_decode(message):
        return None
    found = read_decode(message)
    if found.tokens_per_s is None:
        return None
    return DecodeTick(found.running, found.tokens_per_s, found.accept_len)


async def _metrics(http: EngineHttp) -> str | None:
    try:
        async with asyncio.timeout(COUNTERS_TIMEOUT_S), http.client(COUNTERS_TIMEOUT_S) as client:
            answer = await client.get("/metrics")
    except (httpx.HTTPError, TimeoutError):
        return None
    return answer.text if answer.status_code == httpx.codes.OK else None
