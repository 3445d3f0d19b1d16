"""The first line of every live screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ddconsole.runner.feed import Topic
from ddconsole.tui.draw.header import Place, header
from ddconsole.tui.widgets.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual.content import Content

    from ddconsole.runner.feed import View


class HeaderLine(Picture):
    """Where we are, how the line is, what runs, what comes."""

    topics: ClassVar = frozenset(
        {Topic.RUN, Topic.CONNECTION, Topic.EXPERIMENT, Topic.PHASES, Topic.PASS, Topic.QUEUE, Topic.RESULTS}
    )

    def __init__(self, place: Place, owns_run: Callable[[], bool]) -> None:
        super().__init__(id="header")
        self._place = place
        self._owns_run = owns_run

    def lines(self, view: View, now: datetime, width: int, height: int) -> list[Content]:
        """One line."""
        return [header(view, self._place, owns_run=self._owns_run(), width=width)]
