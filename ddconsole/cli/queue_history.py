"""`ddconsole queue PROFILE history`: the steps that undo and redo walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.report import print_json
from ddconsole.core.documents import head

if TYPE_CHECKING:
    from ddconsole.core.queue import Queue, Step


def show(profile: str, queue: Queue, *, as_json: bool) -> None:
    """Both directions, the step that would be taken first on top."""
    undo = [_step(step) for step in reversed(queue.history.undo)]
    redo = [_step(step) for step in reversed(queue.history.redo)]
    if as_json:
        print_json(head(profile, queue.revision) | {"undo": undo, "redo": redo})
        return
    from ddconsole.cli.table import print_table

    rows = [(verb, step["text"], _left(step)) for verb, steps in (("undo", undo), ("redo", redo)) for step in steps]
    if rows:
        print_table(("", "edit", "started since"), rows)
    else:
        click.echo("nothing to undo and nothing to do again")


def _step(step: Step) -> dict[str, Any]:
    """`ids` are those that it can still change; when there are none, undo passes it over."""
    return {"text": step.text, "ids": list(step.ids), "started": list(step.started)}


def _left(step: dict[str, Any]) -> str:
    started = ", ".join(step["started"])
    return started if step["ids"] else f"{started}: passed over"
