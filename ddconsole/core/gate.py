"""Whether a result may pass a gate: it has to be measured, right, and not surely slower than a loss that is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, Known
from ddconsole.core.compare import compare, name_of
from ddconsole.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ddconsole.core.boots import Figure
    from ddconsole.core.compare import Comparison

TOO_WIDE_PCT = 10.0
"""An undecided comparison whose interval is wider than ± this (or ± three times the allowed loss) decides nothing."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What the gate says.

    Attributes:
        code: faster, within, undecided (passes with a note, fails when strict), slower, no-data, not-passed.
        text: the finding and its reason, in a line.
    """

    passed: bool
    code: str
    text: str
    comparison: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """The `gate` object of `results gate --json`."""
        return {
            "passed": self.passed,
            "code": self.code,
            "text": self.text,
            "comparison": None if self.comparison is None else self.comparison.to_json(),
        }


def parse_loss(text: str) -> float:
    """`3%`, `3 %` or `3`, in percent.

    Raises:
        UsageError: it is no percentage from 0 to 100.
    """
    found = re.fullmatch(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*%?\s*", text)
    if found is None or float(found[1]) > 100:
        raise UsageError(f"--max-loss: expected a percentage such as 3%, got {text!r}")
    return float(found[1])


def gate(
    candidate: Mapping[str, Any],
    baseline: Mapping[str, Any],
    items: Iterable[Mapping[str, Any]] | Known = (),
    *,
    max_loss_pct: float,
    strict: bool = False,
    figure: Figure = E2E,
) -> GateVerdict:
    """Judge a candidate by its baseline.

    It fails when it was not passed itself, when there is too little to tell, and when it is distinguishably slower by
    more than `max_loss_pct`. What is not distinguishable passes with a note; strict asks that the whole interval lies
    above the allowed loss.
    """
    mine, theirs = name_of(candidate), name_of(baseline)
    for item, name in ((candidate, mine), (baseline, theirs)):
        if item.get("outcome") != "passed":
            why = (item.get("failure") or {}).get("what") or "it was not measured to its end"
            return GateVerdict(False, "not-passed", f"{name} is {item.get('outcome')}: {why}")
    if candidate.get("workload") != baseline.get("workload"):
        return GateVerdict(False, "no-data", f"{mine} and {theirs} ran different workloads: nothing can be compared")
    found = compare(candidate, baseline, items, figure)
    half = None if found is None else found.ci_pct
    if found is None or half is None:
        pairs = 0 if found is None else found.pairs
        text = f"not enough data: {mine} and {theirs} share {pairs} prompts at concurrency 1, and three are needed"
        return GateVerdict(False, "no-data", text, found)
    return _judged(found, half, max_loss_pct, strict=strict)


def _judged(found: Comparison, half: float, max_loss_pct: float, *, strict: bool) -> GateVerdict:
    gain = found.delta_pct * found.better
    worst = min((found.low_pct or 0.0) * found.better, (found.high_pct or 0.0) * found.better)
    allowed = f"the allowed loss is {max_loss_pct:g} %"
    if found.word == "faster":
        return GateVerdict(True, "faster", found.text, found)
    if found.word == "slower" and gain < -max_loss_pct:
        return GateVerdict(False, "slower", f"{found.text}; {allowed}", found)
    if worst >= -max_loss_pct:
        return GateVerdict(True, "within", f"{found.text}; all of the interval is within it: {allowed}", found)
    if found.word == "not distinguishable" and half > max(TOO_WIDE_PCT, 3 * max_loss_pct):
        return GateVerdict(False, "no-data", f"not enough data: ± {half:.1f} % decides nothing; {found.text}", found)
    note = f"{found.text}; {allowed}, and the interval reaches {worst:+.1f} %"
    return GateVerdict(not strict, "undecided", note + (" (strict)" if strict else " (passes with this note)"), found)
