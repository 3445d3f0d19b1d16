"""The header line: where we are, how the line is, what runs, what comes. What does not fit is left out by its worth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content

from ddconsole.core.events import parse_utc
from ddconsole.tui import theme
from ddconsole.tui.draw.stage import Mark, line_mark, work_mark
from ddconsole.tui.facts import was_reached
from ddconsole.tui.formats import about, time_of_day
from ddconsole.tui.text import fit_content, join, styled

if TYPE_CHECKING:
    from datetime import tzinfo

    from ddconsole.runner.feed import View


@dataclass(frozen=True, slots=True)
class Place:
    """Where this console stands: facts that do not change while it runs."""

    profile: str
    engine: str
    zone: tzinfo | None = None


def header(view: View, place: Place, *, owns_run: bool, width: int) -> Content:
    """One line of exactly `width` cells."""
    parts = [
        (1, styled("ddconsole", f"bold {theme.ACCENT}")),
        (0, _host(view, place)),
        (4, _engine(view, place)),
        (0, _work(view)),
        (2, _queue(view, place)),
        (3, _watching(view, owns_run)),
    ]
    kept = [(rank, part) for rank, part in parts if part.cell_length]
    rule = styled(" ─ ", theme.FAINT)
    while True:
        line = rule.join([part for _, part in kept])
        worst = max(rank for rank, _ in kept)
        if line.cell_length + 2 <= width or worst == 0:
            return fit_content(Content(" ") + line, width)
        kept = [(rank, part) for rank, part in kept if rank != worst]


def _work(view: View) -> Content:
    """What runs; and that nothing follows it, where the queue is paused."""
    mark = work_mark(view)
    paused = bool(view.queue.get("paused")) and mark.word != "paused"
    return _mark(mark) + styled(" ‖ paused" if paused else "", theme.WARN)


def _mark(mark: Mark) -> Content:
    return styled(f"{mark.glyph} ", mark.style) + styled(mark.word, mark.style)


def _host(view: View, place: Place) -> Content:
    mark = line_mark(view)
    parts = [styled(place.profile, theme.STRONG), styled(mark.glyph, mark.style)]
    if view.connection is not None and view.connection.rtt_ms is not None and view.connection.state == "connected":
        parts.append(styled(f"{view.connection.rtt_ms:.0f} ms", theme.MUTED))
    elif mark.word:
        parts.append(styled(mark.word, mark.style))
    return join(parts, " ")


def _engine(view: View, place: Place) -> Content:
    version = view.ready.engine_version if view.ready is not None else None
    if version is None:
        known = (item.get("engine_version") for item in reversed(view.results))
        version = next((one for one in known if one), None)
    return styled(f"{place.engine} {version}" if version else place.engine, theme.MUTED)


def _queue(view: View, place: Place) -> Content:
    items = view.queue.get("items") or []
    queued = [item for item in items if item.get("state") == "queued"]
    if not queued:
        held = sum(item.get("state") == "held" for item in items)
        return styled(f"queue: all {held} held" if held else "queue empty", theme.MUTED)
    text = f"queue {len(queued)}"
    estimates = [float(item["estimate_s"]) for item in queued if item.get("estimate_s") is not None]
    if len(estimates) == len(queued):
        text += f" · {about(sum(estimates))}"
    ends = ends_at(view)
    if ends is not None and view.running is not None and not view.queue.get("paused") and was_reached(view):
        text += f", done {time_of_day(ends, place.zone)}"
    return styled(text)


def ends_at(view: View) -> datetime | None:
    """When the queue is expected to be done."""
    ends = view.queue.get("ends_at")
    if isinstance(ends, datetime):
        return ends
    return parse_utc(ends) if isinstance(ends, str) and ends else None


def _watching(view: View, owns_run: bool) -> Content:
    """A badge for a console that only looks on."""
    if view.running is None or owns_run:
        return Content("")
    return styled(f"◎ watching: run by pid {view.running.pid}", theme.WARN)
