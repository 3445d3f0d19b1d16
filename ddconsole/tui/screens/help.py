"""`?`: every key, from the one table, with the reason where it cannot be used now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ddconsole.tui import keys, theme
from ddconsole.tui.text import styled

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from ddconsole.tui.facts import Moment

KEY_CELLS = 12

PANEL_KEYS = (
    ("↑ ↓ j k", "move in the panel that has the focus"),
    ("home end", "first and last; in the log, end follows again"),
    ("← →", "sideways in the log"),
    ("^p", "all commands, by name"),
)


def help_lines(now: Moment, remark: str) -> list[Content]:
    """The table of keys as lines."""
    lines: list[Content] = []
    for group, actions in keys.groups().items():
        lines += [Content(""), styled(group.upper(), f"bold {theme.MUTED}")]
        lines += [_line(action, now) for action in actions]
    lines += [Content(""), styled("PANELS", f"bold {theme.MUTED}")]
    lines += [_key(key, True) + styled(text) for key, text in PANEL_KEYS]
    if remark:
        lines += [Content(""), styled(remark, theme.WARN)]
    return lines[1:]


def _line(action: keys.Action, now: Moment) -> Content:
    why_not = action.why_not(now)
    line = _key(action.shown_key, why_not is None) + styled(action.description, "" if why_not is None else theme.MUTED)
    if why_not is not None:
        return line + styled(f" · not now: {why_not}", theme.WARN)
    return line + styled(f" · {action.tooltip}", theme.MUTED) if action.tooltip else line


def _key(key: str, usable: bool) -> Content:
    return styled(key.ljust(KEY_CELLS), f"bold {theme.ACCENT}" if usable else theme.DIM)


class Help(ModalScreen[None]):
    """The keys; any of escape, ? and q closes it."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,f1", "close", "close")]

    def __init__(self, now: Moment, remark: str = "") -> None:
        super().__init__()
        self._now = now
        self._remark = remark

    def compose(self) -> ComposeResult:
        """The lines, scrollable."""
        with VerticalScroll(id="dialog") as dialog:
            dialog.border_title = "KEYS"
            dialog.border_subtitle = "esc closes"
            yield Static(Content("\n").join(help_lines(self._now, self._remark)), id="keys-table")

    def action_close(self) -> None:
        """Back."""
        if self.is_current:
            self.dismiss()
