"""`?`: every key, from the one table, with the reason where it cannot be used now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from ddconsole.tui import keys, theme
from ddconsole.tui.screens.ask import CALL_KEY
from ddconsole.tui.text import styled, wrap_words
from ddconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from ddconsole.tui.facts import Moment

KEY_CELLS = 10

PANEL_KEYS = (
    ("↑ ↓ j k", "move in the panel that has the focus"),
    ("home end", "first and last; in the log, end follows again"),
    ("← →", "sideways in the log"),
    ("^p", "all commands, by name"),
    (CALL_KEY, "answer what ssh asks, when the line at the top says so"),
)

VERBS = (
    ("add", "b=16 B=26 · behind all; next puts it in front, sweep b=8,16 B=2b,3b makes several"),
    (
        "after",
        "b=16 B=match · behind what runs, member by member; after E14 behind that one; after! if it passes",
    ),
    ("clone", "E14 b=16 · a copy with changes, of S3 all of the sweep"),
    ("edit", "E16 B=32 · what waits; edit E14 passes=quality gives the running one further passes"),
    ("move", "E17 top · or up, down, bottom, 3"),
    ("hold", "E16 E17 · and release, remove, retry, cancel: ids alone"),
    ("idea", '"words" · kept until it gets a config'),
    ("undo", "· redo, pause, start, order, help, quit: alone"),
)
"""The language behind `:`, in short."""


def help_lines(now: Moment, remark: str, width: int) -> list[Content]:
    """The keys by what they are for; why some cannot be used now, each reason once; the language; other keys."""
    lines: list[Content] = []
    for group, actions in keys.groups().items():
        lines += [Content(""), _heading(group)]
        lines += [row for action in actions for row in _action(action, now, width)]
    lines += _not_now(now, width)
    lines += [Content(""), _heading("Behind :")]
    lines += [row for verb, words in VERBS for row in _entry(verb, words, width)]
    lines += [Content(""), _heading("Panels")]
    lines += [row for key, words in PANEL_KEYS for row in _entry(key, words, width)]
    if remark:
        lines += [Content(""), styled(remark, theme.WARN)]
    return lines[1:]


def _not_now(now: Moment, width: int) -> list[Content]:
    """Each reason once, behind all the keys that it keeps."""
    reasons: dict[str, list[str]] = {}
    for action in keys.ACTIONS:
        why_not = action.why_not(now)
        if why_not is not None:
            reasons.setdefault(why_not, []).append(action.shown_key)
    if not reasons:
        return []
    lines = [Content(""), _heading("Not now")]
    for reason, dim in reasons.items():
        names = " ".join(dim)
        lines += _entry(names, reason, width, usable=False, tone=theme.WARN, cells=max(KEY_CELLS, len(names) + 2))
    return lines


def _heading(text: str) -> Content:
    return styled(text.upper(), f"bold {theme.MUTED}")


def _action(action: keys.Action, now: Moment, width: int) -> list[Content]:
    words = f"{action.description} · {action.tooltip}" if action.tooltip else action.description
    usable = action.why_not(now) is None
    return _entry(action.shown_key, words, width, usable=usable, tone="" if usable else theme.MUTED)


def _entry(
    key: str, words: str, width: int, *, usable: bool = True, tone: str = "", cells: int = KEY_CELLS
) -> list[Content]:
    """A key and its words, which go on below themselves."""
    rows = wrap_words(words, max(10, width - cells), 9)
    heads = [styled(key.ljust(cells), f"bold {theme.ACCENT}" if usable else theme.DIM)]
    heads += [styled(" " * cells)] * (len(rows) - 1)
    return [head + styled(row, tone) for head, row in zip(heads, rows, strict=True)]


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
            yield Lines(lambda width: help_lines(self._now, self._remark, width), id="keys-table")

    def action_close(self) -> None:
        """Back."""
        if self.is_current:
            self.dismiss()
