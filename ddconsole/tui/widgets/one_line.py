"""A field of one line that says so when a paste had more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input

from ddconsole.tui.messages import PasteCut
from ddconsole.tui.text import clean

if TYPE_CHECKING:
    from textual import events


class OneLine(Input):
    """Takes the first line of a paste, cleaned of control characters, and posts PasteCut for the rest."""

    def __init__(self, value: str = "", *, placeholder: str = "", id: str | None = None) -> None:  # noqa: A002
        super().__init__(value, placeholder=placeholder, compact=True, id=id, select_on_focus=False)

    def validate_value(self, value: str) -> str:
        """Whatever comes into the field, be it another user's note: nothing in it reaches the terminal as a command."""
        return clean(value, max(len(value), 1))

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        lines = event.text.splitlines() or [""]
        self.replace(clean(lines[0]), *self.selection)
        dropped = sum(bool(line.strip()) for line in lines[1:])
        if dropped:
            self.post_message(PasteCut(dropped))
