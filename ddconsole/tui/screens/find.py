"""`/`: words narrow the queue while they are typed, an id jumps to it. Escape shows all again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.tui import theme
from ddconsole.tui.text import styled
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult


class Find(ModalScreen[str]):
    """Dismisses with what was entered; `narrow` is told at every key."""

    CSS_PATH = "find.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "all", "show all again")]
    AUTO_FOCUS = "#words"

    def __init__(self, words: str, narrow: Callable[[str], None]) -> None:
        super().__init__()
        self._words = words
        self._narrow = narrow

    def compose(self) -> ComposeResult:
        """One line at the bottom."""
        with Horizontal(id="dialog"):
            yield Static(styled("/", f"bold {theme.ACCENT}"), id="slash")
            yield OneLine(self._words, placeholder="words, or an id · enter keeps · esc shows all", id="words")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._narrow(event.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self.is_current:
            self.dismiss(event.value)

    def action_all(self) -> None:
        """All rows again."""
        self._narrow("")
        if self.is_current:
            self.dismiss("")
