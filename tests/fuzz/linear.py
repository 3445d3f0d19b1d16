"""No input takes more than linear time: processor seconds at doubling sizes, for every reader and every hostile family.

A ratio of 2 for a doubling is linear, 4 quadratic. Timed, so no test: `make fuzz` prints what stands out, and fails at
a growth that no noise explains. What can be counted instead of timed is counted in `test_linear.py`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from math import log2

from fuzz.families import ONE_CUT, PLAIN, SLOW_CUT, Family
from fuzz.targets import TARGETS, Target, attempt, by_name

SIZES = (16_384, 32_768, 65_536, 131_072, 262_144)
ENOUGH_S = 0.02
"""Below it a reading is noise."""
GIVE_UP_S = 4.0
STEEP = 1.5
"""Exponent of the growth over the last two doublings: 1 is linear, 2 quadratic."""


@dataclass(frozen=True)
class Growth:
    """Seconds at each size that was reached, and the exponent over the last two doublings."""

    reader: str
    family: str
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        last = self.seconds[-3:]
        return log2(last[-1] / last[0]) / (len(last) - 1) if len(last) > 1 and last[0] > 0 else 0.0

    @property
    def steep(self) -> bool:
        return self.seconds[-1] > ENOUGH_S and self.exponent > STEEP


def spent(target: Target, data: bytes) -> float:
    """Processor seconds of one run: the best of two where that is cheap."""
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        attempt(target, data)
        best = min(best, time.process_time() - began)
        if best > 0.2:
            break
    return best


def growth(target: Target, name: str, family: Family, cut: bytes) -> Growth:
    seconds: list[float] = []
    for size in SIZES:
        seconds.append(spent(target, cut + family(size)))
        if seconds[-1] > GIVE_UP_S:
            break
    return Growth(target.name, name, tuple(seconds))


def main() -> int:
    """Measure all, print the slowest of each reader and all that is steep."""
    steep = 0
    print(f"{'reader':14} {'slowest family':32} {'seconds at 256 KB':>18} {'exponent':>9}")
    for target in [by_name(name) for name in sys.argv[1:]] or TARGETS:
        found = []
        for name, family in PLAIN.items():
            found.append(growth(target, name, family, ONE_CUT if target.fed else b""))
            if target.fed:
                found.append(growth(target, f"{name}, in pieces of 64", family, SLOW_CUT))
        worst = max(found, key=lambda each: each.seconds[-1])
        print(f"{target.name:14} {worst.family:32} {worst.seconds[-1]:>18.3f} {worst.exponent:>9.2f}", flush=True)
        for each in found:
            if each.steep:
                steep += 1
                print(f"  STEEP {each.family}: {', '.join(f'{second:.3f}' for second in each.seconds)} s, "
                      f"exponent {each.exponent:.2f}", flush=True)  # fmt: skip
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
