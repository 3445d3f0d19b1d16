"""An order that could be accepted, in lines: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.tui import theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.formats import about
from ddconsole.tui.text import fit_content, join, styled, wrap_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.content import Content

    from ddconsole.runner.intents import OrderPlan

NONE_LINES = 4
"""Lines for why there is nothing to propose."""


def order_lines(order: OrderPlan, width: int) -> list[Content]:
    """What it saves, then the experiments in the order in which they would run; what moves or is new is marked."""
    if order.proposal.edit is None:
        said = order.proposal.none or "the queue is in this order already"
        return [styled(line, theme.MUTED) for line in wrap_words(said, width, NONE_LINES)]
    before = {id_: place for place, id_ in enumerate(order.proposal.before, start=1)}
    rows = [
        _row(place, before.get(str(item["id"])), item, order.proposal.why.get(str(item["id"]), ""))
        for place, item in enumerate(order.items, start=1)
    ]
    return [fit_content(line, width).rstrip() for line in (_saving(order), *rows)]


def _saving(order: OrderPlan) -> Content:
    proposal = order.proposal
    added = len(proposal.drafts)
    new = f"{added} short {'repeat' if added == 1 else 'repeats'} of the anchor, " if added else ""
    counts = f"{new}{proposal.boots_before} engine starts become {proposal.boots_after}"
    if not order.saved_s:
        return styled("→ ", theme.ACCENT) + styled(f"{counts}: no time is saved or lost")
    verb, tone = ("saves", theme.GOOD) if order.saved_s > 0 else ("costs", theme.WARN)
    return styled("→ ", theme.ACCENT) + styled(f"{counts}: ") + styled(f"{verb} {about(abs(order.saved_s))}", tone)


def _row(place: int, before: int | None, item: Mapping[str, Any], why: str) -> Content:
    moved = "+ " if before is None else "  " if place == before else ("↑ " if place < before else "↓ ")
    parts = [
        styled(f"{place:>3} ", theme.MUTED)
        + styled(moved, theme.ACCENT)
        + styled(str(item["id"]).ljust(4), theme.STRONG),
        draw_config.line(item.get("config") or {}, item.get("effective"), gap=" ", caps=False),
        styled(why, theme.MUTED),
    ]
    return join([part for part in parts if part.cell_length], "  ")
