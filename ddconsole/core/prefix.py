"""Cold and warm requests kept apart: a prompt that the engine holds already has no prefill, so its TTFT is another one.

Decode figures (TPOT, ITL, τ, step time, tok/s decode) take all requests together: they begin at the first token, behind
the prefill that the cache spares, and the keys and values that it holds are those that a prefill would have computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.metrics import COLD, WARM, RequestRecord, e2e, ttft
from ddconsole.core.stats import Spread, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

UNKNOWN = "unknown"
"""Neither the engine nor an emptied cache tells what these requests found."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the requests of a level found in the prefix cache.

    Attributes:
        of: whose TTFT, TTFO and E2E are the level's own: `cold`; `warm` where all were warm; `unknown` where some of
            them may have been either. Warm ones are never averaged with others.
        cold, warm: requests that count, of each kind; those of which neither is known are in none of them.
        ttft_cold, ttft_warm, e2e_warm: seconds.
    """

    of: str | None
    cold: int
    warm: int
    ttft_cold: Spread | None
    ttft_warm: Spread | None
    e2e_warm: Spread | None

    def to_json(self) -> dict[str, Any]:
        """Keys of a level."""
        return {
            "prefix": self.of,
            "cold": self.cold,
            "warm": self.warm,
            "ttft_cold_ms": _json(self.ttft_cold),
            "ttft_warm_ms": _json(self.ttft_warm),
            "e2e_warm_ms": _json(self.e2e_warm),
        }


def prefixes(counted: Sequence[RequestRecord]) -> Prefixes:
    """What requests that count found in the prefix cache."""
    cold = [record for record in counted if record.prefix == COLD]
    warm = [record for record in counted if record.prefix == WARM]
    return Prefixes(
        of=_kind(unmixed(counted)),
        cold=len(cold),
        warm=len(warm),
        ttft_cold=_spread(ttft, cold),
        ttft_warm=_spread(ttft, warm),
        e2e_warm=_spread(e2e, warm),
    )


def unmixed(counted: Sequence[RequestRecord]) -> Sequence[RequestRecord]:
    """Those that a figure which holds the prefill may be taken over: all that are not warm; all where none is left."""
    return [record for record in counted if record.prefix != WARM] or counted


def _kind(records: Sequence[RequestRecord]) -> str | None:
    kinds = {record.prefix or UNKNOWN for record in records}
    return next(iter(kinds)) if len(kinds) == 1 else UNKNOWN if kinds else None


def _spread(of: Callable[[RequestRecord], float | None], records: Iterable[RequestRecord]) -> Spread | None:
    return spread([value for record in records if (value := of(record)) is not None])


def _json(values: Spread | None) -> dict[str, float | int] | None:
    return None if values is None else values.to_json(1000)
