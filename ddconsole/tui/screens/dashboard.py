"""The dashboard: everything of the running work in sight, and the queue under one's fingers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Container

from ddconsole.core.queue import Hold, Move, Redo, Release, Remove, Undo
from ddconsole.tui import facts, keys
from ddconsole.tui.burst import PATIENCE_S, Burst
from ddconsole.tui.draw.preview import result_words
from ddconsole.tui.messages import (
    Accepted,
    CancelRunning,
    EditQueue,
    LeaveConsole,
    PauseQueue,
    Refused,
    StartQueue,
)
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import CANCEL, QUIT, Confirm
from ddconsole.tui.screens.details import Details
from ddconsole.tui.screens.find import Find
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.panels import TABS, PanelScreen
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.widgets.gpu_panel import GpuPanel
from ddconsole.tui.widgets.header_line import HeaderLine
from ddconsole.tui.widgets.key_bar import KeyBar
from ddconsole.tui.widgets.log_pane import LogPane
from ddconsole.tui.widgets.running_panel import RunningPanel
from ddconsole.tui.widgets.tab_strip import TabStrip
from ddconsole.tui.widgets.table import Table
from ddconsole.tui.widgets.tables import QueueTable, ResultTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from ddconsole.core.queue import Edit
    from ddconsole.runner.feed import View
    from ddconsole.tui.draw.header import Place
    from ddconsole.tui.facts import Moment, ProfileFacts
    from ddconsole.tui.live import Panel


class Dashboard(PanelScreen):
    """Owns what is selected and what can be done with it; gets the view from the bridge and sends intents up."""

    CSS_PATH = "dashboard.tcss"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings()
    AUTO_FOCUS = "#queue"

    def __init__(self, profile: ProfileFacts, place: Place, owns_run: Callable[[], bool], burst: Burst) -> None:
        super().__init__()
        self._profile = profile
        self._owns_run = owns_run
        self._view: View | None = None
        self._table = QueueTable(owns_run)
        self._bar = KeyBar()
        self._panels = (
            HeaderLine(place, owns_run),
            RunningPanel(id="running"),
            GpuPanel(id="gpus"),
            self._table,
            ResultTable(profile.remark, profile.short_remark),
            LogPane(),
        )
        self._burst = burst
        self._lines: list[str] = []

    def compose(self) -> ComposeResult:
        """Header, five panels, and the keys."""
        header, running, *others = self._panels
        yield header
        with Container(id="body"):
            yield running
            yield TabStrip(TABS)
            yield from others
        yield self._bar

    def live_panels(self) -> tuple[Panel, ...]:
        """All of them; those that are hidden wait."""
        return self._panels

    # --- values come down

    def flush(self, view: View, now: datetime, *, second: bool = False) -> None:
        """Hand the view to the panels, and tell the keys what can be done."""
        self._view = view
        super().flush(view, now, second=second)
        self._bar.show(self.moment)

    @property
    def moment(self) -> Moment:
        """What decides which actions can be done."""
        if self._view is None:
            return facts.Moment()
        return facts.moment(
            self._view, owns_run=self._owns_run(), selected=self._selected, marked=len(self._table.marked)
        )

    @property
    def _selected(self) -> dict[str, Any] | None:
        return self._table.selected_item

    @on(Table.Picked, "#queue")
    def _other_row(self) -> None:
        self._bar.show(self.moment)

    # --- intents go up

    def action_do(self, action_id: str) -> None:
        """Carry out an action of the table, or say why not."""
        action = keys.BY_ID[action_id]
        why_not = action.why_not(self.moment)
        if why_not is not None:
            self.say(why_not)
        elif action.sudden:
            self.set_timer(PATIENCE_S, partial(self._do_if_typed, action_id, self._burst.last))
        else:
            getattr(self, f"do_{action_id}")()

    def _do_if_typed(self, action_id: str, at: float) -> None:
        """Carry a sudden action out, unless its key was one of many that came at once."""
        if self._burst.crowded(at):
            self.say("keys came faster than fingers (a paste?): nothing was started, stopped or removed")
        else:
            getattr(self, f"do_{action_id}")()

    def say(self, sentence: str, *, severe: bool = False) -> None:
        """A message that cannot be overlooked."""
        self.app.notify(sentence, severity="error" if severe else "warning", markup=False)

    def _edit(self, edit: Edit) -> None:
        self.post_message(EditQueue(self, edit, self.moment.revision))

    def do_add(self) -> None:
        """The form with the profile's defaults."""
        self.app.push_screen(QueueForm.for_new(self._profile, self.moment.revision))

    def do_clone(self) -> None:
        """The form with the selected one's values."""
        if self._selected is not None:
            self.app.push_screen(QueueForm.for_copy(self._profile, self._selected, self.moment.revision))

    def do_edit(self) -> None:
        """The form for the selected one."""
        if self._selected is not None:
            self.app.push_screen(QueueForm.for_edit(self._profile, self._selected, self.moment.revision))

    def do_move_up(self) -> None:
        """Let it run earlier."""
        self._edit(Move(self._ids, "up"))

    def do_move_down(self) -> None:
        """Let it run later."""
        self._edit(Move(self._ids, "down"))

    def do_hold(self) -> None:
        """Hold, or release what is held."""
        states = [self._table.item(id_).get("state") for id_ in self._ids]
        held = all(state in ("held", "idea") for state in states)
        wanted = tuple(
            id_ for id_, state in zip(self._ids, states, strict=True) if state != "idea" and (state == "held") is held
        )
        self._edit(Release(wanted) if held else Hold(wanted))

    def do_remove(self) -> None:
        """Take it out of the queue."""
        self._edit(Remove(self._ids))

    def do_mark(self) -> None:
        """Mark it or take the mark back, and go on to the next."""
        id_ = self._table.selected
        if id_ is not None:
            self._table.mark(frozenset({*self._table.marked} ^ {id_}))
            self._table.action_step(1)
            self._bar.show(self.moment)

    def do_details(self) -> None:
        """All that is known of it."""
        if self._selected is not None and self._view is not None:
            self.app.push_screen(Details(self._selected, self._view.results))

    def do_find(self) -> None:
        """Narrow the queue, or jump to an id."""
        self.zoomed, self.tab = ("queue" if self.zoomed else ""), "queue"
        self.app.push_screen(Find(self._table.words, self._table.narrow), self._found)

    def _found(self, text: str | None) -> None:
        id_ = (text or "").strip().upper()
        if self._table.has(id_):
            self._table.narrow("")
            self._table.pick(id_)
        self._table.focus()

    def do_back(self) -> None:
        """The whole picture: first without marks and with all rows, then with every panel."""
        if self._table.marked or self._table.words:
            self._table.mark(frozenset())
            self._table.narrow("")
            self._bar.show(self.moment)
        else:
            super().do_back()

    def do_undo(self) -> None:
        """Take the last edit back."""
        self.post_message(EditQueue(self, Undo()))

    def do_redo(self) -> None:
        """Do it again."""
        self.post_message(EditQueue(self, Redo()))

    @property
    def _ids(self) -> tuple[str, ...]:
        """What a key acts on: all that are marked, else the selected one."""
        return self._table.marked or (self._table.selected or "",)

    def do_command(self, text: str = "") -> None:
        """One line of the queue's language."""
        self.app.push_screen(CommandLine(self.moment.revision, text, self._lines, self._describe))

    def _describe(self, id_: str) -> str:
        return result_words(self._view.results, id_) if self._view is not None else ""

    def do_start(self) -> None:
        """Start, or go on."""
        self.post_message(StartQueue(self))

    def do_pause(self) -> None:
        """Start nothing new."""
        self.post_message(PauseQueue(self))

    def do_cancel(self) -> None:
        """Ask, then stop the running experiment."""
        running = self.moment.running_id

        def answered(answer: str | None) -> None:
            if answer == "cancel":
                self.post_message(CancelRunning(self))

        self.app.push_screen(Confirm(CANCEL.about(running or "")), answered)

    def do_quit(self) -> None:
        """Ask whether the engine stays, when there may be one of ours."""

        def answered(answer: str | None) -> None:
            if answer in ("keep", "stop"):
                self.post_message(LeaveConsole(self, keep_engine=answer == "keep"))

        if self._owns_run():
            self.app.push_screen(Confirm(QUIT.about(self.moment.running_id or "")), answered)
        else:
            self.post_message(LeaveConsole(self, keep_engine=True))

    def do_help(self) -> None:
        """Every key."""
        self.app.push_screen(Help(self.moment, self._profile.remark))

    @on(KeyBar.Pressed)
    def _key_clicked(self, message: KeyBar.Pressed) -> None:
        self.action_do(message.action_id)

    # --- answers come back

    @on(Accepted)
    def _accepted(self, message: Accepted) -> None:
        message.stop()
        if message.notice:
            self.app.notify(message.notice, markup=False)

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        self.say(f"{message.what}\n{message.advice}" if message.advice else message.what, severe=True)

    def on_paste(self, event: events.Paste) -> None:
        """Text that is pasted onto the dashboard becomes a command to look at, never keys."""
        event.stop()
        lines = [line for line in event.text.splitlines() if line.strip()]
        if lines:
            self.do_command(lines[0])
        if len(lines) > 1:
            self.say(f"the paste had {len(lines)} lines; only the first was taken")
