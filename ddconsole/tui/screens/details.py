"""`i`: all that is known of the selected experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from ddconsole.tui.draw.details import details_lines
from ddconsole.tui.text import clean
from ddconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult


class Details(ModalScreen[None]):
    """Lines to read; any of escape, i and q closes it."""

    CSS_PATH = "details.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,i,q,enter", "close", "close")]

    def __init__(self, item: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self._item = item
        self._results = results

    def compose(self) -> ComposeResult:
        """The lines, scrollable."""
        with VerticalScroll(id="dialog") as dialog:
            dialog.border_title = clean(self._item.get("id"))
            dialog.border_subtitle = "esc closes"
            yield Lines(lambda width: details_lines(self._item, self._results, width), id="lines")

    def action_close(self) -> None:
        """Back."""
        if self.is_current:
            self.dismiss()
