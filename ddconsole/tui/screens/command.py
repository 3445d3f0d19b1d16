"""`:`, one line of the queue's language. A refusal is shown in place, a caret under its column, the text kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.tui import theme
from ddconsole.tui.messages import Accepted, PasteCut, Refused, RunCommand
from ddconsole.tui.text import styled
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

EXAMPLES = "add b=16 B=26   after b=16 B=match   sweep B=8..32:8   edit E16 B=32   hold E17   move E17 top   undo"


class CommandLine(ModalScreen[None]):
    """Sends the line up and waits for the answer; dismissed when it is accepted."""

    CSS_PATH = "command.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "go back")]
    AUTO_FOCUS = "#line"

    def __init__(self, seen: int | None, text: str = "") -> None:
        super().__init__()
        self._seen = seen
        self._text = text
        self._waiting = False

    def compose(self) -> ComposeResult:
        """The line, and what is said about it."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = "COMMAND"
            dialog.border_subtitle = "enter does it · esc goes back"
            with Horizontal(id="entry"):
                yield Static(styled(":", f"bold {theme.ACCENT}"), id="colon")
                yield OneLine(self._text, id="line")
            yield Static(styled(EXAMPLES, theme.MUTED), id="said")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        """Once: further presses of enter wait for the answer."""
        event.stop()
        if self._waiting:
            return
        self._waiting = True
        self._say(styled("…", theme.MUTED))
        self.post_message(RunCommand(self, event.value, self._seen))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()

    @on(Accepted)
    def _accepted(self, message: Accepted) -> None:
        message.stop()
        if message.notice:
            self.app.notify(message.notice, markup=False)
        if self.is_current:
            self.dismiss()

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        self._waiting = False
        lines = []
        if message.column is not None:
            lines.append(styled(" " * (message.column - 1) + "^", f"bold {theme.BAD}"))
        lines.append(styled("✘ ", theme.BAD) + styled(message.what, theme.BAD))
        if message.advice:
            lines.append(styled("→ ", theme.ACCENT) + styled(message.advice))
        self._say(Content("\n").join(lines))

    @on(PasteCut)
    def _cut(self, message: PasteCut) -> None:
        more = "1 more line was" if message.dropped == 1 else f"{message.dropped} more lines were"
        self._say(styled(f"⚠ {more} left out", theme.WARN))

    def _say(self, content: Content) -> None:
        self.query_one("#said", Static).update(content)

    def action_close(self) -> None:
        """Back, without doing anything."""
        if self.is_current:
            self.dismiss()
