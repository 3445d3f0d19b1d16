"""Causes in a row: the same one twice pauses the queue, in one run or in runs one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.experiment import Outcome
from ddconsole.core.retries import DOWNFALLS
from ddconsole.engines.launch.service import NOT_OURS

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Row:
    """The cause that stands at the end of the row, and whose it was; none at the beginning and after each pause."""

    cause: str | None = None
    id: str | None = None

    def take(self, of: str, outcome: str, cause: str | None) -> bool:
        """Add the end of an attempt. True when the queue pauses for it, and the row begins anew.

        A pass and a cancellation break the row; an interruption says nothing, unless the attempt took more down than
        its engine. Trying such an experiment again is no second time: that has a limit of its own.
        """
        if outcome == Outcome.INTERRUPTED.value and cause not in DOWNFALLS:
            return False
        if cause is None or outcome == Outcome.CANCELLED.value:
            self.cause = self.id = None
            return False
        tried_again = cause in DOWNFALLS and of == self.id
        pauses = cause == NOT_OURS or (cause == self.cause and not tried_again)
        self.cause, self.id = (None, None) if pauses else (cause, of)
        return pauses


def row_of(results: Iterable[dict[str, Any]]) -> Row:
    """The row as a profile's results, oldest first, leave it."""
    row = Row()
    for item in results:
        failure = item.get("failure") or {}
        row.take(str(item.get("id")), str(item.get("outcome")), failure.get("cause"))
    return row
