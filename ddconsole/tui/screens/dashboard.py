"""The dashboard: everything of the running work in sight, and the queue under one's fingers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container

from ddconsole.core.order import WAYS
from ddconsole.tui import keys
from ddconsole.tui.burst import PATIENCE_S, Burst
from ddconsole.tui.messages import (
    Accepted,
    CancelRunning,
    LeaveConsole,
    PauseQueue,
    Refused,
    StartQueue,
    TakeSheet,
)
from ddconsole.tui.screens.confirm import CANCEL, QUIT, Confirm
from ddconsole.tui.screens.editor_keys import EditorKeys
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.panels import TABS
from ddconsole.tui.widgets.gpu_panel import GpuPanel
from ddconsole.tui.widgets.header_line import HeaderLine
from ddconsole.tui.widgets.key_bar import KeyBar
from ddconsole.tui.widgets.log_pane import LogPane
from ddconsole.tui.widgets.running_panel import RunningPanel
from ddconsole.tui.widgets.tab_strip import TabStrip
from ddconsole.tui.widgets.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from ddconsole.runner.feed import View
    from ddconsole.tui.draw.header import Place
    from ddconsole.tui.facts import ProfileFacts
    from ddconsole.tui.live import Panel


class Dashboard(EditorKeys):
    """Gets the view from the bridge, sends intents up, and carries the actions out that are not the queue's alone."""

    CSS_PATH = "dashboard.tcss"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings()
    AUTO_FOCUS = "#queue"

    def __init__(self, profile: ProfileFacts, place: Place, owns_run: Callable[[], bool], burst: Burst) -> None:
        super().__init__(profile, owns_run)
        self._bar = KeyBar()
        self._panels = (
            HeaderLine(place, owns_run),
            RunningPanel(id="running"),
            GpuPanel(id="gpus"),
            self._table,
            self._results,
            LogPane(),
        )
        self._burst = burst

    def compose(self) -> ComposeResult:
        """Header, five panels, and a line for the keys or for what is to be said."""
        header, running, *others = self._panels
        yield header
        with Container(id="body"):
            yield running
            yield TabStrip(TABS)
            yield from others
        yield self._notice
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

    @on(Table.Picked)
    def _other_row(self) -> None:
        self._bar.show(self.moment)

    def on_descendant_focus(self) -> None:
        """Another panel, other keys."""
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
            self._do(action_id)

    def _do_if_typed(self, action_id: str, at: float) -> None:
        """Carry a sudden action out, unless its key was one of many that came at once."""
        if self._burst.crowded(at):
            self.say("keys came faster than fingers (a paste?): nothing was started, stopped or removed")
        else:
            self._do(action_id)

    def _do(self, action_id: str) -> None:
        self._notice.outdate()
        if keys.BY_ID[action_id].group == keys.QUEUE:
            self._table.stay()
        getattr(self, f"do_{action_id}")()
        self._bar.show(self.moment)

    def do_word(self, word: str, *rest: str) -> None:
        """What was typed behind `:` for the console itself."""
        if word == "order":
            self._way = rest[0] if rest else WAYS[0]
        self.action_do(word)

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

        if self._owns_run() and self.moment.engine:
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
        if isinstance(message.intent, TakeSheet):
            self.sheet_taken(message)
        else:
            self.taken(message)

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        message.stop()
        if isinstance(message.intent, TakeSheet):
            self.sheet_refused(message)
        else:
            self.say(f"{message.what} → {message.advice}" if message.advice else message.what, "error")

    def on_paste(self, event: events.Paste) -> None:
        """Text that is pasted onto the dashboard becomes a command to look at, never keys."""
        event.stop()
        lines = [line for line in event.text.splitlines() if line.strip()]
        if lines:
            self.do_command(lines[0], more=len(lines) - 1)
