"""The keys that work on the queue: what is selected, what is marked, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import on

from ddconsole.core.queue import Add, Hold, Move, Redo, Release, Remove, Retry, Undo
from ddconsole.tui import facts, form
from ddconsole.tui.draw.preview import result_words
from ddconsole.tui.messages import Accepted, EditQueue, OrdersFound, PasteCut, PlanOrders
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.details import Details
from ddconsole.tui.screens.find import Find
from ddconsole.tui.screens.order import OrderScreen
from ddconsole.tui.screens.panels import PanelScreen
from ddconsole.tui.screens.queue_form import QueueForm
from ddconsole.tui.screens.subject import Subject
from ddconsole.tui.widgets.notice_line import NoticeLine
from ddconsole.tui.widgets.tables import QueueTable, ResultTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.notifications import SeverityLevel

    from ddconsole.core.queue import Edit
    from ddconsole.runner.feed import View
    from ddconsole.runner.intents import OrderPlan
    from ddconsole.tui.facts import Moment, ProfileFacts


class QueueKeys(PanelScreen):
    """A panel screen with a queue under one's fingers. It is the `Desk` of the dialogs that it opens."""

    def __init__(self, profile: ProfileFacts, owns_run: Callable[[], bool]) -> None:
        super().__init__()
        self._profile = profile
        self._owns_run = owns_run
        self._view: View | None = None
        self._table = QueueTable(owns_run)
        self._results = ResultTable(profile.remark, profile.short_remark)
        self._notice = NoticeLine()
        self._lines: list[str] = []
        self._way = ""

    # --- what keys act on

    @property
    def moment(self) -> Moment:
        """What decides which actions can be done."""
        if self._view is None:
            return facts.Moment()
        return facts.moment(
            self._view,
            owns_run=self._owns_run(),
            selected=self._selected,
            marked=0 if self._on_results else len(self._table.marked),
            focus=self.panel,
        )

    @property
    def _on_results(self) -> bool:
        return self.panel == "results"

    @property
    def _selected(self) -> Mapping[str, Any] | None:
        """The row under the cursor; of the results while these have the focus."""
        if not self._on_results:
            return self._table.selected_item
        row = self._results.selected
        return self._table.item(row.partition("/")[0]) or None if row is not None else None

    @property
    def _ids(self) -> tuple[str, ...]:
        """What a key acts on: all that are marked, else the selected one."""
        selected = self._selected
        alone = (str(selected.get("id")),) if selected is not None else ()
        return alone if self._on_results else self._table.marked or alone

    # --- for the dialogs

    def describe(self, id_: str) -> str:
        """What is known of an experiment that is there already."""
        return result_words(self._view.results, id_) if self._view is not None else ""

    def revision(self) -> int | None:
        """The queue's revision that is on the screen."""
        return self.moment.revision

    def item(self, id_: str) -> Mapping[str, Any]:
        """An experiment as it stands in the queue's document."""
        return self._table.item(id_)

    def taken(self, answer: Accepted) -> None:
        """Say what was done, and put the cursor on it."""
        if answer.notice:
            self.say(answer.notice, "information")
        if answer.ids and isinstance(getattr(answer.intent, "edit", None), Undo | Redo | Add | Retry):
            self._table.want(answer.ids[0])

    def say(self, sentence: str, severity: SeverityLevel = "warning", stays_s: float | None = None) -> None:
        """A message that cannot be overlooked and hides no panel."""
        self._notice.say(sentence, severity, stays_s)

    def _edit(self, edit: Edit) -> None:
        self.post_message(EditQueue(self, edit, self.moment.revision))

    # --- one experiment, or all that are marked

    def do_add(self) -> None:
        """The form with the profile's defaults."""
        self.app.push_screen(QueueForm(self._profile, Subject.new(self._profile), self))

    def do_clone(self) -> None:
        """The form with the selected one's values."""
        if self._selected is not None:
            self.app.push_screen(QueueForm(self._profile, Subject.copy(self._profile, self._selected), self))

    def do_edit(self) -> None:
        """The form for the selected one."""
        if self._selected is not None:
            self.app.push_screen(QueueForm(self._profile, Subject.edit(self._profile, self._selected), self))

    def do_line(self) -> None:
        """The line that edits it, with its values; with their ids alone where several are marked."""
        ids = self._ids
        if len(ids) > 1:
            self.do_command(f"edit {' '.join(ids)} ")
        else:
            self.do_command(form.edit_line(self._table.item(ids[0]), self._profile.knobs))

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

    def do_retry(self) -> None:
        """Run a finished one again."""
        self._edit(Retry(self._ids[0]))

    def do_mark(self) -> None:
        """Mark it or take the mark back, and go on to the next."""
        id_ = self._table.selected
        if id_ is not None:
            self._table.mark(frozenset({*self._table.marked} ^ {id_}))
            self._table.action_step(1)

    def do_details(self) -> None:
        """All that is known of it."""
        if self._selected is not None and self._view is not None:
            self.app.push_screen(Details(self._selected, self._view.results))

    # --- the queue as a whole

    def do_undo(self) -> None:
        """Take the last edit back."""
        self.post_message(EditQueue(self, Undo()))

    def do_redo(self) -> None:
        """Do it again."""
        self.post_message(EditQueue(self, Redo()))

    def do_extend(self) -> None:
        """The line that gives the running one every pass that it lacks: take out what is not wanted, and enter."""
        now = self.moment
        self.do_command(f"edit {now.running_id} passes={','.join(now.passes_left)}")

    def do_command(self, text: str = "", more: int = 0) -> None:
        """One line of the queue's language, or of the console's own words; `more` lines of a paste were left out."""
        items = list(self._view.queue.get("items") or []) if self._view is not None else []

        def said(word: str | None) -> None:
            if word:
                self.do_word(*word.split()[:2])

        cut = PasteCut(more) if more else None
        self.app.push_screen(CommandLine(self, text, self._lines, items, cut), said)

    def do_word(self, word: str, *rest: str) -> None:
        """A word of the console's own, such as `quit`."""
        raise NotImplementedError

    def do_order(self) -> None:
        """Ask for orders, to look at."""
        self.post_message(PlanOrders(self))

    @on(OrdersFound)
    def _orders_found(self, message: OrdersFound) -> None:
        message.stop()

        def answered(order: OrderPlan | None) -> None:
            if order is not None and order.proposal.edit is not None:
                self.post_message(EditQueue(self, order.proposal.edit, order.revision))

        self.app.push_screen(OrderScreen(message.orders, self._way), answered)

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
        else:
            super().do_back()
