"""Files being pulled before they can be loaded: one bar for each, and one that counts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ddconsole.core.progress import Download

if TYPE_CHECKING:
    from ddconsole.engines.sglang.shardbar import Bar

FILE_LIMIT: Final = 4096
"""Files that are kept apart; no checkpoint has as many."""


@dataclass(slots=True)
class Downloads:
    """The last state of each bar. Bars of bytes are told from the bar of files by their rate."""

    _files: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    _counted: tuple[int, int | None] | None = None

    def see(self, bar: Bar) -> None:
        """A state of a bar of the kind `download`."""
        if not bar.rate.endswith("B/s"):
            self._counted = (bar.done, bar.total)
        elif bar.desc in self._files or len(self._files) < FILE_LIMIT:
            self._files[bar.desc] = (bar.done, bar.total)

    def clear(self) -> None:
        """What was pulled is being used: it is whole."""
        self._files.clear()
        self._counted = None

    @property
    def now(self) -> Download | None:
        """What is under way; None when nothing is, or all that began is whole."""
        states = [*self._files.values(), *([self._counted] if self._counted is not None else [])]
        if all(total is not None and done >= total for done, total in states):
            return None
        totals = [total for _, total in self._files.values()]
        known = [total for total in totals if total is not None]
        done_files, total_files = self._counted or (None, None)
        return Download(
            sum(done for done, _ in self._files.values()),
            sum(known) if known and len(known) == len(totals) else None,
            done_files,
            total_files,
        )
