"""The values of a key: whole numbers, multiples of the block size, `match`, ranges and lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Literal

from ddconsole.core.spec.context import SHORT_NAMES
from ddconsole.core.spec.types import MAX_CONFIGS, RefusedSpec, Spot, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.spec.words import Word

NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE]\+?[0-9]{1,2})?")
"""`16`, `012` (twelve), `1e3` (a thousand), `16.0`."""

TIMES_B = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)?b")
"""`2b`, `1.5b`, `b`."""

RANGE = re.compile(r"([^.:]+)\.\.([^.:]+)(?::([^.:]+))?")
"""`8..32:8`; the step is 1 when it is left out."""

RELATIVE = {
    "budget": "a multiple of b such as 2b, or match",
    "topk": "a multiple of b, or auto",
    "window": "a multiple of b, or auto",
}
"""What a knob takes besides whole numbers."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value as typed.

    Attributes:
        kind: `number`; `times` the block size; `match` the reference's density; `auto`, the engine's own; `word`.
        number: the number, or the factor.
    """

    kind: Literal["number", "times", "match", "auto", "word"]
    text: str
    spot: Spot
    number: Fraction = Fraction(0)

    @property
    def relative(self) -> bool:
        """What it comes to depends on something else."""
        return self.kind in ("times", "match")


def half_up(number: Fraction) -> int:
    """The nearest whole number, halves up."""
    return floor(number + Fraction(1, 2))


def knob_values(name: str, word: Word, start: int) -> tuple[Value, ...]:
    """The values of a knob; the text behind `=` begins at `start`."""
    values: list[Value] = []
    for text, index in pieces(word, start):
        spot = word.spot(index)
        if ".." in text:
            values += _range(name, text, spot)
        else:
            values.append(_knob_value(name, text, spot))
        if len(values) > MAX_CONFIGS:
            raise RefusedSpec(spot, f"more than {MAX_CONFIGS} values", "take a wider step or split the sweep")
    return tuple(values)


def word_values(word: Word, start: int) -> tuple[Value, ...]:
    """Values that are words, in a list separated by commas."""
    return tuple(Value("word", text, word.spot(index)) for text, index in pieces(word, start))


def pieces(word: Word, start: int) -> Iterator[tuple[str, int]]:
    """The pieces of a list with where each begins; none may be empty."""
    index = start
    for text in word.text[start:].split(","):
        if not text:
            raise RefusedSpec(word.spot(index), "a value is missing here", "a list is written 12,16,24")
        yield text, index
        index += len(text) + 1


def argument_values(word: Word, start: int) -> tuple[Value, ...]:
    """Values of an engine argument: text, a list at commas that stand outside of brackets and quotes.

    `\\,` is a comma of the text. An empty value leaves the argument out.
    """
    values: list[Value] = []
    text, begin, depth, quoted = "", start, 0, False
    index = start
    while index < len(word.text):
        character = word.text[index]
        if word.text.startswith("\\,", index):
            text += ","
            index += 2
            continue
        quoted ^= character == '"'
        depth += 0 if quoted else (character in "{[(") - (character in "}])")
        if character == "," and depth <= 0 and not quoted:
            values.append(Value("word", text, word.spot(begin)))
            text, begin = "", index + 1
        else:
            text += character
        index += 1
    values.append(Value("word", text, word.spot(begin)))
    if len(values) > 1 and any(not value.text for value in values):
        empty = next(value for value in values if not value.text)
        raise RefusedSpec(empty.spot, "a value is missing here", r"a comma of the text itself is written \,")
    return tuple(values)


def whole(text: str, spot: Spot, what: str) -> int:
    """A whole number as typed."""
    if text.startswith("-") and NUMBER.fullmatch(text[1:]):
        raise RefusedSpec(spot, f"{shown(text)} is below zero", f"{what} is a whole number from 1")
    if not NUMBER.fullmatch(text):
        raise RefusedSpec(spot, f"{shown(text)} is no whole number", f"{what} takes a whole number")
    number = Fraction(text)
    if number.denominator != 1:
        raise RefusedSpec(spot, f"{shown(text)} is not whole", f"{what} takes a whole number")
    return int(number)


def _knob_value(name: str, text: str, spot: Spot) -> Value:
    times = TIMES_B.fullmatch(text)
    if times and name != "block_size":
        return Value("times", text, spot, Fraction(times.group(1) or 1))
    if text == "match" and name == "budget":
        return Value("match", text, spot)
    if text == "auto" and name in ("topk", "window"):
        return Value("auto", text, spot)
    if not NUMBER.fullmatch(text) and not text.startswith("-"):
        raise _no_value(name, text, spot)
    return Value("number", text, spot, Fraction(whole(text, spot, name)))


def _no_value(name: str, text: str, spot: Spot) -> RefusedSpec:
    if text == "match":
        return RefusedSpec(spot, f"match is for the budget; {name} has nothing to match", f"give {name} a number")
    more = f", {RELATIVE[name]}" if name in RELATIVE else ""
    short = SHORT_NAMES[name]
    advice = f"{name} takes a whole number, a list {short}=8,16, a range {short}=8..32:8{more}"
    return RefusedSpec(spot, f"{shown(text)} is no value for {name}", advice)


def _range(name: str, text: str, spot: Spot) -> list[Value]:
    """`8..32:8`: both ends included."""
    found = RANGE.fullmatch(text)
    if found is None:
        raise RefusedSpec(spot, f"{shown(text)} is no range", "a range is written 8..32:8, first to last by step")
    first = whole(found.group(1), spot, name)
    last = whole(found.group(2), spot, name)
    step = whole(found.group(3) or "1", spot, "a step")
    if step < 1:
        raise RefusedSpec(spot, "a step of 0 goes nowhere", "a range is written 8..32:8")
    if last < first:
        raise RefusedSpec(spot, f"{first}..{last} goes down", f"a range goes up: {last}..{first}")
    count = (last - first) // step + 1
    if count > MAX_CONFIGS:
        raise RefusedSpec(spot, f"a range of {count:,} values; {MAX_CONFIGS} is the most", "take a wider step")
    return [Value("number", str(number), spot, Fraction(number)) for number in range(first, last + 1, step)]
