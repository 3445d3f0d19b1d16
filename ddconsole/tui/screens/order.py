"""`o`: other orders for the queue, each with what it saves. Nothing is changed until one is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from ddconsole.runner.intents import OrderPlan
from ddconsole.tui.draw.order import order_lines
from ddconsole.tui.widgets.choice import Choice
from ddconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

WAYS = {"restarts": "fewest starts", "information": "most telling first", "drift": "an anchor between"}
"""What the orders are for, in words."""


class OrderScreen(ModalScreen[OrderPlan | None]):
    """Dismisses with the order that is taken, or with None. `way` is the one to begin with."""

    CSS_PATH = "order.tcss"
    AUTO_FOCUS = "#way"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "go back"),
        Binding("enter", "take", "take it"),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
    ]

    def __init__(self, orders: tuple[OrderPlan, ...], way: str = "") -> None:
        super().__init__()
        self._orders = {WAYS[order.proposal.by]: order for order in orders}
        self._first = WAYS.get(way) or next(iter(self._orders))

    def compose(self) -> ComposeResult:
        """What it is for, and what that comes to."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = "ORDER"
            dialog.border_subtitle = "enter takes it · ← → another · esc changes nothing"
            yield Choice(tuple(self._orders), (self._first,), id="way")
            with VerticalScroll(id="proposal", can_focus=False):
                yield Lines(lambda width: order_lines(self._order, width), id="lines")

    @property
    def _order(self) -> OrderPlan:
        return self._orders[self.query_one("#way", Choice).chosen[0]]

    @on(Choice.Changed)
    def _show(self) -> None:
        self.query_one(Lines).refresh(layout=True)

    def action_scroll(self, by: int) -> None:
        """Through a long one."""
        self.query_one("#proposal").scroll_relative(y=by, animate=False)

    def action_take(self) -> None:
        """Take it, where there is something to take."""
        if self.is_current and self._order.proposal.edit is not None:
            self.dismiss(self._order)

    def action_close(self) -> None:
        """Back, without doing anything."""
        if self.is_current:
            self.dismiss(None)
