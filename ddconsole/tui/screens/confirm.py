"""A question before something that cannot be undone. Going back is the answer of escape, and of a stray enter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ddconsole.tui.text import clean, styled

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Key


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the answers as (id, key, sentence). The first answer goes back."""

    title: str
    text: str
    answers: tuple[tuple[str, str, str], ...]

    def about(self, name: str) -> Question:
        """The question with a name filled in."""
        return replace(self, text=self.text.replace("{}", clean(name)) if name else "")


CANCEL = Question(
    "Cancel the running experiment?",
    "{} is stopped and recorded as cancelled. Its finished passes are kept.",
    (("back", "b", "go back"), ("cancel", "y", "cancel it")),
)

QUIT = Question(
    "Leave the console?",
    "{} is interrupted and goes back to the front of the queue.",
    (
        ("back", "b", "go back"),
        ("keep", "k", "leave, and keep the engine running"),
        ("stop", "s", "leave, and stop the engine"),
    ),
)


class Confirm(ModalScreen[str]):
    """Dismisses with the id of the answer."""

    CSS_PATH = "confirm.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer('back')", "go back"),
        Binding("ctrl+q", "answer('back')", "go back", show=False, priority=True),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = self._question.title
            if self._question.text:
                yield Static(Content("\n").join(map(styled, self._question.text.splitlines())), id="text")
            yield OptionList(
                *(
                    Option(styled(key, "bold $accent") + styled(f"  {text}"), id=id_)
                    for id_, key, text in self._question.answers
                ),
                id="answers",
            )

    def on_key(self, event: Key) -> None:
        """The key of an answer gives it, and means nothing else: the screen below has that key too."""
        for id_, key, _ in self._question.answers:
            if event.character == key:
                event.stop()
                event.prevent_default()
                self.action_answer(id_)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click."""
        self.action_answer(event.option.id or "back")

    def action_answer(self, answer: str) -> None:
        """Give it, once."""
        if self.is_current:
            self.dismiss(answer)
