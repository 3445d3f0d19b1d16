"""The form to add, copy or edit an experiment. A refusal is shown in place; what was typed is never lost."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Change, Draft, Refusal
from ddconsole.runner.intents import Plan
from ddconsole.tui import form, theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.draw.preview import standing_lines
from ddconsole.tui.facts import PASSES
from ddconsole.tui.form_help import about_field
from ddconsole.tui.formats import number
from ddconsole.tui.messages import Accepted, Doubled, Foreseen, PasteCut, PlanCommand, Refused, TakeForm
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.doubles import about_doubles
from ddconsole.tui.text import join, styled
from ddconsole.tui.widgets.choice import Choice
from ddconsole.tui.widgets.lines import Lines
from ddconsole.tui.widgets.one_line import OneLine

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import DescendantFocus, Key
    from textual.timer import Timer
    from textual.widget import Widget

    from ddconsole.core.queue import Edit
    from ddconsole.tui.facts import ProfileFacts
    from ddconsole.tui.screens.subject import Desk, Subject

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

PAUSE_S = 0.12
"""Seconds without a key before the work is looked up."""

ROOMY = 60
"""Cells of a screen from which the defaults stand beside the ranges."""

ALGORITHMS = ("tree", "chain", "off")

A_COPY_ANSWERS = ("running", "ended", "removed", "stale", "unknown-id")
"""Words of the refusals that a new experiment of the same values gets around."""


class QueueForm(ModalScreen[None]):
    """Posts a TakeForm and waits for the answer: gone when accepted, open with the reason when refused.

    Args:
        subject: what it is about: a new experiment, a copy, or one that waits.
        desk: looks up what is known of other experiments, and what stands in the queue now.
    """

    CSS_PATH = "queue_form.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "go back"),
        Binding("ctrl+s,ctrl+enter", "submit", "take it", priority=True),
        Binding("ctrl+n", "submit_as_new", "queue it as a new one", priority=True),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(self, profile: ProfileFacts, subject: Subject, desk: Desk) -> None:
        super().__init__()
        self._profile = profile
        self._subject = subject
        self._desk = desk
        self._seen = desk.revision()
        self._intent = uuid.uuid4().hex
        self._waiting = False
        self._asked = ""
        self._pause: Timer | None = None

    def compose(self) -> ComposeResult:
        """A line a field: name, value, range or reason; then what the focused one means, and what all of it is."""
        with VerticalScroll(id="dialog", can_focus=False) as dialog:
            dialog.border_title = self._subject.title
            dialog.border_subtitle = "enter takes it · ↑ ↓ fields · esc goes back"
            for name, label in LABELS.items():
                with Horizontal(id=f"row-{name}", classes="row"):
                    yield Static(styled(label), classes="name")
                    yield self._field(name)
                    yield Static("", id=f"hint-{name}", classes="hint")
            yield Lines(lambda width: [], id="about")
            yield Static("", id="preview")
            yield Static("", id="work")
            yield Static("", id="answer")

    def _field(self, name: str) -> Widget:
        typed = self._subject.typed
        if name == "algorithm":
            return Choice(ALGORITHMS, (typed.algorithm,), id=name)
        if name == "passes":
            names = tuple(dict.fromkeys((*self._profile.passes, *typed.passes, *PASSES)))
            return Choice(names, typed.passes, several=True, id=name)
        return OneLine(typed.note if name == "note" else typed.numbers[name], id=name)

    def on_mount(self) -> None:
        """Begin at the first knob that matters, and show what the values mean."""
        self.query_one(f"#{form.first_field(self._subject.typed, self._profile.knobs)}").focus()
        self._look()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what the field means that has the focus."""
        if event.widget.id in LABELS:
            about = partial(about_field, event.widget.id, self._profile.knobs, self._profile.trained)
            self.query_one("#about", Lines).show(about)
            self.query_one("#about").display = True

    @property
    def typed(self) -> form.Typed:
        """What stands in the form now."""
        return form.Typed(
            algorithm=self.query_one("#algorithm", Choice).chosen[0],
            numbers={name: self.query_one(f"#{name}", Input).value for name in form.NUMBERS},
            passes=self.query_one("#passes", Choice).chosen,
            note=self.query_one("#note", Input).value,
            args=self._subject.typed.args,
        )

    # --- while it is filled in

    @on(Input.Changed)
    @on(Choice.Changed)
    def _look(self) -> None:
        """Say for each field what may stand there, or what is wrong; and what the engine would run."""
        typed = self.typed
        read = form.read(typed, self._profile.knobs)
        used = form.used_by(typed.algorithm)
        for name in form.NUMBERS:
            self.query_one(f"#row-{name}").set_class(name not in used, "-unused")
            hint = form.hint(self._profile.knobs, name, short=self.app.size.width < ROOMY)
            self._hint(name, read.problems.get(name), hint)
        self.query_one("#preview", Static).update(self._preview(read))
        self._look_up(form.as_line(read, self._profile.knobs, self._subject.edited))

    def _look_up(self, line: str) -> None:
        """What it costs and whether it is there already: asked for when no key has come for a moment."""
        if line == self._asked:
            return
        self._asked = line
        if self._pause is not None:
            self._pause.stop()
        self.query_one("#work", Static).update("")
        if line:
            self._pause = self.set_timer(PAUSE_S, lambda: self.post_message(PlanCommand(self, line)))

    @on(Foreseen)
    def _foreseen(self, message: Foreseen) -> None:
        message.stop()
        found, work = message.found, self.query_one("#work", Static)
        if message.intent.text != self._asked:
            return
        if isinstance(found, Plan):
            work.update(Content("\n").join(standing_lines(found, work.content_size.width, self._desk.describe)))
        elif isinstance(found, Refusal) and found.code in A_COPY_ANSWERS:
            work.update(styled(f"⚠ {found.reason}", theme.WARN))

    def _hint(self, name: str, problem: str | None, plain: str) -> None:
        content = styled(plain, theme.MUTED) if problem is None else styled(f"✘ {problem}", theme.BAD)
        self.query_one(f"#hint-{name}", Static).update(content)

    def _preview(self, read: form.Read) -> Content:
        if read.config is None or read.effective is None:
            name, problem = next(iter(read.problems.items()))
            return styled(f"✘ {LABELS[name]}: {problem}", theme.BAD)
        parts = [
            draw_config.line(read.config.to_json(), read.effective.to_json(), gap=" "),
            styled(f"N {read.effective.verify_width}", theme.MUTED),
        ]
        if read.config.density is not None:
            parts.append(styled(f"B/L {number(read.config.density, 2)}", theme.MUTED))
        return styled("→ ", theme.ACCENT) + join(parts, "  ")

    # --- taking it

    def key_enter(self, event: Key) -> None:
        """Enter takes the form, in a field and on a choice alike, and once."""
        event.stop()
        event.prevent_default()
        self.action_submit()

    def action_submit(self) -> None:
        """Send the edit up, once; a form with a problem stays and shows it."""
        self._send(self._subject.edited)

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
        line = form.as_line(read, self._profile.knobs, edited)
        self._post(TakeForm(self, self._as_edit(read, edited), line, self._seen))

    def _post(self, intent: TakeForm) -> None:
        self._waiting = True
        self._answer(styled("…", theme.MUTED))
        self.post_message(intent)

    def _as_edit(self, read: form.Read, edited: str | None) -> Edit:
        if edited is not None:
            # What was typed is meant: nothing of it is bound to the best result at start any more.
            return Change(
                edited, read.config, passes=read.passes, repeats=read.repeats, note=read.note, base_best=False
            )
        draft = Draft(read.config, passes=read.passes, repeats=read.repeats, note=read.note)
        origin = Origin("clone", after=self._subject.source) if self._subject.source else Origin("add")
        return Add((draft,), origin, intent=self._intent)

    @on(Accepted)
    def _accepted(self, message: Accepted) -> None:
        message.stop()
        if self.is_current:
            self.dismiss()
        self._desk.taken(message)

    @on(Doubled)
    def _doubled(self, message: Doubled) -> None:
        """Ask; going back keeps the form as it is."""
        message.stop()
        intent = message.intent
        assert isinstance(intent, TakeForm)

        def answered(answer: str | None) -> None:
            self._waiting = False
            self._answer(Content(""))
            if answer == "again":
                self._post(TakeForm(self, intent.edit, intent.line, self._seen, "again"))

        self.app.push_screen(
            Confirm(about_doubles(message.plan, self._desk.describe, back="form", some=False)), answered
        )

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        self._waiting = False
        lines = [styled("✘ ", theme.BAD) + styled(message.what, theme.BAD)]
        if message.advice:
            lines.append(styled("→ ", theme.ACCENT) + styled(message.advice))
        edited = self._subject.edited
        if edited is not None and message.code in A_COPY_ANSWERS:
            lines.append(styled("→ ", theme.ACCENT) + styled("ctrl+n queues this as a new experiment instead"))
        if edited is not None and message.code == "stale":
            self._seen = self._desk.revision()
            item = self._desk.item(edited)
            now = draw_config.line(item.get("config") or {}, item.get("effective"), gap=" ")
            lines.append(styled("→ now it is ", theme.ACCENT) + now + styled("; enter again puts yours in its place"))
        self._answer(Content("\n").join(lines))

    @on(PasteCut)
    def _cut(self, message: PasteCut) -> None:
        self._answer(styled(f"⚠ {message.words}", theme.WARN))

    def _answer(self, content: Content) -> None:
        said = content.plain not in ("", "…")
        self.query_one("#answer", Static).update(content)
        self.query_one("#about").display = not said

    def action_close(self) -> None:
        """Back, without doing anything."""
        if self.is_current:
            self.dismiss()
