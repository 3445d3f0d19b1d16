"""The rules for what a waiting experiment is: its config and passes, held or not, there or removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddconsole.core.experiment import Experiment, Held, Idea, Queued, Removed, Running
from ddconsole.core.queue.ruling import (
    Ruling,
    idea_in,
    ids_of,
    is_idea,
    is_waiting,
    named_waiting,
    not_editable,
    unknown,
    with_items,
)
from ddconsole.core.queue.values import Change, Extend, Hold, Queue, Refusal, Release, Remove
from ddconsole.core.queue.view import by_id

CHANGEABLE = ("config", "suite", "passes", "repeats", "note", "base_best", "pinned")
"""Fields of `Change` that replace the experiment's of the same name."""


def change(queue: Queue, edit: Change) -> Ruling | Refusal:
    """Replace what a waiting experiment runs."""
    item = by_id(queue, edit.id)
    if item is None:
        return unknown(queue, edit.id)
    if not is_waiting(item):
        return not_editable(item)
    fields: dict[str, Any] = {name: getattr(edit, name) for name in CHANGEABLE if getattr(edit, name) is not None}
    if isinstance(item.state, Idea) and edit.config is not None:
        fields["state"] = Queued()
    changed = replace(item, **fields)
    if changed == item:
        return Refusal(f"{item.id} is so already", "no-change", (item.id,))
    if changed.config is None and not changed.note.strip():
        return Refusal(f"{item.id} is an idea; an idea needs words", "empty", (item.id,))
    return Ruling(replace(queue, items=with_items(queue, (changed,))), (item.id,), f"edit {item.id}")


def extend(queue: Queue, edit: Extend) -> Ruling | Refusal:
    """Further passes, for a waiting experiment or the running one."""
    item = by_id(queue, edit.id)
    if item is None:
        return unknown(queue, edit.id)
    if not is_waiting(item) and not isinstance(item.state, Running):
        return not_editable(item)
    further = tuple(name for name in dict.fromkeys(edit.passes) if name not in item.passes)
    if not further:
        return Refusal(f"{item.id} has these passes already: {', '.join(item.passes)}", "no-change", (item.id,))
    longer = replace(item, passes=item.passes + further)
    text = f"give {item.id} {', '.join(further)}"
    return Ruling(replace(queue, items=with_items(queue, (longer,))), (item.id,), text)


def hold(queue: Queue, edit: Hold) -> Ruling | Refusal:
    """Queued becomes held; held stays so."""
    found = named_waiting(queue, edit.ids, lambda item: isinstance(item.state, Queued))
    if isinstance(found, Refusal):
        return found
    idea = idea_in(found)
    if idea is not None:
        return Refusal(f"{idea.id} is an idea, and an idea is held as it is", "idea", (idea.id,))
    return _between(queue, found, Held(), "hold", "held")


def release(queue: Queue, edit: Release) -> Ruling | Refusal:
    """Held becomes queued, in the place that it has."""
    found = named_waiting(queue, edit.ids, lambda item: isinstance(item.state, Held))
    if isinstance(found, Refusal):
        return found
    idea = idea_in(found)
    return is_idea(idea) if idea is not None else _between(queue, found, Queued(), "release", "queued")


def remove(queue: Queue, edit: Remove) -> Ruling | Refusal:
    """Waiting ones become tombstones."""
    found = named_waiting(queue, edit.ids)
    if isinstance(found, Refusal):
        return found
    gone = tuple(replace(item, state=Removed()) for item in found)
    return Ruling(replace(queue, items=with_items(queue, gone)), ids_of(gone), _text("remove", gone))


def _between(
    queue: Queue, found: tuple[Experiment, ...], state: Held | Queued, verb: str, word: str
) -> Ruling | Refusal:
    changed = tuple(replace(item, state=state) for item in found if item.state != state)
    if not changed:
        verb_be = "is" if len(found) == 1 else "are"
        return Refusal(f"{', '.join(ids_of(found))} {verb_be} {word} already", "no-change", ids_of(found))
    return Ruling(replace(queue, items=with_items(queue, changed)), ids_of(changed), _text(verb, changed))


def _text(verb: str, items: tuple[Experiment, ...]) -> str:
    names = ids_of(items)
    shown = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    return f"{verb} {shown}"
