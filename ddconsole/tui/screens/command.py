"""`:`, one line of the queue's language: what it would come to is shown while it is typed, enter takes it.

A refusal stands in place, a caret under its column, the text kept. Work that is there already is asked about.
"""

from __future__ import annotations

import shlex
import uuid
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.core.queue import Refusal
from ddconsole.core.spec import SpecRefusal
from ddconsole.tui import theme
from ddconsole.tui.draw.preview import preview_lines, refusal_lines
from ddconsole.tui.messages import Accepted, Doubled, Foreseen, PasteCut, PlanCommand, Refused, RunCommand
from ddconsole.tui.screens.confirm import Confirm, Question
from ddconsole.tui.text import styled
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.timer import Timer

    from ddconsole.runner.intents import Plan
    from ddconsole.tui.messages import Wish

EXAMPLES = "add b=16 B=26   after b=16 B=match   sweep B=8..32:8   edit E16 B=32   hold E17   move E17 top   undo"

PAUSE_S = 0.12
"""Seconds without a key before what stands there is looked up."""

CHROME = 6
"""Lines of the dialog that are not the preview: its border, the line, and what stays in sight above it."""

FRAME = 6
"""Cells of the dialog that are not the preview: border, padding, and the colon."""

MEMORY = 100
"""Lines that the arrow keys can bring back."""


class CommandLine(ModalScreen[None]):
    """Sends the line up and waits for the answer; dismissed when it is accepted.

    Args:
        seen: the queue's revision that the user looks at.
        text: what stands there at first.
        lines: what was entered before, the newest last; the screen adds to it.
        describe: what is known of an experiment that is there already.
    """

    CSS_PATH = "command.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "go back"),
        Binding("up", "older", "the line before", show=False),
        Binding("down", "newer", "the next line", show=False),
        Binding("ctrl+o", "offer", "take what is offered", priority=True, show=False),
    ]
    AUTO_FOCUS = "#line"

    def __init__(
        self,
        seen: int | None,
        text: str = "",
        lines: list[str] | None = None,
        describe: Callable[[str], str] = lambda _: "",
    ) -> None:
        super().__init__()
        self._seen = seen
        self._text = text
        self._lines = lines if lines is not None else []
        self._at = len(self._lines)
        self._draft = text
        self._describe = describe
        self._pause: Timer | None = None
        self._plan: Plan | None = None
        self._idea: str | None = None
        self._token = uuid.uuid4().hex
        self._waiting = False
        self._answered: str | None = None

    def compose(self) -> ComposeResult:
        """The line, and what is said about it."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = "COMMAND"
            dialog.border_subtitle = "enter takes it · ↑ earlier lines · esc goes back"
            with Horizontal(id="entry"):
                yield Static(styled(":", f"bold {theme.ACCENT}"), id="colon")
                yield OneLine(self._text, id="line")
            with VerticalScroll(id="answer", can_focus=False):
                yield Static(styled(EXAMPLES, theme.MUTED), id="said")

    def on_mount(self) -> None:
        """What stands there already is looked up at once."""
        if self._text:
            self._look()

    # --- while it is typed

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._waiting:
            return
        self._plan = self._idea = self._answered = None
        self._token = uuid.uuid4().hex
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_S, self._look)

    def _look(self) -> None:
        text = self._line.value
        if text.strip():
            self.post_message(PlanCommand(self, text))
        else:
            self._say([styled(EXAMPLES, theme.MUTED)])

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
            self._say(preview_lines(found, self._width, self._room, self._describe))

    # --- taking it

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self._send(event.value)

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
        if message.notice:
            self.app.notify(message.notice, markup=False)
        if self.is_current:
            self.dismiss()

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        self._waiting, self._answered = False, self._line.value
        self._idea = message.idea or (words_in(self._line.value) if message.column is not None else None)
        self._say(refusal_lines(message.what, message.advice, message.column, self._idea, self._width))

    @on(Doubled)
    def _doubled(self, message: Doubled) -> None:
        """Ask; going back keeps the line and shows what it would come to."""
        message.stop()
        intent, plan = message.intent, message.plan
        self._plan = plan
        self._say(preview_lines(plan, self._width, self._room, self._describe))

        def answered(answer: str | None) -> None:
            self._waiting = False
            if answer in ("again", "new"):
                self._send(intent.text, "again" if answer == "again" else "new")

        self.app.push_screen(Confirm(about_doubles(plan, self._describe)), answered)

    @on(PasteCut)
    def _cut(self, message: PasteCut) -> None:
        more = "1 more line was" if message.dropped == 1 else f"{message.dropped} more lines were"
        self.app.notify(f"{more} left out", severity="warning", markup=False)

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
            self.dismiss()


def words_in(text: str) -> str | None:
    """A sentence that cannot even be split, as one with an apostrophe, may be kept as an idea all the same."""
    return text.strip() if "=" not in text and len(text.split()) >= 3 else None


def about_doubles(plan: Plan, describe: Callable[[str], str]) -> Question:
    """What is there already, with its result; and what can be done about it."""
    doubles = [double for double in plan.preview.doubles if double is not None]
    new = len(plan.preview.new)
    named = [f"{double.id} {double.state}" + (f" ({known})" if (known := describe(double.id)) else "")
             for double in doubles[:4]]  # fmt: skip
    more = f", and {len(doubles) - 4} more" if len(doubles) > 4 else ""
    answers = [("back", "b", "go back to the line"), ("again", "y", "queue it all the same")]
    if new:
        answers.insert(1, ("new", "n", f"queue only what is new ({new} of {new + len(doubles)})"))
    return Question("The same work is there already", ", ".join(named) + more, tuple(answers))
