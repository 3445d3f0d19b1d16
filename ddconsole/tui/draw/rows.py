"""Queue and results as rows of cells: pure, so that a table only has to lay them side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textual.content import Content

from ddconsole.tui import theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.draw.stage import OUTCOME_MARKS
from ddconsole.tui.formats import DASH, about_short, delta, number
from ddconsole.tui.text import Align, join, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.runner.feed import View

WAITING = ("running", "queued", "held", "idea")
"""States that the queue's panel shows."""


GAP = "  "
"""Between two columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `width` in cells; 0 takes what is left, and at least `least`."""

    key: str
    title: str
    width: int
    align: Align = "left"
    least: int = 0


Layout = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its id, which never changes, and a cell for each column's key.

    Attributes:
        dim: muted, for what will not run.
        text, text_from: a text in place of all cells from that column on.
    """

    id: str
    cells: dict[str, Content]
    dim: bool = False
    text: Content | None = None
    text_from: str = ""


def fitting(layouts: Sequence[Layout], width: int) -> list[tuple[Column, int]]:
    """The columns of the first layout that fits into `width`, with their cells; `GAP` stands between two."""
    layout = next((one for one in layouts if _least(one) <= width), layouts[-1])
    fixed = sum(column.width for column in layout) + len(GAP) * (len(layout) - 1)
    flexible = sum(column.width == 0 for column in layout)
    spare = max(width - fixed, 0)
    return [(column, column.width or spare // flexible) for column in layout]


NEVER_CUT = ("id", "b", "B", "K", "W")
"""Columns that grow with what stands in them: half a number is a wrong one."""


def widened(layouts: Sequence[Layout], rows: Sequence[Row]) -> tuple[Layout, ...]:
    """The layouts with room for every id and every knob of these rows."""
    longest = {
        key: max((len(row.cells[key].plain) for row in rows if key in row.cells), default=0) for key in NEVER_CUT
    }
    return tuple(
        tuple(replace(column, width=max(column.width, longest.get(column.key, 0))) for column in layout)
        for layout in layouts
    )


def _least(layout: Layout) -> int:
    return sum(column.width or column.least for column in layout) + len(GAP) * (len(layout) - 1)


ID = Column("id", "", 4)
ALGORITHM = Column("algorithm", "", 5)
BLOCK, BUDGET = Column("b", "b", 2, "right"), Column("B", "B", 3, "right")
TOPK, WINDOW = Column("K", "K", 2, "right"), Column("W", "W", 4, "right")
NOTES = Column("notes", "", 0, least=14)
ESTIMATE = Column("estimate", "est.", 6, "right")
SPEED, TAU = Column("tok_s", "tok/s", 5, "right"), Column("tau", "τ", 4, "right")
CODING = Column("coding", "code", 4, "right")
VERSUS, CHANGE = Column("vs", "vs chain, boots", 15, "right"), Column("change", "vs", 6, "right")
TIGHT = Column("vs_tight", "vs %, boots", 13, "right")

QUEUE_LAYOUTS: tuple[Layout, ...] = (
    (ID, ALGORITHM, BLOCK, BUDGET, TOPK, WINDOW, NOTES, ESTIMATE),
    (ID, ALGORITHM, BLOCK, BUDGET, TOPK, NOTES),
    (ID, ALGORITHM, BLOCK, BUDGET, NOTES),
    (ID, ALGORITHM, BLOCK, BUDGET),
)
"""The queue's columns, from the fullest to the barest."""

RESULT_LAYOUTS: tuple[Layout, ...] = (
    (ID, ALGORITHM, BLOCK, BUDGET, TOPK, WINDOW, SPEED, TAU, CODING, VERSUS),
    (ID, ALGORITHM, BLOCK, BUDGET, TOPK, SPEED, TAU, CODING, VERSUS),
    (ID, ALGORITHM, BLOCK, BUDGET, SPEED, TAU, CODING, VERSUS),
    (ID, ALGORITHM, BLOCK, BUDGET, SPEED, TAU, CODING, TIGHT),
    (ID, ALGORITHM, BLOCK, BUDGET, SPEED, TAU, CODING, CHANGE),
    (ID, BLOCK, BUDGET, SPEED, TAU, CODING, CHANGE),
    (ID, BLOCK, BUDGET, SPEED, TAU, CHANGE),
    (ID, BUDGET, SPEED, TAU),
)
"""The results' columns. Without the algorithm's name a tree is told by its budget, a chain by its block size."""


class QueueRows:
    """Makes the rows of a queue, and keeps those of items that say what they said before: most of a thousand do."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[dict[str, Any], Row]] = {}

    def of(self, view: View) -> list[Row]:
        """What runs and what waits, in the order in which it will run."""
        before, self._made = self._made, {}
        for item in view.queue.get("items") or []:
            if item.get("state") in WAITING:
                seen = item | {"rank": None}  # a row does not show it, and one move changes that of a thousand
                kept = before.get(str(item.get("id")))
                row = kept[1] if kept is not None and kept[0] == seen else _queue_row(item)
                self._made[row.id] = (seen, row)
        return [row for _, row in self._made.values()]


def queue_rows(view: View) -> list[Row]:
    """The rows of a queue, all of them made anew."""
    return QueueRows().of(view)


def _queue_row(item: Mapping[str, Any]) -> Row:
    state = str(item.get("state"))
    config, effective = item.get("config") or {}, item.get("effective")
    tone = {"running": f"bold {theme.ACCENT}", "held": theme.MUTED, "idea": theme.MUTED}.get(state, "")
    cells = {
        "id": styled(item.get("id"), tone or theme.STRONG),
        "algorithm": styled(config.get("algorithm", ""), tone),
        "notes": _queue_notes(item, state),
        "estimate": styled(_estimate(item, state), theme.MUTED),
    }
    for name, key in draw_config.KNOBS:
        cells[name] = styled(draw_config.knob_text(config, effective, key), tone)
    words = join([styled("idea", theme.MUTED), styled(item.get("note") or "", theme.MUTED)], "   ")
    idea = state == "idea"
    return Row(str(item.get("id")), cells, state in ("held", "idea"), words if idea else None, "algorithm")


def _estimate(item: Mapping[str, Any], state: str) -> str:
    if state == "idea":
        return ""
    return DASH if item.get("estimate_s") is None else about_short(float(item["estimate_s"]))


def _queue_notes(item: Mapping[str, Any], state: str) -> Content:
    """Its state in a word, its sweep, what preflight would say, and the user's own note: the short ones first.

    Beside a note a warning is its sign alone: the details say it in words.
    """
    parts: list[Content] = []
    if item.get("base") == "best" and state in ("queued", "held"):
        parts.append(styled("base=best", theme.ACCENT))
    if state == "running":
        parts.append(styled("▶ running", theme.ACCENT))
    elif state == "held":
        parts.append(styled("‖ held", theme.WARN))
    note = str(item.get("note") or "")
    sweep = styled(item.get("sweep") or "", theme.MUTED)
    repeats = styled(f"×{item['repeats']}", theme.MUTED) if int(item.get("repeats") or 1) > 1 else Content("")
    grave = [finding for finding in item.get("findings") or [] if finding.get("level") != "note"]
    found = [_finding(finding, short=bool(note)) for finding in grave]
    extras = draw_config.extras(item.get("config") or {})
    told = styled(f"“{note}”", theme.MUTED) if note else Content("")
    return join([part for part in (*parts, sweep, repeats, *found, told, extras) if part.cell_length], " ")


def _finding(finding: Mapping[str, Any], *, short: bool) -> Content:
    glyph, style = ("✘", theme.BAD) if finding.get("level") == "block" else ("⚠", theme.WARN)
    return styled(glyph if short else f"{glyph} {finding.get('text', '')}", style)


def result_rows(view: View) -> list[Row]:
    """Finished attempts, newest first."""
    return [_result_row(item) for item in reversed(view.results)]


def _result_row(item: Mapping[str, Any]) -> Row:
    outcome = str(item.get("outcome"))
    config, effective = item.get("config") or {}, item.get("effective")
    cells = {
        "id": styled(item.get("id"), theme.STRONG),
        "algorithm": styled(config.get("algorithm", "")),
        "tok_s": _figure(number(item.get("tok_s_e2e"), 1)),
        "tau": _figure(number(item.get("tau"), 2)),
        "coding": _coding(item.get("coding")),
        "vs": _versus(item.get("vs_reference")),
        "vs_tight": _versus_tight(item.get("vs_reference")),
        "change": _versus(item.get("vs_reference"), short=True),
    }
    for name, key in draw_config.KNOBS:
        cells[name] = styled(draw_config.knob_text(config, effective, key))
    measured = outcome in ("passed", "wrong")
    text = None if measured else _without_numbers(item, outcome)
    return Row(f"{item.get('id')}/{item.get('attempt')}", cells, not measured, text, "tok_s")


def _without_numbers(item: Mapping[str, Any], outcome: str) -> Content:
    """Why there are none."""
    glyph, style = OUTCOME_MARKS.get(outcome, ("", theme.MUTED))
    cause = (item.get("failure") or {}).get("cause")
    return styled(f"{glyph} {outcome}", style) + styled(f"  {cause}" if cause else "", theme.MUTED)


def _figure(text: str) -> Content:
    return styled(text, theme.MUTED if text == DASH else "")


def _coding(value: Mapping[str, Any] | None) -> Content:
    if not value or value.get("total") is None:
        return styled(DASH, theme.MUTED)
    passed, total = value.get("passed"), value.get("total")
    if passed == total:
        return styled(f"{passed}/{total}")
    return styled(f"⚠{passed}/{total}", theme.WARN)


def _versus(value: Mapping[str, Any] | None, *, short: bool = False) -> Content:
    """The change against the reference with the boots of both; muted when it is within its noise, and says nothing.

    The short one has no room for boots: the details have them, with the finding in words.
    """
    if not value or value.get("delta_pct") is None:
        return styled(DASH, theme.MUTED)
    told = delta(float(value["delta_pct"]), None if short else value.get("ci_pct"))
    return styled(told, _tone(value)) + styled("" if short else _boots(value), theme.MUTED)


def _versus_tight(value: Mapping[str, Any] | None) -> Content:
    """The same without blanks and sign: `-7.8±3.1 1+3`; in whole per cents where that is too long."""
    if not value or value.get("delta_pct") is None:
        return styled(DASH, theme.MUTED)
    change, interval, boots = float(value["delta_pct"]), value.get("ci_pct"), _boots(value)
    fine, coarse = (
        f"{change:+.{digits}f}" + ("" if interval is None else f"±{float(interval):.{digits}f}") for digits in (1, 0)
    )
    return styled(fine if len(fine + boots) <= TIGHT.width else coarse, _tone(value)) + styled(boots, theme.MUTED)


def _tone(value: Mapping[str, Any]) -> str:
    change, interval = float(value["delta_pct"]), value.get("ci_pct")
    clear = interval is not None and abs(change) > float(interval)
    return (theme.GOOD if change > 0 else theme.BAD) if clear else theme.MUTED


def _boots(value: Mapping[str, Any]) -> str:
    return " {}+{}".format(*value["boots"]) if value.get("boots") else ""
