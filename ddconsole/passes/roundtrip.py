"""The tunnel's round trip, as an HTTP request feels it: what of a TTFT is not the engine's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx

from ddconsole.core.stats import percentile
from ddconsole.passes.client import open_client

if TYPE_CHECKING:
    from ddconsole.core.ports import Clock

PATH = "/ping"
"""Asked for; any answer will do, a 404 too: it has gone there and back."""

TIMES = 5
"""Round trips on one connection, behind one that opens it."""

LIMIT_S = 5.0


async def round_trip(base_url: str, clock: Clock) -> float | None:
    """The median round trip of a request without work, seconds; None where the engine does not answer.

    Each measured request's TTFT holds one of these: on a connection that stands, its way there and the way back of the
    first token, and the engine's own handling of HTTP.
    """
    taken = []
    try:
        async with open_client(base_url, stall_s=LIMIT_S, clock=clock) as client:
            for _ in range(TIMES + 1):
                began = time.perf_counter()
                await client.get(PATH)
                taken.append(time.perf_counter() - began)
    except httpx.HTTPError:
        return None
    return percentile(taken[1:], 0.5)
