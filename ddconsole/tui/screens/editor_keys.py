"""`E`: the marked ones in the user's editor. A text that could not be taken is offered again, and never lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import on

from ddconsole.tui.handoff import FILE, EditorFailedError, edited
from ddconsole.tui.messages import Accepted, Doubled, Refused, SheetOvertaken, SheetWritten, TakeSheet, WriteSheet
from ddconsole.tui.screens.confirm import Confirm, Question
from ddconsole.tui.screens.doubles import about_doubles
from ddconsole.tui.screens.queue_keys import QueueKeys

if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN = ("again", "e", "open it again, as you left it")
LATER = ("back", "b", "leave it for now: E offers it again")

KEPT = Question(
    "A text that was not taken is still here",
    "",
    (AGAIN, ("new", "n", "begin anew, and drop that text"), ("back", "b", "go back")),
)

PLACE = re.compile(rf"^{re.escape(FILE)}:(\d+):")
"""Where a refusal says that the mistake is."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A text on its way: as it was written out, as it stands now, and the line to begin at."""

    original: bytes
    raw: bytes
    line: int = 1


class EditorKeys(QueueKeys):
    """Writes a sheet, lends the terminal, reads it back. Only then anything is asked of the queue."""

    _draft: Draft | None = None

    def do_editor(self) -> None:
        """Write out what is marked; first ask about a text that was left."""
        if self._draft is None:
            self.post_message(WriteSheet(self, self._ids))
        else:
            self._ask(KEPT, {"again": self._open, "new": self._begin_anew})

    def _begin_anew(self) -> None:
        self._draft = None
        self.do_editor()

    @on(SheetWritten)
    def _written(self, message: SheetWritten) -> None:
        message.stop()
        raw = message.text.encode()
        self._draft = Draft(raw, raw)
        self._open()

    def _open(self) -> None:
        assert self._draft is not None
        self.run_worker(
            self._in_editor(self._draft), name="editor", group="editor", exclusive=True, exit_on_error=False
        )

    async def _in_editor(self, draft: Draft) -> None:
        try:
            raw = await edited(self.app, draft.raw, draft.line)
        except EditorFailedError as error:
            self._left(draft, error)
            return
        if raw == draft.original:
            self._draft = None
            self.say("the text came back as it was: nothing is changed", "information")
        else:
            self._draft = Draft(draft.original, raw)
            self.post_message(TakeSheet(self, raw))

    def _left(self, draft: Draft, error: EditorFailedError) -> None:
        """It ended badly: what was typed stays, if anything was."""
        raw = draft.raw if error.raw is None else error.raw
        self._draft = Draft(draft.original, raw) if raw != draft.original else None
        kept = "; E offers your text again" if self._draft is not None else ""
        self.say(f"{error.what}{kept}", "error")

    # --- answers

    def sheet_refused(self, message: Refused) -> None:
        """Say where the mistake is, and offer the text again."""
        self._point_at(message.what)
        told = f"{message.what}\n{message.advice}" if message.advice else message.what
        self._ask(Question("The text cannot be taken", told, (AGAIN, LATER)), {"again": self._open})

    def sheet_taken(self, message: Accepted) -> None:
        """It is in the queue."""
        self._draft = None
        self.taken(message)

    @on(SheetOvertaken)
    def _overtaken(self, message: SheetOvertaken) -> None:
        """Name what cannot be taken any more, and offer the rest."""
        message.stop()
        found, intent = message.found, message.intent
        without = intent.without | found.overtaken.keys()
        rest = () if found.plan is None else (("rest", "r", "take the rest, and leave these as they are"),)
        question = Question(
            f"{', '.join(found.overtaken)} cannot be edited any more",
            "\n".join(found.overtaken.values()),
            (AGAIN, *rest, LATER),
        )
        take = TakeSheet(self, intent.raw, without)
        self._ask(question, {"again": self._open, "rest": lambda: self._send(take)})

    @on(Doubled)
    def _doubled(self, message: Doubled) -> None:
        message.stop()
        intent = message.intent
        assert isinstance(intent, TakeSheet)
        question = about_doubles(message.plan, self.describe, back="queue; E offers the text again", some=False)
        take = TakeSheet(self, intent.raw, intent.without, "again")
        self._ask(question, {"again": lambda: self._send(take)})

    def _send(self, intent: TakeSheet) -> None:
        self.post_message(intent)

    def _ask(self, question: Question, answers: dict[str, Callable[[], None]]) -> None:
        def answered(answer: str | None) -> None:
            if answer in answers:
                answers[answer]()

        self.app.push_screen(Confirm(question), answered)

    def _point_at(self, what: str) -> None:
        """Where the editor begins next time."""
        found = PLACE.match(what)
        if self._draft is not None and found is not None:
            self._draft = Draft(self._draft.original, self._draft.raw, int(found.group(1)))
