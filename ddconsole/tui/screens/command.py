"""`:`, one line of the queue's language: what it would come to is shown while it is typed, enter takes it.

A refusal stands in place, a caret under its column, the text kept. Work that is there already is asked about.
"""

from __future__ import annotations

import shlex
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.core.queue import Refusal
from ddconsole.core.spec import SpecRefusal
from ddconsole.tui import theme
from ddconsole.tui.complete import OWN_DEEDS, Tabs, own_word
from ddconsole.tui.draw.preview import preview_lines, refusal_lines
from ddconsole.tui.messages import Accepted, Doubled, Foreseen, PasteCut, PlanCommand, Refused, RunCommand
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.doubles import about_doubles
from ddconsole.tui.text import styled, wrap, wrap_words
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.timer import Timer

    from ddconsole.runner.intents import Plan
    from ddconsole.tui.messages import Wish
    from ddconsole.tui.screens.subject import Desk

EXAMPLES = (
    "add b=16 B=26", "after b=16 B=match", "sweep B=8..32:8", "edit E16 B=32", "hold E17", "move E17 top", "undo",
    "help", "quit",
)  # fmt: skip

PAUSE_S = 0.12
"""Seconds without a key before what stands there is looked up."""

CHROME = 6
"""Lines of the dialog that are not the preview: its border, the line, and what stays in sight above it."""

FRAME = 6
"""Cells of the dialog that are not the preview: border, padding, and the colon."""

MEMORY = 100
"""Lines that the arrow keys can bring back."""

MOST_CHOICES = 40
"""Completions that are shown."""


class CommandLine(ModalScreen[str | None]):
    """Sends the line up and waits for the answer; dismissed when it is accepted. A word that only the console
    understands, such as `quit`, is what it dismisses with.

    Args:
        desk: looks up what is known of other experiments, and what stands in the queue.
        text: what stands there at first.
        lines: what was entered before, the newest last; the screen adds to it.
        items: experiments of the queue's document, to complete ids from.
        cut: what was left out of a paste that `text` comes from.
    """

    CSS_PATH = "command.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "go back"),
        Binding("up", "older", "the line before", show=False),
        Binding("down", "newer", "the next line", show=False),
        Binding("tab", "complete", "complete", priority=True, show=False),
        Binding("ctrl+o", "offer", "take what is offered", priority=True, show=False),
    ]
    AUTO_FOCUS = "#line"

    def __init__(
        self,
        desk: Desk,
        text: str = "",
        lines: list[str] | None = None,
        items: Sequence[Mapping[str, Any]] = (),
        cut: PasteCut | None = None,
    ) -> None:
        super().__init__()
        self._desk = desk
        self._seen = desk.revision()
        self._text = text
        self._lines = lines if lines is not None else []
        self._items = items
        self._cut = cut
        self._at = len(self._lines)
        self._draft = text
        self._pause: Timer | None = None
        self._plan: Plan | None = None
        self._idea: str | None = None
        self._token = uuid.uuid4().hex
        self._waiting = False
        self._answered: str | None = None
        self._tabs = Tabs()

    def compose(self) -> ComposeResult:
        """The line, what it could become, and what is said about it."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = "COMMAND"
            dialog.border_subtitle = "enter takes it · tab completes · ↑ earlier lines · esc goes back"
            with Horizontal(id="entry"):
                yield Static(styled(":", f"bold {theme.ACCENT}"), id="colon")
                yield OneLine(self._text, id="line")
            yield Static("", id="choices")
            with VerticalScroll(id="answer", can_focus=False):
                yield Static("", id="said")

    def on_mount(self) -> None:
        """What stands there already is looked up at once."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._look()
        if self._cut is not None:
            self._say_cut(self._cut)

    # --- while it is typed

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if not self._tabs.goes_on(event.value):
            self._tabs.end()
            self._show_choices(())
        if self._waiting:
            return
        self._plan = self._idea = self._answered = None
        self._token = uuid.uuid4().hex
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self._look)

    def _look(self) -> None:
        text = self._line.value
        word = own_word(text)
        if self._waiting or text == self._answered:
            return
        if word is not None:
            self._say([styled("→ ", theme.ACCENT) + styled(OWN_DEEDS[word.split()[0]])])
        elif text.strip():
            self.post_message(PlanCommand(self, text))
        else:
            self._say(wrap([styled(example, theme.MUTED) for example in EXAMPLES], self._width, "   "))

    @on(Foreseen)
    def _foreseen(self, message: Foreseen) -> None:
        message.stop()
        text = message.intent.text
        if text != self._line.value or text == self._answered or self._waiting:
            return
        found = message.found
        if isinstance(found, SpecRefusal):
            self._idea = found.idea or words_in(text)
            self._say(refusal_lines(found.reason, found.advice, found.cursor, self._idea, self._width, quiet=True))
        elif isinstance(found, Refusal):
            self._say(refusal_lines(found.reason, "", None, None, self._width, quiet=True))
        else:
            self._plan = found
            self._say(preview_lines(found, self._width, self._room, self._desk.describe))

    def action_complete(self) -> None:
        """Write on as far as it is clear; then show what there is, and go round it."""
        line = self._line
        text = None if self._waiting else self._tabs.press(line.value[: line.cursor_position], self._items)
        if text is not None:
            line.value, line.cursor_position = text, len(text)
            self._show_choices(self._tabs.choices, self._tabs.at)

    def _show_choices(self, found: Sequence[str], at: int = -1) -> None:
        parts = [styled(word, theme.ACCENT if place == at else theme.MUTED) for place, word in enumerate(found)]
        lines = wrap(parts[:MOST_CHOICES], self._width)
        choices = self.query_one("#choices", Static)
        choices.update(Content("\n").join(lines))
        choices.display = bool(lines)

    # --- taking it

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        word = own_word(event.value)
        if word is None:
            self._send(event.value)
        elif self.is_current:
            self.dismiss(word)

    def action_offer(self) -> None:
        """Keep the words as an idea, or take the line with the control that it lacks."""
        if self._idea is not None:
            self._send(f"idea {shlex.quote(self._idea)}")
        elif self._plan is not None and self._plan.preview.control is not None:
            self._send(self._line.value, "control")

    def _send(self, text: str, wish: Wish = "ask") -> None:
        """Once: further presses of enter wait for the answer."""
        if self._waiting:
            return
        self._waiting = True
        self._remember(self._line.value)
        self._say([styled("…", theme.MUTED)])
        self.post_message(RunCommand(self, text, self._seen, wish, self._token))

    @on(Accepted)
    def _accepted(self, message: Accepted) -> None:
        message.stop()
        if self.is_current:
            self.dismiss(None)
        self._desk.taken(message)

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        self._waiting, self._answered = False, self._line.value
        if message.code == "stale":
            self._seen = self._desk.revision()
        self._idea = message.idea or (words_in(self._line.value) if message.column is not None else None)
        self._say(refusal_lines(message.what, message.advice, message.column, self._idea, self._width))

    @on(Doubled)
    def _doubled(self, message: Doubled) -> None:
        """Ask; going back keeps the line and shows what it would come to."""
        message.stop()
        intent, plan = message.intent, message.plan
        assert isinstance(intent, RunCommand)
        self._plan = plan
        self._say(preview_lines(plan, self._width, self._room, self._desk.describe))

        def answered(answer: str | None) -> None:
            self._waiting = False
            if answer in ("again", "new"):
                self._send(intent.text, "again" if answer == "again" else "new")

        self.app.push_screen(Confirm(about_doubles(plan, self._desk.describe, back="line")), answered)

    @on(PasteCut)
    def _say_cut(self, message: PasteCut) -> None:
        self._show_choices(wrap_words(f"⚠ {message.words}", self._width, 2), 0)

    # --- earlier lines

    def action_older(self) -> None:
        """The line before."""
        if self._at == len(self._lines):
            self._draft = self._line.value
        self._recall(self._at - 1)

    def action_newer(self) -> None:
        """The next line; behind the newest stands what was being typed."""
        self._recall(self._at + 1)

    def _recall(self, at: int) -> None:
        if 0 <= at <= len(self._lines) and not self._waiting:
            self._at = at
            self._line.value = self._lines[at] if at < len(self._lines) else self._draft
            self._line.cursor_position = len(self._line.value)

    def _remember(self, text: str) -> None:
        if text.strip() and self._lines[-1:] != [text]:
            self._lines.append(text)
            del self._lines[:-MEMORY]
        self._at = len(self._lines)

    # --- what is said

    @property
    def _line(self) -> Input:
        return self.query_one("#line", Input)

    @property
    def _width(self) -> int:
        return max(20, self.size.width - FRAME)

    @property
    def _room(self) -> int:
        return max(4, self.size.height - CHROME)

    def _say(self, lines: list[Content]) -> None:
        self.query_one("#said", Static).update(Content("\n").join(lines))

    def action_close(self) -> None:
        """Back, without doing anything."""
        if self.is_current:
            self.dismiss(None)


def words_in(text: str) -> str | None:
    """A sentence that cannot even be split, as one with an apostrophe, may be kept as an idea all the same."""
    return text.strip() if "=" not in text and len(text.split()) >= 3 else None
