"""When requests come in an open loop: due times that do not wait for answers. Pure and seeded."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Final, Literal

Arrivals = Literal["poisson", "constant"]
"""How requests are spaced."""

POISSON: Final = "poisson"


def due_times(kind: Arrivals, rate: float, count: int, seed: int = 1) -> tuple[float, ...]:
    """Seconds after the start at which `count` requests are due; the first at 0.

    constant: one every 1/rate. poisson: independent gaps, exponential with mean 1/rate, so that arrivals bunch as
    those of independent users do. The same seed gives the same gaps in units of 1/rate, whatever the rate: two rates,
    and two configs, see the same bunches.

    Raises:
        ValueError: a rate that is not above 0.
    """
    if not rate > 0:
        raise ValueError(f"a rate above 0 is needed, got {rate!r}")
    draw = random.Random(seed)
    gaps = [draw.expovariate(1.0) if kind == POISSON else 1.0 for _ in range(count - 1)]
    return tuple(at / rate for at in accumulate(gaps, initial=0.0))[:count]
