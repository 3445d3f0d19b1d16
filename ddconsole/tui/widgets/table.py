"""A table whose cursor keeps to an id. It draws only the rows in sight, and repaints only when something differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from ddconsole.tui.draw.rows import GAP, Layout, Row, fitting, widened
from ddconsole.tui.live import Panel
from ddconsole.tui.text import fit, fit_content, wrap_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

CURSOR, MARK = "▸", "•"
"""What stands before a row: cursor and mark are signs, not only colours."""

LEAD = "  "
"""The room for both."""


class Table(Panel, ScrollView, can_focus=True):
    """Rows under fixed columns. Values come by `show_rows`; `Picked` goes up when the cursor is on another id."""

    ALLOW_MAXIMIZE = False
    STAYS_ON_TOP: ClassVar[bool] = False
    """New rows come in above: a cursor at the top that nobody uses stays there."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--cursor", "table--head", "table--empty", "table--dim"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "up", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "step(-1000000)", "first", show=False),
        Binding("end", "step(1000000)", "last", show=False),
    ]

    @dataclass
    class Picked(Message):
        """The cursor stands on another row, or on none."""

        table: Table
        id: str | None

        @property
        def control(self) -> Table:
            """The table."""
            return self.table

    def __init__(self, layouts: Sequence[Layout], *, id: str, empty: str = "") -> None:  # noqa: A002
        super().__init__(id=id)
        self._layouts = self._shown = tuple(layouts)
        self._rows: list[Row] = []
        self._cursor = 0
        self._empty = empty
        self._marked: frozenset[str] = frozenset()

    @property
    def marked(self) -> tuple[str, ...]:
        """Ids of the marked rows, in their order."""
        return tuple(row.id for row in self._rows if row.id in self._marked)

    def mark(self, ids: frozenset[str]) -> None:
        """Mark these rows, and no others."""
        if ids != self._marked:
            self._marked = ids
            self.refresh()

    @property
    def selected(self) -> str | None:
        """The id under the cursor."""
        return self._rows[self._cursor].id if self._rows else None

    @property
    def head_lines(self) -> int:
        """Lines above the rows."""
        return 1

    def show_rows(self, rows: list[Row], empty: str | None = None) -> None:
        """Take the rows in; the cursor stays with its id, or at its place when that is gone."""
        if empty is not None and empty != self._empty:
            self._empty = empty
            self.refresh()
        if _same(rows, self._rows):
            return
        before = self.selected
        self._rows, self._shown = rows, widened(self._layouts, rows)
        places = {row.id: place for place, row in enumerate(rows)}
        if not (self.STAYS_ON_TOP and self._cursor == 0 and not self.has_focus):
            self._cursor = places.get(before or "", min(self._cursor, max(len(rows) - 1, 0)))
        self.virtual_size = Size(self.content_size.width, len(rows) + self.head_lines)
        self._keep_in_sight()
        self.refresh()
        if self.selected != before:
            self.post_message(self.Picked(self, self.selected))

    def pick(self, id_: str) -> None:
        """Put the cursor on an id, if it is there."""
        for place, row in enumerate(self._rows):
            if row.id == id_:
                self._go_to(place)

    def action_step(self, by: int) -> None:
        """Move the cursor by rows."""
        self._go_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by what is in sight."""
        self._go_to(self._cursor + by * max(1, self.content_size.height - self.head_lines))

    def _go_to(self, place: int) -> None:
        place = min(max(place, 0), max(len(self._rows) - 1, 0))
        if place != self._cursor:
            self._cursor = place
            self._keep_in_sight()
            self.refresh()
            self.post_message(self.Picked(self, self.selected))

    def _keep_in_sight(self) -> None:
        """Scroll as little as needed to have the cursor on the screen."""
        room = max(1, self.content_size.height - self.head_lines)
        top = round(self.scroll_y)
        if self._cursor < top:
            top = self._cursor
        elif self._cursor >= top + room:
            top = self._cursor - room + 1
        if top != round(self.scroll_y):
            self.scroll_to(y=top, animate=False, immediate=True)

    def on_resize(self, _: events.Resize) -> None:
        """The columns are laid out anew."""
        self.virtual_size = Size(self.content_size.width, len(self._rows) + self.head_lines)
        self._keep_in_sight()
        self.refresh()

    def on_focus(self) -> None:
        """The cursor looks stronger with the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """And weaker without."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor on a row."""
        offset = event.get_content_offset(self)
        if offset is not None and self._rows and offset.y >= self.head_lines:
            place = offset.y - self.head_lines + round(self.scroll_y)
            if place < len(self._rows):
                self._go_to(place)

    def render_line(self, y: int) -> Strip:
        """One line of the panel."""
        width = self.content_size.width
        if y < self.head_lines and self._rows:
            return self._strip(self._head(width), "table--head", width)
        if not self._rows:
            return self._strip(self._empty_line(y, width), "table--empty", width)
        place = y - self.head_lines + round(self.scroll_y)
        if place >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        return self._strip(*self._row(place, width), width)

    def _row(self, place: int, width: int) -> tuple[Content, str]:
        row, here = self._rows[place], place == self._cursor
        cells: list[Content] = []
        for column, cell in fitting(self._shown, width - len(LEAD)):
            if row.text is not None and column.key == row.text_from:
                cells.append(row.text)
                break
            cells.append(fit_content(row.cells.get(column.key, Content("")), cell, column.align))
        lead = (CURSOR if here else " ") + (MARK if row.id in self._marked else " ")
        line = Content.styled(lead, "bold $accent") + Content(GAP).join(cells)
        return line, "table--cursor" if here and self.has_focus else ("table--dim" if row.dim else "")

    def _head(self, width: int) -> Content:
        titles = [fit(column.title, cell, column.align) for column, cell in fitting(self._shown, width - len(LEAD))]
        return Content(LEAD + GAP.join(titles))

    def _empty_line(self, y: int, width: int) -> Content:
        room = self.content_size.height
        said = wrap_words(self._empty, width - 2, room)
        index = y - max(0, (room - len(said)) // 2)
        return Content(said[index].center(width)) if 0 <= index < len(said) else Content("")

    def _strip(self, line: Content, component: str, width: int) -> Strip:
        style = self.visual_style
        if component:
            style += self.get_visual_style(component)
        strips = Visual.to_strips(self, fit_content(line, width), width, 1, style, pad=True, apply_selection=False)
        return strips[0] if strips else Strip.blank(width)


def _same(some: list[Row], others: list[Row]) -> bool:
    """Whether two lists of rows look the same."""
    return len(some) == len(others) and all(map(_same_row, some, others))


def _same_row(one: Row, other: Row) -> bool:
    return one is other or (
        one.id == other.id
        and one.dim == other.dim
        and one.cells.keys() == other.cells.keys()
        and _same_text(one.text, other.text)
        and all(cell.is_same(other.cells[key]) for key, cell in one.cells.items())
    )


def _same_text(one: Content | None, other: Content | None) -> bool:
    return one is other or (one is not None and other is not None and one.is_same(other))
