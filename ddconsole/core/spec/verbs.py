"""The verbs: what each takes, and the edit that it becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ddconsole.core.experiment import WAITING, Origin, Running
from ddconsole.core.queue.values import (
    Add,
    Cancel,
    Draft,
    Edit,
    Hold,
    Move,
    Place,
    Redo,
    Release,
    Remove,
    Retry,
    SetPaused,
    Undo,
)
from ddconsole.core.queue.view import blocked, running, waiting
from ddconsole.core.spec.edit import edit_command
from ddconsole.core.spec.ids import Named, batched, expected_end, one_id, split_ids
from ddconsole.core.spec.keys import MAX_NOTE, typed
from ddconsole.core.spec.plan import Origins, grid_text, plan
from ddconsole.core.spec.types import Command, RefusedSpec, shown
from ddconsole.core.spec.values import whole
from ddconsole.core.spec.words import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.experiment import Experiment
    from ddconsole.core.spec.context import SpecContext
    from ddconsole.core.spec.keys import Typed
    from ddconsole.core.spec.types import Planned
    from ddconsole.core.spec.words import Line, Word


def command(line: Line, context: SpecContext) -> Command:
    """The command that a line is.

    Raises:
        RefusedSpec: it is none.
    """
    if line.verb in ("add", "next", "sweep"):
        return _add(line, context)
    if line.verb == "clone":
        return _clone(line, context)
    if line.verb in ("after", "after!"):
        return _after(line, context)
    if line.verb == "edit":
        return edit_command(line, context)
    if line.verb == "idea":
        return _idea(line)
    return Command(line.verb, _plain_edit(line, context), line.text)


def _plain_edit(line: Line, context: SpecContext) -> Edit:
    """Verbs that name experiments, or nothing at all."""
    verb = line.verb
    if verb == "move":
        return _move(line, context)
    if verb in ("hold", "release", "remove", "retry", "cancel"):
        return _of_ids(line, context)
    expected_end(line.words, f"{verb} stands alone")
    if verb in ("undo", "redo"):
        return Undo() if verb == "undo" else Redo()
    return SetPaused(verb == "pause")


def _of_ids(line: Line, context: SpecContext) -> Edit:
    verb = line.verb
    named, rest = split_ids(line.words, context)
    if not named:
        raise RefusedSpec(line.end, f"{verb} what?", f"such as {verb} E14, or a sweep's id")
    expected_end(rest, f"{verb} takes ids alone")
    ids = tuple(dict.fromkeys(each.id for each in named))
    if verb == "retry":
        return batched(tuple(Retry(id_) for id_ in ids))
    if verb == "cancel":
        if len(ids) > 1:
            raise RefusedSpec(line.end, "one experiment runs at a time", "such as cancel E14")
        return Cancel(ids[0])
    return Hold(ids) if verb == "hold" else Release(ids) if verb == "release" else Remove(ids)


def _add(line: Line, context: SpecContext) -> Command:
    said = typed(line.words, context)
    planned, equal = plan(said, Origins(match_defaults=line.verb == "sweep"), context)
    if line.verb == "sweep" and len(planned) == 1:
        raise RefusedSpec(line.end, "a sweep has a key with several values", "such as sweep b=8,16 B=2b,3b")
    place = Place("front") if line.verb == "next" else Place()
    edit = Add(_drafts(planned), _origin(line), place, as_sweep=len(planned) > 1)
    return _queued(line, said, planned, equal, edit)


def _clone(line: Line, context: SpecContext) -> Command:
    if not line.words:
        raise RefusedSpec(line.end, "clone what?", "such as clone E14 b=16 B=match, or a sweep's id")
    named = one_id(line.words[0], context)
    said = typed(line.words[1:], context)
    planned, equal = plan(said, Origins(named.experiments), context)
    edit = Add(_drafts(planned), _origin(line), as_sweep=named.is_sweep or len(planned) > 1)
    return _queued(line, said, planned, equal, edit)


def _after(line: Line, context: SpecContext) -> Command:
    named, rest = _followed(line, context)
    said = typed(rest, context)
    if said.empty:
        raise RefusedSpec(line.end, f"what is to differ from {named.id}?", f"or use clone {named.id}")
    origins = Origins(named.experiments, condition=line.verb == "after!", condition_id=named.id)
    planned, equal = plan(said, origins, context)
    place = Place("after", named.id)
    edit = Add(_drafts(planned), _origin(line, named.id), place, as_sweep=len(planned) > 1)
    return _queued(line, said, planned, equal, edit, _after_notes(line.verb, named, context))


def _followed(line: Line, context: SpecContext) -> tuple[Named, tuple[Word, ...]]:
    """Whom `after` names, or what runs: its whole sweep when it belongs to one."""
    if line.words and "=" not in line.words[0].text:
        return one_id(line.words[0], context), line.words[1:]
    now = running(context.queue)
    if now is None:
        wait = waiting(context.queue)
        name = wait[-1].id if wait else "E14"
        advice = f"name it, such as `{line.verb} {name} …`, or use add"
        raise RefusedSpec(line.at, "nothing is running that this could follow", advice)
    return Named.of(now.sweep or now.id, context.queue), line.words


def _after_notes(verb: str, named: Named, context: SpecContext) -> tuple[str, ...]:
    members = ", ".join(item.id for item in named.experiments)
    whom = f"{named.id} ({members})" if named.is_sweep else named.id
    if verb == "after":
        return (f"placed behind {whom}; it keeps that place and starts even if {named.id} fails, moves or is removed",)
    now = [text for item in named.experiments if (text := _never(item, context)) is not None]
    return (f"placed behind {whom}; each starts only if the one that it follows passes", *now)


def _never(item: Experiment, context: SpecContext) -> str | None:
    """Why an experiment that has ended does not satisfy `after!`."""
    if isinstance(item.state, (*WAITING, Running)):
        return None
    return blocked(context.queue, replace(item, requires=item.id))


def _idea(line: Line) -> Command:
    note = joined(line.words).strip()
    if not note:
        raise RefusedSpec(line.end, "an idea needs words", 'such as idea "block size 16 with the small drafter"')
    if len(note) > MAX_NOTE:
        raise RefusedSpec(line.words[0].spot(), f"an idea of more than {MAX_NOTE:,} characters", "shorten it")
    return Command("idea", Add((Draft(None, note=note),), _origin(line)), line.text)


def _move(line: Line, context: SpecContext) -> Move:
    """`move E17 E18 top`: the place comes last."""
    named, rest = split_ids(line.words, context)
    if not named:
        raise RefusedSpec(line.words[0].spot() if line.words else line.end, "move what?", "such as move E17 top")
    if not rest:
        raise RefusedSpec(line.end, "move where?", "top, up, down, bottom, or a rank from 1")
    expected_end(rest[1:], "the place comes last")
    return Move(tuple(dict.fromkeys(each.id for each in named)), _place(rest[0]))


def _place(word: Word) -> Literal["top", "up", "down", "bottom"] | int:
    for place in ("top", "up", "down", "bottom"):
        if word.text.lower() == place:
            return place
    if not word.text[:1].isdigit():
        raise RefusedSpec(word.spot(), f"{shown(word.text)} is no place", "top, up, down, bottom, or a rank from 1")
    rank = whole(word.text, word.spot(), "a rank")
    if rank < 1:
        raise RefusedSpec(word.spot(), "ranks begin with 1", "top is the first place")
    return rank


def _drafts(planned: Sequence[Planned]) -> tuple[Draft, ...]:
    return tuple(each.draft for each in planned)


def _origin(line: Line, after: str | None = None) -> Origin:
    return Origin(verb=line.verb, text=line.text, after=after)


def _queued(
    line: Line, said: Typed, planned: tuple[Planned, ...], equal: int, edit: Add, notes: tuple[str, ...] = ()
) -> Command:
    if equal:
        notes = (*notes, f"{equal} equal {'one is' if equal == 1 else 'ones are'} taken once")
    return Command(line.verb, edit, line.text, planned, grid_text(said), notes)
