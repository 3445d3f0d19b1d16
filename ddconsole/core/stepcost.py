"""Where the time goes: at concurrency 1 the decode rate is τ / step time, and a budget moves both.

From three or more budgets of otherwise equal trees: the step time and τ that were measured at each, joined by straight
lines and by nothing smoother, for kernels have cliffs (a step from 8 to 9 query tokens may cost as much as the next ten
together) that a fitted curve would hide. What lies between two budgets is an estimate with a spread, never a
measurement: both curves rise with the budget, so a value between two neighbours is bounded by them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import DECODE, STEP, TAU, Known, is_ranked, same_work
from ddconsole.core.compare import name_of, own_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ddconsole.core.boots import Figure

MIN_BUDGETS = 3
"""With fewer there is a line, not a curve."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure at one budget: its value, and its 95 % interval where there are prompts enough."""

    value: float
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """Value and interval."""
        return {"value": round(self.value, 4), "low": _rounded(self.low), "high": _rounded(self.high)}


@dataclass(frozen=True, slots=True)
class CostPoint:
    """What was measured at one budget, the mean over its boots.

    Attributes:
        budget: B.
        step_ms: Σ(tn − t1)/ΣV.
        tau: ΣC/ΣV.
        rate: decode tok/s, Σ(C − 1)/Σ(tn − t1): τ / step time but for each request's first token.
        ids: the results behind it.
    """

    budget: int
    step_ms: Measured
    tau: Measured
    rate: float
    ids: tuple[str, ...]

    @property
    def tau_over_step(self) -> float:
        """τ / step time, tok/s."""
        return self.tau.value / self.step_ms.value * 1000

    def to_json(self) -> dict[str, Any]:
        """An item of a curve's `points`."""
        return {
            "budget": self.budget,
            "verify_width": self.budget + 1,
            "step_ms": self.step_ms.to_json(),
            "tau": self.tau.to_json(),
            "tok_s_decode": round(self.rate, 4),
            "tau_over_step_tok_s": round(self.tau_over_step, 4),
            "ids": list(self.ids),
        }


@dataclass(frozen=True, slots=True)
class Segment:
    """From one budget to the next: what the larger tree won on acceptance and paid in step time, in percent."""

    low: int
    high: int
    tau_pct: float
    step_pct: float

    @property
    def net_pct(self) -> float:
        """What became of the decode rate by both."""
        return ((1 + self.tau_pct / 100) / (1 + self.step_pct / 100) - 1) * 100

    @property
    def text(self) -> str:
        """`B 12 → 16: τ +4.1 %, step +6.0 %: lost on cost`."""
        return f"B {self.low} → {self.high}: τ {self.tau_pct:+.1f} %, step {self.step_pct:+.1f} %: {self._what}"

    @property
    def _what(self) -> str:
        if self.net_pct >= 0:
            return f"won {self.net_pct:.1f} %"
        return f"lost {-self.net_pct:.1f} % " + ("on acceptance" if self.tau_pct <= 0 else "on cost")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the curves say of a budget that nobody measured. An estimate: `low` and `high` bound it, noise aside.

    Attributes:
        between: the measured neighbours; (last, None) beyond the last.
    """

    budget: int
    rate: float
    low: float
    high: float
    between: tuple[int, int | None]

    @property
    def text(self) -> str:
        """In a line, with its spread."""
        left, right = self.between
        where = f"between B {left} and {right}" if right is not None else f"beyond B {left}, by the last slope"
        spread = f"{self.rate:.0f} tok/s decode ({self.low:.0f} to {self.high:.0f})"
        return f"estimate, not measured: B {self.budget} {spread}, {where}"

    def to_json(self) -> dict[str, Any]:
        """An item of a curve's `estimates`."""
        return {
            "budget": self.budget,
            "tok_s_decode": round(self.rate, 2),
            "low": round(self.low, 2),
            "high": round(self.high, 2),
            "between": list(self.between),
            "estimate": True,
        }


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Trees that differ in their budget alone, from the smallest on; at least `MIN_BUDGETS` of them.

    Attributes:
        label: what they share, `tree b 8 K 6 W 2048`.
    """

    label: str
    points: tuple[CostPoint, ...]

    @property
    def best(self) -> CostPoint:
        """The budget with the highest measured decode rate."""
        return max(self.points, key=lambda point: point.rate)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Between neighbours."""
        return tuple(
            Segment(
                a.budget,
                b.budget,
                (b.tau.value / a.tau.value - 1) * 100,
                (b.step_ms.value / a.step_ms.value - 1) * 100,
            )
            for a, b in pairwise(self.points)
        )

    def step_ms_at(self, budget: float) -> float | None:
        """On the straight line between the measured neighbours, ms; None outside of what was measured."""
        return _on_line([(point.budget, point.step_ms.value) for point in self.points], budget)

    def tau_at(self, budget: float) -> float | None:
        """On the straight line between the measured neighbours; None outside of what was measured."""
        return _on_line([(point.budget, point.tau.value) for point in self.points], budget)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The middle of every gap beside the best budget, and one step beyond the last when the last is the best."""
        found = [
            self._between(a, b) for a, b in pairwise(self.points) if self.best in (a, b) and b.budget - a.budget > 1
        ]
        if self.best is self.points[-1]:
            found.append(self._beyond())
        return tuple(found)

    @property
    def text(self) -> str:
        """What the curves say about the next budget."""
        best = self.best
        worth = [estimate for estimate in self.estimates if estimate.high > best.rate]
        head = f"{self.label}: best measured B {best.budget}, {best.rate:.1f} tok/s decode"
        if not worth:
            return f"{head}; no budget beside it can beat it by these curves"
        return f"{head}; {max(worth, key=lambda estimate: estimate.rate).text}"

    def _between(self, a: CostPoint, b: CostPoint) -> Estimate:
        """Halfway, by both lines; at worst a cliff right behind `a` and no gain before `b`, at best the reverse."""
        budget = (a.budget + b.budget) // 2
        tau, step = self.tau_at(budget), self.step_ms_at(budget)
        assert tau is not None
        assert step is not None
        taus, steps = sorted((a.tau.value, b.tau.value)), sorted((a.step_ms.value, b.step_ms.value))
        return Estimate(
            budget, tau / step * 1000, taus[0] / steps[1] * 1000, taus[1] / steps[0] * 1000, (a.budget, b.budget)
        )

    def _beyond(self) -> Estimate:
        """As far again as the last gap: τ by its last slope, at worst none; step time by its last slope, at worst its
        steepest one and at best a plateau. A cliff further out is in none of them."""
        a, b = self.points[-2:]
        gap = b.budget - a.budget
        gain = max(b.tau.value - a.tau.value, 0.0)
        slope = max((b.step_ms.value - a.step_ms.value) / gap, 0.0)
        steepest = max((q.step_ms.value - p.step_ms.value) / (q.budget - p.budget) for p, q in pairwise(self.points))
        tau, step = b.tau.value + gain, b.step_ms.value + slope * gap
        worst = b.tau.value / (b.step_ms.value + max(steepest, 0.0) * gap)
        return Estimate(b.budget + gap, tau / step * 1000, worst * 1000, tau / b.step_ms.value * 1000, (b.budget, None))

    def to_json(self) -> dict[str, Any]:
        """An item of `step_cost`."""
        return {
            "label": self.label,
            "points": [point.to_json() for point in self.points],
            "segments": [
                {
                    "from": one.low,
                    "to": one.high,
                    "tau_pct": round(one.tau_pct, 2),
                    "step_pct": round(one.step_pct, 2),
                    "net_pct": round(one.net_pct, 2),
                }
                for one in self.segments
            ],
            "estimates": [estimate.to_json() for estimate in self.estimates],
            "text": self.text,
        }


def cost_curves(items: Iterable[Mapping[str, Any]] | Known) -> tuple[CostCurve, ...]:
    """Every group of trees that differ in their budget alone and did the same work, with budgets enough for a curve."""
    known = items if isinstance(items, Known) else Known(items)
    groups: dict[tuple[str, str], dict[int, list[Mapping[str, Any]]]] = {}
    for item in known.items:
        config = item.get("config") or {}
        if (
            config.get("algorithm") == "tree"
            and is_ranked(item)
            and all(item.get(one.name) for one in (STEP, TAU, DECODE))
        ):
            key = (_label(config), f"{same_work(item)} {item.get('engine_version')}")
            groups.setdefault(key, {}).setdefault(int(config["budget"]), []).append(item)
    return tuple(
        CostCurve(label, tuple(_point(budget, budgets[budget], known) for budget in sorted(budgets)))
        for (label, _), budgets in groups.items()
        if len(budgets) >= MIN_BUDGETS
    )


def _point(budget: int, results: Sequence[Mapping[str, Any]], known: Known) -> CostPoint:
    return CostPoint(
        budget,
        _measured(results, STEP, known),
        _measured(results, TAU, known),
        _mean(float(item[DECODE.name]) for item in results),
        tuple(name_of(item) for item in results),
    )


def _measured(results: Sequence[Mapping[str, Any]], figure: Figure, known: Known) -> Measured:
    low, high = own_interval(results[-1], figure, known) or (None, None)
    return Measured(_mean(float(item[figure.name]) for item in results), low, high)


def _on_line(points: Sequence[tuple[int, float]], at: float) -> float | None:
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= at <= x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return None


def _label(config: Mapping[str, Any]) -> str:
    knobs = (("b", "block_size"), ("K", "topk"), ("W", "window"))
    words = [f"{short} {config[name]}" for short, name in knobs if config.get(name) is not None]
    words += [f"{name}={value}" for name, value in sorted((config.get("args") or {}).items())]
    return " ".join(["tree", *words])


def _mean(values: Iterable[float]) -> float:
    """The geometric mean, as `core/compare.py` takes it over boots."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
