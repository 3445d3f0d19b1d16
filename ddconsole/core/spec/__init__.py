"""The one language for `:`, the command line and the profile's starting queue.

    add b=16 B=26          next algorithm=chain      sweep b=8..32:8 B=match,2b,3b      idea "the small drafter"
    after b=16 B=match     after S3 W=1024           after! E14 B=1.5b                  clone E14 K=4
    edit E16 budget=32     hold E16 E17              move E17 top|up|down|bottom|3      remove S3      retry E12
    undo  redo  pause  start

Keys are `block_size budget topk window` or `b B K W`, `algorithm`, `arg.NAME`, and `passes repeats suite note base`.
`parse` never raises for any text; it gives a command or a refusal that names a column.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ddconsole.core.nearest import nearest
from ddconsole.core.queue.rules import apply
from ddconsole.core.queue.values import Refusal
from ddconsole.core.spec.check import (
    Duplicate,
    WorkKey,
    bind_best,
    duplicates,
    missing_control,
    standing_work,
    work_key,
)
from ddconsole.core.spec.context import KnobRule, SpecContext
from ddconsole.core.spec.ids import looks_like_ids
from ddconsole.core.spec.print import print_spec
from ddconsole.core.spec.types import VERBS, Command, Planned, RefusedSpec, SpecRefusal, Spot, shown
from ddconsole.core.spec.verbs import command
from ddconsole.core.spec.words import Line, Word, end_of, joined, split_again, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

__all__ = [
    "VERBS",
    "Command",
    "Duplicate",
    "KnobRule",
    "LineRefused",
    "Planned",
    "SpecContext",
    "SpecRefusal",
    "WorkKey",
    "bind_best",
    "duplicates",
    "missing_control",
    "parse",
    "parse_lines",
    "print_spec",
    "standing_work",
    "work_key",
]


LONGEST_VERB = 20
"""Characters up to which a word alone may have been meant as a verb."""


def parse(spec: str | Sequence[str], context: SpecContext, *, verb: str | None = None) -> Command | SpecRefusal:
    """The command that a line is, or why it is none.

    Args:
        spec: a line, split as a shell would; or words that a shell has split already.
        context: what it is read against.
        verb: the verb, where the words do not begin with it, as on the command line. Columns count in `spec`.
    """
    try:
        return _parsed(spec, words_of(spec), context, verb)
    except RefusedSpec as refused:
        return refused.refusal


@dataclass(frozen=True, slots=True)
class LineRefused:
    """The first line of several that cannot be taken: its number from 1, its text, and why."""

    line: int
    text: str
    refusal: SpecRefusal | Refusal


def parse_lines(lines: Iterable[str], context: SpecContext, *, now: datetime) -> tuple[Command, ...] | LineRefused:
    """Several commands, such as a profile's starting queue or lines piped in: all of them or none.

    Each line is read against the queue that the lines before it leave behind, so it may name what they queue. Empty
    lines and lines that begin with # are passed over. The commands are to be applied in their order.
    """
    commands: list[Command] = []
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        parsed = parse(text, context)
        if isinstance(parsed, SpecRefusal):
            return LineRefused(number, text, parsed)
        queue = apply(context.queue, parsed.edit, now=now)
        if isinstance(queue, Refusal):
            return LineRefused(number, text, queue)
        commands.append(parsed)
        context = replace(context, queue=queue)
    return tuple(commands)


def _parsed(spec: str | Sequence[str], words: tuple[Word, ...], context: SpecContext, verb: str | None) -> Command:
    if verb is not None and verb not in VERBS:
        raise RefusedSpec(Spot(1, 1), f"unknown verb {shown(verb)}", f"verbs are {', '.join(VERBS)}")
    if verb is None and not joined(words).strip():
        raise RefusedSpec(Spot(1, 1), "the line is empty", "such as add b=16 B=26, or after b=16 B=match")
    from_shell = not isinstance(spec, str)
    if verb is None and from_shell:
        words = _unquoted(words, "")
    first = words[0] if verb is None else None
    if first is None or first.text not in VERBS:
        if first is not None and "=" not in first.text:
            raise _no_verb(first, words)
        rest = _unquoted(words, verb or "add") if from_shell else words
        line = Line(verb or "add", Spot(1, 1), rest, end_of(rest), _text(verb or "add", spec, rest))
        return command(line, context)
    rest = _unquoted(words[1:], first.text) if from_shell else words[1:]
    words = (first, *rest)
    return _or_idea(Line(first.text, first.spot(), rest, end_of(words), _text("", spec, words)), words, context)


def _text(verb: str, spec: str | Sequence[str], words: tuple[Word, ...]) -> str:
    """The line as it could be typed again, with its verb."""
    if isinstance(spec, str):
        typed = spec.strip()
    else:
        head, tail = ([words[0].text], words[1:]) if not verb else ([], words)
        typed = " ".join([*head, *(shlex.quote(word.text) for word in tail)])
    return f"{verb} {typed}".strip()


def _unquoted(words: tuple[Word, ...], verb: str) -> tuple[Word, ...]:
    """A spec that came as one quoted string is split; the spaces of an idea, a note or an argument are its own."""
    if len(words) != 1 or verb == "idea" or not any(character.isspace() for character in words[0].text):
        return words
    own_spaces = words[0].text.startswith(("note=", "arg."))
    try:
        again = split_again(words[0])
    except RefusedSpec:
        if own_spaces:
            return words
        raise
    return words if own_spaces and not all("=" in word.text for word in again) else again


def _or_idea(line: Line, words: tuple[Word, ...], context: SpecContext) -> Command:
    """The command; where a sentence happens to begin with a verb, its words are offered as an idea."""
    try:
        return command(line, context)
    except RefusedSpec as refused:
        if _reads_like_words(line.words):
            spot = Spot(refused.refusal.column, refused.refusal.cursor)
            raise _words_refused(spot, words) from None
        raise


def _reads_like_words(words: Sequence[Word]) -> bool:
    """At least two words, and none of them is a key with its value or an id."""
    return len(words) >= 2 and not any(_is_argument(word) for word in words)


def _no_verb(first: Word, words: tuple[Word, ...]) -> RefusedSpec:
    if looks_like_ids(first):
        reason = f"{shown(first.text)} alone says nothing; a verb comes first"
        return RefusedSpec(first.spot(), reason, f"such as edit {first.text} B=32, or move {first.text} top")
    near = nearest(first.text, VERBS) if len(first.text) <= LONGEST_VERB else None
    if near is not None and not _reads_like_words(words[1:]):
        reason = f"unknown verb {shown(first.text)}"
        return RefusedSpec(first.spot(), reason, f"did you mean {near}?", idea=joined(words))
    if len(first.text) <= LONGEST_VERB and all(_is_argument(word) for word in words[1:]):
        return RefusedSpec(first.spot(), f"unknown verb {shown(first.text)}", f"verbs are {', '.join(VERBS)}")
    return _words_refused(first.spot(), words)


def _is_argument(word: Word) -> bool:
    """A key with its value, or an id: what stands behind a verb."""
    return "=" in word.text or looks_like_ids(word)


def _words_refused(spot: Spot, words: tuple[Word, ...]) -> RefusedSpec:
    text = joined(words)
    reason = f"{shown(text)} reads like words, not like a spec"
    return RefusedSpec(spot, reason, f'keep it as an idea with idea "{shown(text, 30)[1:-1]}"', idea=text)
