"""One widget for all GPUs of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ddconsole.runner.feed import Topic
from ddconsole.tui.draw.gpus import gpus
from ddconsole.tui.formats import span
from ddconsole.tui.widgets.picture import Picture

if TYPE_CHECKING:
    from datetime import datetime

    from textual.content import Content

    from ddconsole.runner.feed import View

OLD_S = 5.0
"""Seconds after which a sample no longer says how the cards are."""


class GpuPanel(Picture):
    """Utilization, memory, power and temperature of every card."""

    topics: ClassVar = frozenset({Topic.GPU, Topic.CONNECTION})
    ticking: ClassVar = True
    BORDER_TITLE = "GPU"

    def lines(self, view: View, now: datetime, width: int, height: int) -> list[Content]:
        """The cards, as much of each as there is room for."""
        return gpus(view.gpus, view.gpu_history, width, height)

    def show(self, view: View, now: datetime) -> None:
        """Also say on the border how old the picture is."""
        super().show(view, now)
        age = (now - view.gpu_at).total_seconds() if view.gpu_at is not None else 0.0
        lost = view.connection is not None and view.connection.state == "lost"
        self.set_class(lost or age > OLD_S or view.gpu_problem is not None, "-stale")
        old = f"seen {span(age)} ago" if age > OLD_S else ""
        self.border_subtitle = "no new samples" if view.gpu_problem and view.gpus and not old else old

    def nothing(self, view: View) -> str:
        """Why there is no card to show."""
        if view.gpu_problem:
            return f"⚠ {view.gpu_problem}"
        connected = view.connection is not None and view.connection.state == "connected"
        return "waiting for the first sample" if connected else "no samples before the line stands"
