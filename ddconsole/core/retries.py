"""An experiment that took the host, or its engine's service, down with it: tried again, but not for ever.

A crash of a whole machine may be chance, so the attempt counts as interrupted and is queued again at the front; when it
keeps happening to the same experiment it is that experiment's failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIES_AGAIN: Final = 2
"""How often an experiment is started again after it took something down: three tries in all."""

CONSOLE_ENDED: Final = "console-ended"
"""What cut an attempt whose console died in it, as long as nothing else is known."""

HOST_REBOOTED: Final = "host-rebooted"
SERVICE_VANISHED: Final = "service-vanished"

DOWNFALLS: Final = frozenset({HOST_REBOOTED, SERVICE_VANISHED})
"""Causes by which an attempt took more down than its own engine."""


def downfalls(cuts: Sequence[str]) -> int:
    """How many of `cuts` (what cut an experiment's attempts, one a word) took the host or a service down."""
    return sum(cut in DOWNFALLS for cut in cuts)


def may_try_again(cuts: Sequence[str]) -> bool:
    """Whether another try is due, `cuts` being what cut the attempts since the last that came to an end of its own."""
    return downfalls(cuts) <= TRIES_AGAIN


def try_words(cuts: Sequence[str]) -> str:
    """What follows from the newest of `cuts`, for people."""
    if may_try_again(cuts):
        return f"queued again at the front, try {downfalls(cuts) + 1} of {TRIES_AGAIN + 1}"
    return f"{downfalls(cuts)} times with this experiment, so it is not tried again"
