"""The points of a campaign: which fault, at which milestone of the run; the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .kinds import KINDS, TWICE

DELAY_S = 0.3
"""A fault comes up to so many seconds after its milestone."""

RECOVERY = 20
"""A second fault comes before this milestone of the recovery."""

DRAWS = 6
"""How often a point is drawn before it is given up: there may be nothing to hit at a moment."""

BOOT_PHASES = frozenset({"init", "load_target", "load_draft", "kv", "graphs", "warmup"})
"""Phases that are read from the log: one that begins and ends between two looks is told by its end alone."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fault: what, at which milestone of the run, how long after it, and whether it comes again in the recovery.

    `draw` counts from 0; a later one replaces an earlier one that hit nothing.
    """

    number: int
    kind: str
    milestone: int
    delay_s: float
    again: int | None = None
    draw: int = 0

    def __str__(self) -> str:
        again = "" if self.again is None else f", again at milestone {self.again} of the recovery"
        drawn = "" if self.draw == 0 else f" (draw {self.draw + 1})"
        return f"point {self.number}{drawn}: {self.kind} {self.delay_s:.2f} s after milestone {self.milestone}{again}"


def drawn(number: int, seed: int, milestones: int, draw: int = 0) -> Point:
    """A point of the campaign: kinds in turn, moments at random.

    Each draw has dice of its own, so that neither other points nor the order in which they run move it.
    """
    dice = random.Random(f"{seed}/{number}/{draw}")
    names = list(KINDS)
    kind = names[number % len(names)]
    twice = kind in TWICE and number // len(names) % 2
    again = dice.randrange(1, RECOVERY) if twice else None
    return Point(number, kind, dice.randrange(1, milestones), dice.uniform(0, DELAY_S), again, draw)


def is_milestone(event: Mapping[str, Any]) -> bool:
    """Whether an event of `run --json` comes in every undisturbed run, as often and in the same order.

    Only what is stored, without what depends on the line or on the moment at which the log was looked at.
    """
    if not event.get("seq") or event["kind"] in ("connection", "warning"):
        return False
    return not (event["kind"] == "phase" and event["phase"] in BOOT_PHASES and event["state"] == "started")


def name_of(event: Mapping[str, Any]) -> str:
    """A milestone in words: `E1 phase launch started`."""
    parts = (event.get("id"), event["kind"], event.get("phase") or event.get("name"), event.get("state"))
    return " ".join(part for part in parts if part)
