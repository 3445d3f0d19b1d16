"""The one table of actions. Bindings, the bar of keys, the help, the palette and the tests all come from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.tui.facts import Moment


ENDED = ("done", "failed", "cancelled")
"""States of an experiment that can be run again."""


def _always(_: Moment) -> str | None:
    return None


def _needs_row(now: Moment) -> str | None:
    if now.selected_id is not None:
        return None
    if now.focus == "results":
        return "nothing was measured yet: w goes to the queue"
    if now.queued:
        return "nothing is selected: up and down go through the queue (w)"
    if now.revision is None:
        return "nothing is selected: the queue is still being read"
    return "nothing is selected: the queue is empty, press a to add"


def _needs_waiting(now: Moment) -> str | None:
    if now.selected_state == "running":
        return f"{now.selected_id} is running: d queues a copy, f gives it further passes, c cancels it"
    if now.selected_state in ENDED:
        return f"{now.selected_id} has ended: d queues a copy, R runs it again"
    return _needs_row(now)


def _needs_some(now: Moment) -> str | None:
    """Marked ones can be edited, or they could not have been marked."""
    return None if now.marked else _needs_waiting(now)


def _needs_config(now: Moment) -> str | None:
    if now.selected_state == "idea":
        return f"{now.selected_id} is an idea without a config: e gives it one"
    return _needs_row(now)


def _needs_held_or_queued(now: Moment) -> str | None:
    return None if now.marked else _needs_waiting(now) or _needs_config(now)


def _needs_ended(now: Moment) -> str | None:
    if now.selected_state in ENDED:
        return None
    if now.focus != "results":
        return "R runs a finished one again: choose it among the results (r)"
    return _needs_row(now) or f"{now.selected_id} is {now.selected_state}: it has not ended"


def _needs_two(now: Moment) -> str | None:
    return None if now.queued > 1 else "fewer than two are queued: there is nothing to put in order"


def _can_undo(now: Moment) -> str | None:
    return None if now.undo is not None else "nothing to undo: what has started stays as it is"


def _can_redo(now: Moment) -> str | None:
    return None if now.redo is not None else "nothing was undone"


def _can_extend(now: Moment) -> str | None:
    if now.running_id is not None and not now.passes_left:
        return f"{now.running_id} has every pass there is"
    return _can_cancel(now)


def _can_start(now: Moment) -> str | None:
    if now.other_pid is not None and not now.paused:
        return f"process {now.other_pid} runs the queue already"
    if now.owns_run and not now.paused:
        return "the queue is being run already"
    return None


def _can_pause(now: Moment) -> str | None:
    if now.paused:
        return "the queue is paused already: s goes on"
    if not now.owns_run and now.other_pid is None:
        return "nothing runs the queue: s starts it"
    return None


def _can_cancel(now: Moment) -> str | None:
    if now.running_id is None:
        return "no experiment is running"
    return None


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a user can do.

    Attributes:
        id: stable name, for key maps; `Screen.do_<id>` carries it out.
        keys: the keys, first the one that is shown; comma separated as Textual wants them.
        label: a word or two for the bar of keys; empty keeps it out of the bar.
        description: what it does, in a sentence fragment.
        tooltip: what a newcomer should know besides.
        group: heading in the help.
        why_not: the reason why it cannot be done now, or None.
        also: another action whose key stands beside this one's in the bar.
        sudden: it starts, stops or takes away; keys that come faster than fingers do not trigger it.
        short: the label where there is little room; empty for the label itself.
    """

    id: str
    keys: str
    label: str
    description: str
    tooltip: str
    group: str
    why_not: Callable[[Moment], str | None] = _always
    also: str = ""
    sudden: bool = False
    short: str = ""

    @property
    def shown_key(self) -> str:
        """The first key as people write it: `ctrl+r`, `space`, `:`."""
        first = self.keys.split(",")[0]
        return _KEY_NAMES.get(first, first)

    def binding(self) -> Binding:
        """As Textual binds it; `id` lets a key map change the key."""
        return Binding(
            self.keys, f"do('{self.id}')", self.description, id=self.id, tooltip=self.tooltip, show=bool(self.label)
        )


_KEY_NAMES = {
    "colon": ":", "slash": "/", "question_mark": "?", "equals_sign": "=", "ctrl+r": "^r", "ctrl+p": "^p",
    "ctrl+q": "^q", "escape": "esc",
}  # fmt: skip

QUEUE, RUN, LOOK, CONSOLE = "Queue", "Run", "Look", "Console"

ACTIONS: tuple[Action, ...] = (
    Action("add", "a", "add", "add an experiment", "a form with every knob, its range and default", QUEUE),
    Action("edit", "e,enter", "edit", "edit the selected one in a form", "only what has not started", QUEUE,
           _needs_waiting),
    Action("line", "equals_sign", "line", "edit it as a line", "edit E16 b=16 B=26 …; marked ones all at once",
           QUEUE, _needs_some),
    Action("editor", "E", "editor", "edit the marked ones in your editor", "one YAML document, taken as one step",
           QUEUE, _needs_some),
    Action("move_up", "K,shift+up", "", "move it up", "it keeps its id", QUEUE, _needs_some),
    Action("move_down", "J,shift+down", "move", "move it down", "it keeps its id", QUEUE, _needs_some,
           also="move_up"),
    Action("hold", "space", "hold", "hold or release it", "held ones are passed over", QUEUE, _needs_held_or_queued),
    Action("clone", "d", "duplicate", "add a copy of it, changed", "the form, filled in; of a result too", QUEUE,
           _needs_config, short="copy"),
    Action("remove", "x,delete", "remove", "remove it", "u brings it back", QUEUE, _needs_some, sudden=True),
    Action("mark", "m", "mark", "mark it, or take the mark back", "J K space x E = act on all that are marked", QUEUE,
           _needs_waiting),
    Action("undo", "u", "undo", "undo the last edit", "until it has started", QUEUE, _can_undo),
    Action("redo", "ctrl+r", "", "do again what was undone", "the inverse of u", QUEUE, _can_redo),
    Action("order", "o", "order", "look at a better order", "what it saves; nothing until you take it", QUEUE,
           _needs_two),
    Action("command", "colon", "command", "type a command", "after b=16 B=match, sweep B=8..32:8 …", QUEUE,
           short="cmd"),
    Action("start", "s", "start", "start the queue, or go on", "one runner a host", RUN, _can_start, sudden=True),
    Action("pause", "p", "pause", "start nothing new", "what runs goes on", RUN, _can_pause, sudden=True),
    Action("extend", "f", "passes", "give the running one further passes", "behind those it has", RUN, _can_extend),
    Action("cancel", "c", "cancel", "cancel the running one", "asks; it is recorded as cancelled", RUN, _can_cancel,
           sudden=True),
    Action("retry", "R", "retry", "run a finished one again", "under its id; choose it among the results", RUN,
           _needs_ended),
    Action("details", "i", "details", "all that is known of the selected one", "origin, findings, price", LOOK,
           _needs_row),
    Action("find", "slash", "find", "find in the queue: words narrow it, an id jumps to it", "esc shows all again",
           LOOK),
    Action("queue", "w", "queue", "go to the queue", "again: the whole screen, and back", LOOK),
    Action("results", "r", "results", "go to the results", "again: the whole screen, and back", LOOK),
    Action("log", "l", "log", "go to the log", "again: the whole screen, and back", LOOK),
    Action("gpus", "g", "gpus", "the GPUs on the whole screen, and back", "", LOOK),
    Action("next_panel", "tab", "", "next panel", "", LOOK),
    Action("previous_panel", "shift+tab", "", "panel before", "", LOOK),
    Action("back", "escape", "", "back to the whole picture", "", LOOK),
    Action("help", "question_mark,f1", "help", "this help", "every key and why it may be dim", CONSOLE),
    Action("quit", "q,ctrl+q", "quit", "leave the console", "asks whether the engine stays", CONSOLE),
)  # fmt: skip

BY_ID = {action.id: action for action in ACTIONS}

BAR_ORDER: dict[str, tuple[str, ...]] = {
    "queue": (
        "add", "edit", "command", "hold", "move_down", "remove", "undo", "start", "pause", "clone", "mark", "line",
        "editor", "order", "find", "details", "cancel", "extend", "results", "log", "gpus", "quit",
    ),
    "results": (
        "retry", "clone", "details", "queue", "command", "undo", "start", "pause", "log", "gpus", "cancel", "quit",
    ),
    "log": ("queue", "results", "gpus", "command", "start", "pause", "cancel", "extend", "quit"),
    "gpus": ("gpus", "queue", "results", "log", "command", "start", "pause", "cancel", "extend", "quit"),
}  # fmt: skip
"""The bar of keys by the panel that has the focus, most wanted first; what does not fit is in the help."""


def bindings() -> list[BindingType]:
    """Every action as a binding of a screen that has `action_do`."""
    return [action.binding() for action in ACTIONS]


def groups() -> dict[str, list[Action]]:
    """Actions by heading, in the table's order."""
    found: dict[str, list[Action]] = {}
    for action in ACTIONS:
        found.setdefault(action.group, []).append(action)
    return found
