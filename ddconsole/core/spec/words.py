"""A spec's words, each with its columns. Text is split as a shell would; words from a shell are taken as they are."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.spec.types import MAX_CHARACTERS, RefusedSpec, Spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
"""Whatever ends a line somewhere."""

UNSAFE = {"Cc": "a control character", "Cs": "half of a character", "Co": "a private character"}
"""Unicode categories that are neither stored nor shown."""

DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They turn the writing around, so that what is seen is not what is run."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word without its quotes.

    Attributes:
        column: of its first character, from 1, in the words joined by one space.
        cursors: place in the typed text of each character, and one past the last; from 1.
    """

    text: str
    column: int
    cursors: tuple[int, ...]

    def spot(self, index: int = 0) -> Spot:
        """Where the character at `index` stands."""
        index = min(index, len(self.text))
        return Spot(self.column + index, self.cursors[index])


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, taken apart.

    Attributes:
        verb: the verb; `add` where none was typed.
        at: where the verb stands.
        words: the words behind it.
        end: just behind the last word: where something is missing.
        text: the whole line with its verb.
    """

    verb: str
    at: Spot
    words: tuple[Word, ...]
    end: Spot
    text: str


def words_of(spec: str | Sequence[str]) -> tuple[Word, ...]:
    """The words of a text, or of words that a shell has split.

    Raises:
        RefusedSpec: more than one line, an unclosed quote, a character that is neither stored nor shown.
    """
    if isinstance(spec, str):
        _check_length(spec)
        _check_one_line(spec)
        words = _numbered(_split(spec))
    else:
        _check_length(" ".join(spec))
        words = _as_they_are(spec)
    for word in words:
        _check_characters(word)
    return words


def split_again(word: Word) -> tuple[Word, ...]:
    """The words of a spec that came as one quoted string."""
    shift = word.column - 1
    again = _numbered(_split(word.text))
    return tuple(
        Word(each.text, each.column + shift, tuple(word.spot(cursor - 1).cursor for cursor in each.cursors))
        for each in again
    )


def joined(words: Iterable[Word]) -> str:
    """The words joined by one space: what columns count in."""
    return " ".join(word.text for word in words)


def end_of(words: Sequence[Word]) -> Spot:
    """Just behind the last word: where something is missing."""
    if not words:
        return Spot(1, 1)
    last = words[-1].spot(len(words[-1].text))
    return Spot(last.column + 1, last.cursor + 1)


def _as_they_are(texts: Sequence[str]) -> tuple[Word, ...]:
    words: list[Word] = []
    column = 1
    for text in texts:
        words.append(Word(text, column, tuple(range(column, column + len(text) + 1))))
        column += len(text) + 1
    return tuple(words)


def _check_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        spot = Spot(MAX_CHARACTERS + 1, MAX_CHARACTERS + 1)
        raise RefusedSpec(spot, f"longer than {MAX_CHARACTERS:,} characters, so hardly a spec", "enter one command")


def _check_one_line(text: str) -> None:
    """Refuse a paste of several lines at the end of its first."""
    start = len(text) - len(text.lstrip())
    body = text.rstrip()
    index = next((index for index in range(start, len(body)) if body[index] in LINE_ENDS), None)
    if index is None:
        return
    try:
        column = len(joined(_numbered(_split(body[:index])))) + 1
    except RefusedSpec:
        column = index + 1  # inside a quote
    lines = sum(bool(line.strip()) for line in body.splitlines())
    reason = f"{lines} lines; a spec is one line"
    raise RefusedSpec(Spot(column, index + 1), reason, "enter them one by one, or pipe them into `queue PROFILE add`")


def _check_characters(word: Word) -> None:
    for index, character in enumerate(word.text):
        kind = UNSAFE.get(unicodedata.category(character))
        kind = "a line end" if character in LINE_ENDS else kind
        kind = "a mark that turns the writing around" if character in DIRECTION_MARKS else kind
        if kind is not None:
            reason = f"{kind}, U+{ord(character):04X}, which is neither stored nor shown"
            raise RefusedSpec(word.spot(index), reason, "leave it out")


def _numbered(split: Iterator[tuple[str, tuple[int, ...]]]) -> tuple[Word, ...]:
    words: list[Word] = []
    column = 1
    for text, cursors in split:
        words.append(Word(text, column, cursors))
        column += len(text) + 1
    return tuple(words)


def _split(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Words with the place of each character, split at white space outside of quotes."""
    index = 0
    while index < len(text):
        if text[index].isspace():
            index += 1
            continue
        characters, index = _one_word(text, index)
        places = tuple(place + 1 for _, place in characters)
        yield "".join(character for character, _ in characters), (*places, index + 1)


def _one_word(text: str, index: int) -> tuple[list[tuple[str, int]], int]:
    """Characters of the word that starts at `index` with their places, and where it ends."""
    characters: list[tuple[str, int]] = []
    quote, opened = "", index
    while index < len(text) and (quote or not text[index].isspace()):
        character = text[index]
        escapes = character == "\\" and quote != "'" and index + 1 < len(text)
        if escapes and (not quote or text[index + 1] in '"\\'):
            index += 1
            characters.append((text[index], index))
        elif quote and character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote, opened = character, index
        else:
            characters.append((character, index))
        index += 1
    if quote:
        raise RefusedSpec(Spot(opened + 1, opened + 1), f"the quote {quote} is not closed", f"close it with {quote}")
    return characters, index
