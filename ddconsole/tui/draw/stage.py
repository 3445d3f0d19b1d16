"""In one word: where the work stands. Header and panels say it alike, with a glyph, so that colour only repeats it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.tui import theme

if TYPE_CHECKING:
    from ddconsole.runner.feed import View

PHASE_WORDS = {
    "preflight": "preflight",
    "launch": "launch",
    "init": "init",
    "load_target": "target",
    "load_draft": "draft",
    "kv": "kv",
    "graphs": "graphs",
    "warmup": "warm-up",
    "ready": "ready",
    "stop": "stop",
}
"""Phases as the screen calls them; a pass is called by its own name."""

DOING_WORDS = {
    "preflight": "checking",
    "launch": "launching",
    "init": "starting",
    "load_target": "loading",
    "load_draft": "loading",
    "kv": "loading",
    "graphs": "capturing graphs",
    "warmup": "warming up",
    "ready": "proving",
    "stop": "stopping",
}

OUTCOME_MARKS = {
    "passed": ("✔", theme.GOOD),
    "wrong": ("⚠", theme.WARN),
    "failed": ("✘", theme.BAD),
    "cancelled": ("⊘", theme.MUTED),
    "interrupted": ("↺", theme.WARN),
}
"""Glyph and style of an attempt's outcome."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A glyph, a word and a style that say the same."""

    glyph: str
    word: str
    style: str


LINE_MARKS = {
    "connecting": Mark("◌", "connecting", theme.WARN),
    "waiting": Mark("?", "needs an answer: ctrl+o", theme.WARN),
    "connected": Mark("●", "", theme.GOOD),
    "unreachable": Mark("✘", "cannot connect", theme.BAD),
    "lost": Mark("✘", "line lost", theme.BAD),
    "closed": Mark("○", "closed", theme.MUTED),
}


def line_mark(view: View) -> Mark:
    """The state of the line to the host."""
    if view.connection is None:
        return Mark("○", "not connected", theme.MUTED)
    return LINE_MARKS.get(view.connection.state, Mark("○", view.connection.state, theme.MUTED))


def work_mark(view: View) -> Mark:
    """What the queue's work is at."""
    if view.experiment is None or (view.finished is not None and view.running is None):
        return _idle_mark(view)
    if view.finished is not None:
        glyph, style = OUTCOME_MARKS.get(view.finished.outcome, ("✔", theme.MUTED))
        return Mark(glyph, f"{view.id} {view.finished.outcome}", style)
    return Mark("▶", f"{view.id} {doing(view)}", theme.ACCENT)


def _idle_mark(view: View) -> Mark:
    if view.queue.get("paused"):
        return Mark("‖", "paused", theme.WARN)
    if view.running is not None:
        return Mark("▷", "waiting", theme.MUTED)
    return Mark("■", "idle", theme.MUTED)


def doing(view: View) -> str:
    """What the running attempt is doing, as one word."""
    if any(one.seconds is None for one in view.passes.values()):
        return "measuring"
    phase = current_phase(view)
    if phase is None:
        return "measuring" if view.passes else "starting"
    return "measuring" if phase.startswith("pass:") else DOING_WORDS.get(phase, phase)


def current_phase(view: View) -> str | None:
    """The phase that has started last and has not ended."""
    return next((name for name, phase in reversed(view.phases.items()) if phase.state == "started"), None)


def is_booting(view: View) -> bool:
    """The attempt is under way and no pass has begun yet."""
    return view.experiment is not None and view.finished is None and view.ready is None and not view.passes
