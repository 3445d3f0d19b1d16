"""The queue for people and for scripts: one document, shown as a table or as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import author
from ddconsole.cli.table import duration, print_table
from ddconsole.core.config import Config
from ddconsole.core.events import parse_utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


WAITING = ("running", "queued", "held", "idea")
"""States that a plain `list` shows."""
MARKS = {"block": "✘ ", "warn": "⚠ ", "note": ""}
"""What stands before a finding."""
BASE_BEST = "base=best: what is not named comes from the best when it starts"
COLUMNS = ("#", "id", "state", "config", "time", "notes")


def print_queue(document: Mapping[str, Any], *, with_ended: bool) -> None:
    """The queue as a table under one line that sums it up."""
    items = [item for item in document["items"] if with_ended or item["state"] in WAITING]
    click.echo(_headline(document))
    if items:
        print_items(items)
    else:
        click.echo(f"nothing waits; `ddconsole queue {document['profile']} add b=16 B=26` queues an experiment")


def print_items(items: Sequence[Mapping[str, Any]]) -> None:
    """Experiments as a table."""
    if items:
        print_table(COLUMNS, [_row(item) for item in items], right=frozenset({"#", "time"}))


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    rank = "" if item["rank"] is None else str(item["rank"])
    config = Config.from_json(item["config"]).label() if item["config"] else f"“{item['note']}”"
    waits = item["state"] in WAITING and item["config"]
    return (rank, item["id"], item["state"], config, duration(item["estimate_s"]) if waits else "", _notes(item))


def _notes(item: Mapping[str, Any]) -> str:
    """What else is worth knowing of an item, in a few words."""
    notes = [item["sweep"]] if item["sweep"] else []
    config = item["config"]
    if item["suite"] != "quick":
        notes.append(item["suite"])
    if item["repeats"] > 1:
        notes.append(f"× {item['repeats']}")
    if item["base"] == "best" and item["state"] in WAITING[1:]:
        notes.append(BASE_BEST)
    if item["requires"]:
        notes.append(f"only if {item['requires']} passes")
    if item["keeps_engine"]:
        notes.append("keeps the engine")
    notes += [MARKS[finding["level"]] + finding["text"] for finding in item["findings"]]
    if config and item["note"]:
        notes.append(f"“{item['note']}”")
    if item["author"] not in ("", "profile", author()):
        notes.append(f"by {item['author']}")
    return " · ".join(notes)


def _running_words(document: Mapping[str, Any]) -> str:
    """An experiment whose console was killed is not running, whatever it last said."""
    if document.get("runner_alive", True):
        return f"{document['running']} is running"
    resume = f"`ddconsole run {document['profile']} --resume`"
    return f"{document['running']} was running when its console ended; {resume} takes it up again"


def _headline(document: Mapping[str, Any]) -> str:
    queued = sum(item["state"] == "queued" for item in document["items"])
    parts = [f"queue of {document['profile']}", f"{queued} queued"]
    if document["running"]:
        parts.append(_running_words(document))
    if document["paused"]:
        parts.append("paused")
    if document["ends_at"]:
        parts.append(f"done {parse_utc(document['ends_at']).astimezone():%H:%M} if it runs now")
    return " · ".join(parts)
