"""Where one looks: which panel has the focus, which one a narrow screen shows, which one has the whole screen."""

from __future__ import annotations

from textual import on
from textual.reactive import var

from ddconsole.tui.live import LiveScreen
from ddconsole.tui.widgets.tab_strip import TabStrip

TABS = ("queue", "results", "log", "gpus")
"""Panels that a narrow screen shows one at a time; ids of widgets."""


class PanelScreen(LiveScreen):
    """A live screen with the panels of `TABS`. Its stylesheet says what `-tab-…`, `-zoom` and `-zoomed` mean."""

    tab: var[str] = var("queue")
    zoomed: var[str] = var("")

    @property
    def panel(self) -> str:
        """The panel that keys are for: the one with the focus, else the one that is shown."""
        focused = self.focused.id if self.focused is not None else None
        return focused if focused in TABS and self.zoomed != "gpus" else self.tab

    def do_queue(self) -> None:
        """To the queue; again for the whole screen."""
        self._go_to("queue")

    def do_results(self) -> None:
        """To the results; again for the whole screen."""
        self._go_to("results")

    def do_log(self) -> None:
        """To the log; again for the whole screen."""
        self._go_to("log")

    def do_gpus(self) -> None:
        """The cards on the whole screen, and back."""
        if self.zoomed == "gpus":
            self.do_back()
        else:
            self.tab = self.zoomed = "gpus"

    def do_back(self) -> None:
        """The whole picture."""
        if self.zoomed == "gpus":
            self._go_to("queue", zoom=False)
        self.zoomed = ""

    def do_next_panel(self) -> None:
        """The next panel."""
        self._cycle(1)

    def do_previous_panel(self) -> None:
        """The panel before."""
        self._cycle(-1)

    @on(TabStrip.Chosen)
    def _tab_chosen(self, message: TabStrip.Chosen) -> None:
        self._go_to(message.panel, zoom=False)

    def _go_to(self, panel: str, *, zoom: bool = True) -> None:
        """Focus a panel; when it has the focus already, give it the whole screen or take that back."""
        widget = self.query_one(f"#{panel}")
        if zoom and widget.has_focus and self.tab == panel:
            self.zoomed = "" if self.zoomed else panel
        elif self.zoomed:
            self.zoomed = panel
        self.tab = panel
        if widget.can_focus:
            widget.focus()

    def _cycle(self, by: int) -> None:
        """Around the panels that can be looked at: all four on a narrow screen, else those that take keys."""
        ring = TABS if self.has_class("-narrow") else TABS[:3]
        at = ring.index(self.tab) if self.tab in ring else 0
        self._go_to(ring[(at + by) % len(ring)], zoom=False)

    def watch_tab(self, before: str, tab: str) -> None:
        """Show the panel on a narrow screen."""
        self.remove_class(f"-tab-{before}")
        self.add_class(f"-tab-{tab}")
        for strip in self.query(TabStrip):
            strip.show(tab)

    def watch_zoomed(self, before: str, zoomed: str) -> None:
        """Give one panel the whole screen, or all their places."""
        if before:
            self.query_one(f"#{before}").remove_class("-zoomed")
        if zoomed:
            self.query_one(f"#{zoomed}").add_class("-zoomed")
        self.set_class(bool(zoomed), "-zoom")
