"""The `key=value` words of a spec: which keys there are, and what each was given."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.core.nearest import nearest
from ddconsole.core.spec.context import SHORT_NAMES
from ddconsole.core.spec.types import VERBS, RefusedSpec, shown
from ddconsole.core.spec.values import Value, argument_values, knob_values, pieces, whole, word_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ddconsole.core.spec.context import SpecContext
    from ddconsole.core.spec.words import Word

LONG_NAMES = {short: name for name, short in SHORT_NAMES.items()}
OTHER_KEYS = ("algorithm", "passes", "repeats", "suite", "note", "base")
KEYS = (*SHORT_NAMES, *LONG_NAMES, *OTHER_KEYS)
"""Every key besides `arg.NAME`."""

ARGUMENT = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,80}")
SECRET = re.compile(r"(^|-)(api-key|password|secret)(-|$)")
"""Arguments that would put a secret into the store."""

MAX_REPEATS = 100
MAX_NOTE = 2_000
MAX_VALUE = 1_000
"""Characters of an engine argument's value."""

BASES = ("best", "default")


@dataclass(frozen=True, slots=True)
class Axis:
    """A key that makes configs, with its values as typed; more than one value makes a sweep."""

    key: str
    word: Word
    values: tuple[Value, ...]


@dataclass(slots=True)
class Typed:
    """What the words of a spec say. None is "not said".

    Attributes:
        axes: algorithm, knobs and `arg.NAME`, in the order in which they were typed.
    """

    axes: list[Axis] = field(default_factory=list)
    passes: tuple[str, ...] | None = None
    repeats: int | None = None
    suite: str | None = None
    note: str | None = None
    base_best: bool | None = None
    words: dict[str, Word] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Nothing was said at all."""
        return not self.words

    @property
    def several(self) -> Axis | None:
        """The first key with more than one value, or None."""
        return next((axis for axis in self.axes if len(axis.values) > 1), None)


def typed(words: Iterable[Word], context: SpecContext) -> Typed:
    """Read `key=value` words.

    Raises:
        RefusedSpec: a word that is not one, an unknown key, a key twice, a value that the key cannot have.
    """
    said = Typed()
    for word in words:
        key = _key(word, context)
        before = said.words.get(key)
        if before is not None:
            advice = "several values go into one list, such as b=8,16" if key in SHORT_NAMES else "say it once"
            raise RefusedSpec(word.spot(), f"{key} stands here twice (first in {shown(before.text)})", advice)
        said.words[key] = word
        _take(said, key, word, word.text.index("=") + 1, context)
    return said


def _key(word: Word, context: SpecContext) -> str:
    """The long name of a word's key; `arg.tp_size` becomes `arg.tp-size`."""
    name, equals, _ = word.text.partition("=")
    if not equals:
        raise not_a_pair(word)
    if name.startswith("arg."):
        return _argument(word, name[len("arg.") :], context)
    long = LONG_NAMES.get(name, name)
    if long in SHORT_NAMES:
        fixed = context.knobs[long].fixed
        if fixed:
            raise RefusedSpec(word.spot(), f"{long} cannot be set: {fixed}", "leave it out")
        return long
    if name in OTHER_KEYS:
        return name
    raise _unknown_key(word, name)


def not_a_pair(word: Word) -> RefusedSpec:
    """A word without `=` where `key=value` belongs."""
    text = word.text
    if text in KEYS:
        return RefusedSpec(word.spot(), f"{text} has no value", f"write {text}=…, without spaces around =")
    if text in VERBS:
        return RefusedSpec(word.spot(), f"{shown(text)} is a verb, and a verb comes first", "one line is one command")
    what = shown(text) if text else "an empty word"
    return RefusedSpec(word.spot(), f"{what} is not key=value", "a spec is made of words such as b=16 B=26 W=2048")


def _unknown_key(word: Word, name: str) -> RefusedSpec:
    if not name:
        return RefusedSpec(word.spot(), "there is no key before =", "write it as b=16, without spaces around =")
    odd = next((character for character in name if not character.isascii()), None)
    if odd is not None:
        reason = f"unknown key {shown(name)}, with the character U+{ord(odd):04X}"
        return RefusedSpec(word.spot(name.index(odd)), reason, "keys are plain letters")
    swapped = name.swapcase()
    if len(name) == 1 and swapped in LONG_NAMES:
        advice = f"keys are case-sensitive: {swapped} is the {LONG_NAMES[swapped]}"
        return RefusedSpec(word.spot(), f"unknown key {shown(name)}", advice)
    near = nearest(name, (*SHORT_NAMES, *OTHER_KEYS)) if len(name) <= 40 else None
    keys = f"keys are {' '.join(f'{name} ({short})' for name, short in SHORT_NAMES.items())} {' '.join(OTHER_KEYS)}"
    advice = f"did you mean {near}?" if near else f"{keys}; an engine's own argument is arg.NAME=VALUE"
    return RefusedSpec(word.spot(), f"unknown key {shown(name)}", advice)


def _argument(word: Word, name: str, context: SpecContext) -> str:
    """`_` and `-` are the same in an argument's name."""
    if not ARGUMENT.fullmatch(name):
        advice = "it is the long flag without its dashes, such as arg.mem-fraction-static=0.85"
        raise RefusedSpec(word.spot(len("arg.")), f"{shown(name)} is no name of an argument", advice)
    name = name.replace("_", "-")
    if name in context.reserved:
        raise RefusedSpec(word.spot(), f"arg.{name} cannot be given: {context.reserved[name]}", "leave it out")
    if SECRET.search(name):
        advice = "name it in the profile's engine.secrets"
        raise RefusedSpec(word.spot(), f"arg.{name} is a secret, and the queue keeps none", advice)
    return f"arg.{name}"


def _take(said: Typed, key: str, word: Word, start: int, context: SpecContext) -> None:
    """Read the value of `key`, which begins at `start`."""
    if start >= len(word.text) and key != "note" and not key.startswith("arg."):
        raise RefusedSpec(word.spot(start), f"{key} has no value", f"write it as {key}=…, without spaces around =")
    if key in SHORT_NAMES:
        said.axes.append(Axis(key, word, knob_values(key, word, start)))
    elif key == "algorithm":
        said.axes.append(Axis(key, word, _algorithms(word, start)))
    elif key.startswith("arg."):
        said.axes.append(Axis(key, word, _argument_values(word, start)))
    elif key == "passes":
        said.passes = _passes(word, start, context)
    elif key == "suite":
        said.suite = _one_of("suite", word, start, tuple(context.suites))
    elif key == "base":
        said.base_best = _one_of("base", word, start, BASES) == "best"
    elif key == "repeats":
        said.repeats = _repeats(word, start)
    else:
        said.note = checked_note(word, start)


def checked_note(word: Word, start: int) -> str:
    """A note's text."""
    if len(word.text) - start > MAX_NOTE:
        raise RefusedSpec(word.spot(start + MAX_NOTE), f"a note of more than {MAX_NOTE:,} characters", "shorten it")
    return word.text[start:].strip()


def _algorithms(word: Word, start: int) -> tuple[Value, ...]:
    values = word_values(word, start)
    for value in values:
        _known(value.text, tuple(Algorithm), "algorithm", value)
    return values


def _argument_values(word: Word, start: int) -> tuple[Value, ...]:
    values = argument_values(word, start)
    long = next((value for value in values if len(value.text) > MAX_VALUE), None)
    if long is not None:
        raise RefusedSpec(long.spot, f"a value of more than {MAX_VALUE:,} characters", "put it into the profile")
    return values


def _passes(word: Word, start: int, context: SpecContext) -> tuple[str, ...]:
    names: list[str] = []
    for text, index in pieces(word, start):
        value = Value("word", text, word.spot(index))
        _known(text, context.passes, "pass", value)
        if text in names:
            raise RefusedSpec(value.spot, f"the pass {text} stands here twice", "say how often with repeats=…")
        names.append(text)
    return tuple(names)


def _one_of(key: str, word: Word, start: int, known: tuple[str, ...]) -> str:
    text = word.text[start:]
    _known(text, known, key, Value("word", text, word.spot(start)))
    return text


def _known(text: str, known: tuple[str, ...], what: str, value: Value) -> None:
    if text in known:
        return
    near = nearest(text, known) if len(text) <= 40 else None
    advice = f"did you mean {near}?" if near else f"there is {', '.join(known)}"
    raise RefusedSpec(value.spot, f"unknown {what} {shown(text)}", advice)


def _repeats(word: Word, start: int) -> int:
    spot = word.spot(start)
    number = whole(word.text[start:], spot, "repeats")
    if not 1 <= number <= MAX_REPEATS:
        raise RefusedSpec(spot, f"{number:,} repeats; 1 to {MAX_REPEATS} can be asked for", "clone it for more")
    return number
