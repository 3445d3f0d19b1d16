"""The form to add, copy or edit an experiment. A refusal is shown in place; what was typed is never lost."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Change, Draft
from ddconsole.tui import form, theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.formats import number
from ddconsole.tui.messages import Accepted, EditQueue, PasteCut, Refused
from ddconsole.tui.text import clean, join, styled
from ddconsole.tui.widgets.choice import Choice
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from ddconsole.core.queue import Edit
    from ddconsole.tui.facts import ProfileFacts

LABELS = {
    "algorithm": "algorithm",
    "block_size": "block size b",
    "budget": "budget B",
    "topk": "topk K",
    "window": "window W",
    "passes": "passes",
    "repeats": "repeats",
    "note": "note",
}
"""Fields in the form's order, with their names."""

ALGORITHMS = ("tree", "chain", "off")


class QueueForm(ModalScreen[None]):
    """Posts an EditQueue and waits for the answer: gone when accepted, open with the reason when refused.

    `edited` is the id that is changed, or None for a new experiment.
    """

    CSS_PATH = "queue_form.tcss"
    AUTO_FOCUS = "#algorithm"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "go back"),
        Binding("ctrl+s,ctrl+enter", "submit", "take it", priority=True),
        Binding("ctrl+n", "submit_as_new", "queue it as a new one", priority=True),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        profile: ProfileFacts,
        typed: form.Typed,
        title: str,
        *,
        seen: int | None,
        origin: Origin,
        edited: str | None,
    ) -> None:
        super().__init__()
        self._profile = profile
        self._typed = typed
        self._title = title
        self._seen = seen
        self._origin = origin
        self._edited = edited
        self._intent = uuid.uuid4().hex
        self._waiting = False

    @classmethod
    def for_new(cls, profile: ProfileFacts, seen: int | None) -> QueueForm:
        """A new experiment, from the profile's defaults."""
        typed = form.defaults(profile.knobs, profile.passes)
        return cls(profile, typed, "ADD AN EXPERIMENT", seen=seen, origin=Origin("add"), edited=None)

    @classmethod
    def for_copy(cls, profile: ProfileFacts, item: dict[str, Any], seen: int | None) -> QueueForm:
        """A new experiment, from another one's values."""
        typed = form.of_item(item, profile.knobs, profile.passes)
        name = clean(item.get("id"))
        origin = Origin("clone", after=name)
        return cls(profile, typed, f"ADD A COPY OF {name}", seen=seen, origin=origin, edited=None)

    @classmethod
    def for_edit(cls, profile: ProfileFacts, item: dict[str, Any], seen: int | None) -> QueueForm:
        """A waiting experiment's values."""
        typed = form.of_item(item, profile.knobs, profile.passes)
        name = clean(item.get("id"))
        return cls(profile, typed, f"EDIT {name}", seen=seen, origin=Origin("clone", after=name), edited=name)

    def compose(self) -> ComposeResult:
        """A line a field: name, value, range or reason."""
        with VerticalScroll(id="dialog") as dialog:
            dialog.border_title = self._title
            dialog.border_subtitle = "enter takes it · esc goes back"
            for name, label in LABELS.items():
                with Horizontal(id=f"row-{name}", classes="row"):
                    yield Static(styled(label), classes="name")
                    yield self._field(name)
                    yield Static("", id=f"hint-{name}", classes="hint")
            yield Static("", id="preview")
            yield Static("", id="answer")

    def _field(self, name: str) -> Widget:
        if name == "algorithm":
            return Choice(ALGORITHMS, (self._typed.algorithm,), id=name)
        if name == "passes":
            names = tuple(dict.fromkeys((*self._profile.passes, *self._typed.passes)))
            return Choice(names, self._typed.passes, several=True, id=name)
        return OneLine(self._typed.note if name == "note" else self._typed.numbers[name], id=name)

    def on_mount(self) -> None:
        """Show what the values mean."""
        self._look()

    @property
    def typed(self) -> form.Typed:
        """What stands in the form now."""
        return form.Typed(
            algorithm=self.query_one("#algorithm", Choice).chosen[0],
            numbers={name: self.query_one(f"#{name}", Input).value for name in form.NUMBERS},
            passes=self.query_one("#passes", Choice).chosen,
            note=self.query_one("#note", Input).value,
            args=self._typed.args,
        )

    @on(Input.Changed)
    @on(Choice.Changed)
    def _look(self) -> None:
        """Say for each field what may stand there, or what is wrong; and what the engine would run."""
        typed = self.typed
        read = form.read(typed, self._profile.knobs)
        used = form.used_by(typed.algorithm)
        for name in form.NUMBERS:
            self.query_one(f"#row-{name}").set_class(name not in used, "-unused")
            self._hint(name, read.problems.get(name), form.hint(self._profile.knobs, name))
        self._hint("passes", read.problems.get("passes"), "")
        self.query_one("#preview", Static).update(self._preview(read))

    def _hint(self, name: str, problem: str | None, plain: str) -> None:
        content = styled(plain, theme.MUTED) if problem is None else styled(f"✘ {problem}", theme.BAD)
        self.query_one(f"#hint-{name}", Static).update(content)

    def _preview(self, read: form.Read) -> Content:
        if read.config is None or read.effective is None:
            return styled("✘ not yet: see above", theme.BAD)
        parts = [
            draw_config.line(read.config.to_json(), read.effective.to_json(), gap=" "),
            styled(f"N {read.effective.verify_width}", theme.MUTED),
        ]
        if read.config.density is not None:
            parts.append(styled(f"B/L {number(read.config.density, 2)}", theme.MUTED))
        return styled("→ ", theme.ACCENT) + join(parts, "  ")

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_submit()

    def key_enter(self) -> None:
        """Enter on a choice takes the form as well."""
        self.action_submit()

    def action_submit(self) -> None:
        """Send the edit up, once; a form with a problem stays and shows it."""
        self._send(self._edited)

    def action_submit_as_new(self) -> None:
        """Queue it as a new experiment, when the edited one has started meanwhile."""
        self._send(None)

    def _send(self, edited: str | None) -> None:
        read = form.read(self.typed, self._profile.knobs)
        if self._waiting:
            return
        if read.config is None:
            self.query_one(f"#{next(iter(read.problems))}").focus()
            return
        self._waiting = True
        self._answer(styled("…", theme.MUTED))
        self.post_message(EditQueue(self, self._as_edit(read, edited), self._seen))

    def _as_edit(self, read: form.Read, edited: str | None) -> Edit:
        if edited is not None:
            # What was typed is meant: nothing of it is bound to the best result at start any more.
            return Change(
                edited, read.config, passes=read.passes, repeats=read.repeats, note=read.note, base_best=False
            )
        draft = Draft(read.config, passes=read.passes, repeats=read.repeats, note=read.note)
        return Add((draft,), self._origin, intent=self._intent)

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
        lines = [styled("✘ ", theme.BAD) + styled(message.what, theme.BAD)]
        if message.advice:
            lines.append(styled("→ ", theme.ACCENT) + styled(message.advice))
        if self._edited is not None:
            lines.append(styled("→ ", theme.ACCENT) + styled("ctrl+n queues this as a new experiment instead"))
        self._answer(Content("\n").join(lines))

    @on(PasteCut)
    def _cut(self, message: PasteCut) -> None:
        more = "1 more line was" if message.dropped == 1 else f"{message.dropped} more lines were"
        self._answer(styled(f"⚠ {more} left out", theme.WARN))

    def _answer(self, content: Content) -> None:
        answer = self.query_one("#answer", Static)
        answer.update(content)
        answer.scroll_visible(animate=False)

    def action_close(self) -> None:
        """Back, without doing anything."""
        if self.is_current:
            self.dismiss()
