"""What a connection has to ask, over whatever is on the screen: masked, never kept, and escape is always an answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ddconsole.core.ports.ask import Asked
from ddconsole.tui.text import clean, styled

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App, ComposeResult

    from ddconsole.core.ports.ask import Question

CALL_KEY = "ctrl+o"
"""Opens a question that waits."""


class AskScreen(ModalScreen[str | None]):
    """Dismisses with the answer, or with None when it was cancelled."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel"),
        Binding("ctrl+q", "cancel", "cancel", show=False, priority=True),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Why it is asked, and the field or the two answers."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = clean(self._question.title)
            dialog.border_subtitle = "esc cancels"
            if self._question.lines:
                yield Static(styled("\n".join(map(clean, self._question.lines))), id="text")
            yield Static(styled(clean(self._question.prompt)), id="prompt")
            if self._question.kind is Asked.HOST_KEY:
                yield OptionList(
                    Option(styled("no, do not connect"), id="no"),
                    Option(styled("yes, it is: record it and go on"), id="yes"),
                    id="answers",
                )
            else:
                yield Input(password=self._question.secret, id="answer", select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self._give(event.value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click."""
        self._give("yes" if event.option.id == "yes" else None)

    def action_cancel(self) -> None:
        """No answer."""
        self._give(None)

    def _give(self, answer: str | None) -> None:
        """Give it once, and leave nothing of it on the screen."""
        for field in self.query(Input):
            field.clear()
        if self.is_current:
            self.dismiss(answer)


class ScreenAsker:
    """The `Asker` of the screen. The first connection's questions come up by themselves; after it stands, or after one
    was cancelled, a question waits behind the badge until `call` opens it.

    `on_waiting` is told what is waited for.
    """

    can_ask = True

    def __init__(self) -> None:
        self._app: App[object] | None = None
        self._quiet = False
        self._turn = asyncio.Lock()
        self._called = asyncio.Event()
        self.on_waiting: Callable[[Question], None] = lambda question: None

    def attach(self, app: App[object]) -> None:
        """Ask on this app from now on."""
        self._app = app

    def settled(self) -> None:
        """From now on a question must not interrupt."""
        self._quiet = True

    def call(self) -> bool:
        """Open the question that waits; False when none does."""
        waits = self._turn.locked()
        self._called.set()
        return waits

    async def ask(self, question: Question) -> str | None:
        """The answer; None when it was cancelled. A question whose connection has ended meanwhile disappears."""
        async with self._turn:
            if self._app is None:
                return None
            if self._quiet:
                self._called.clear()
                self.on_waiting(question)
                await self._called.wait()
            answer = await self._show(self._app, question)
            self._quiet = self._quiet or answer is None
            return answer

    async def _show(self, app: App[object], question: Question) -> str | None:
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        screen = AskScreen(question)

        def take(answer: str | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        app.call_later(app.push_screen, screen, take)
        try:
            return await answered
        except asyncio.CancelledError:
            app.call_later(_withdraw, screen)
            raise


def _withdraw(screen: AskScreen) -> None:
    """Nobody waits for the answer any more."""
    if screen.is_current:
        screen.dismiss(None)
