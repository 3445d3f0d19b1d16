"""Axes: where the ticks of a range of values stand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high`, drawn from pixel or cell `start` to `end`. `step` lies between two ticks."""

    low: float
    high: float
    step: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value stands."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values from low to high."""
        count = round((self.high - self.low) / self.step)
        return [round(self.low + index * self.step, 10) for index in range(count + 1)]

    def label(self, tick: float) -> str:
        """A tick in as many digits as its step has."""
        digits = next(count for count in range(12) if math.isclose(round(self.step, count), self.step, rel_tol=1e-9))
        return f"{tick:.{digits}f}"


def scale_of(values: Iterable[float], start: float, end: float, *, wanted: int = 6, zero: bool = False) -> Scale:
    """A scale with round ticks (1, 2, 2.5 or 5 times a power of ten) that holds all values.

    Args:
        wanted: about how many ticks there should be.
        zero: begin at zero.
    """
    found = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = (min(0.0, *found) if zero else min(found)), max(found)
    if high - low < 1e-9 * max(abs(high), 1.0):
        margin = abs(high) * 0.1 or 1.0
        low, high = low - (0.0 if zero and low == 0 else margin), high + margin
    step = _round_step((high - low) / max(wanted - 1, 1))
    return Scale(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step, start, end)


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
