"""What Tab makes of a line of the queue's language, and the console's own words in it: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.order import WAYS
from ddconsole.core.spec import VERBS
from ddconsole.tui.facts import PASSES
from ddconsole.tui.form import SHORT
from ddconsole.tui.keys import ENDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OWN_WORDS = {
    "q": "quit", "quit": "quit", "q!": "quit", "wq": "quit", "exit": "quit",
    "help": "help", "h": "help", "?": "help", "order": "order",
}  # fmt: skip
"""Words that the console itself understands, and the action that each means."""

OWN_DEEDS = {"quit": "leave the console", "help": "every key and every verb", "order": "look at a better order"}
"""What they do, in words."""

IDLE, RUNNING = ("queued", "held", "idea"), ("running",)
NAMES: dict[str, tuple[str, ...]] = {
    "edit": (*IDLE, *RUNNING), "move": IDLE, "hold": ("queued",), "release": ("held",), "remove": IDLE,
    "cancel": RUNNING, "retry": ENDED, "clone": (*RUNNING, *IDLE, *ENDED), "after": (*RUNNING, *IDLE, *ENDED),
    "after!": (*RUNNING, *IDLE, *ENDED),
}  # fmt: skip
"""States of the experiments that a verb may name."""

SEVERAL = ("edit", "move", "hold", "release", "remove", "retry")
"""Verbs that take any number of ids."""

SPECS = ("add", "next", "after", "after!", "clone", "edit", "sweep")
"""Verbs that take a spec."""

KEYS = (
    *(f"{name}=" for name in SHORT), *(f"{name}=" for name in SHORT.values()), "algorithm=", "passes=", "repeats=",
    "suite=", "note=", "base=", "arg.",
)  # fmt: skip
VALUES: dict[str, tuple[str, ...]] = {
    "algorithm": ("tree", "chain", "off"), "passes": PASSES, "suite": ("quick", "confirm"), "base": ("best", "default"),
    "B": ("match", "2b", "3b"), "budget": ("match", "2b", "3b"), "K": ("auto",), "topk": ("auto",), "W": ("auto",),
    "window": ("auto",),
}  # fmt: skip
PLACES = ("top", "up", "down", "bottom")


@dataclass(frozen=True, slots=True)
class Completion:
    """The word that is being written begins at `start`; `found` are the words that it could become."""

    start: int
    found: tuple[str, ...]

    def common(self, text: str) -> str:
        """`text` with its last word as far as all of them agree; a single one is finished by a space."""
        if len(self.found) == 1:
            only = self.found[0]
            return text[: self.start] + only + ("" if only.endswith(("=", ".")) else " ")
        return text[: self.start] + (_agreed(self.found) or text[self.start :])


class Tabs:
    """Presses of Tab: the first writes on as far as it is clear, the next go round what there is.

    Attributes:
        choices, at: what there is, and which of it stands in the line; -1 for none of it.
    """

    def __init__(self) -> None:
        self.choices: tuple[str, ...] = ()
        self.at = -1
        self._start = 0
        self._text: str | None = None

    def press(self, text: str, items: Sequence[Mapping[str, Any]]) -> str | None:
        """The line after one more Tab; None when there is nothing to write."""
        if text == self._text:
            self.at = (self.at + 1) % len(self.choices)
            self._text = text[: self._start] + self.choices[self.at]
            return self._text
        found = complete(text, items)
        self.end()
        if len(found.found) > 1:
            self.choices, self._start, self._text = found.found, found.start, found.common(text)
        return found.common(text) if found.found else None

    def goes_on(self, text: str) -> bool:
        """The line is still the one that Tab has written."""
        return text == self._text

    def end(self) -> None:
        """Something else was typed."""
        self.choices, self.at, self._text = (), -1, None


def complete(text: str, items: Sequence[Mapping[str, Any]]) -> Completion:
    """What could stand at the end of `text`. `items` are those of the queue's document."""
    start = max(text.rfind(" "), text.rfind("\t")) + 1
    before, word = text[:start].split(), text[start:]
    if before and "=" in word:
        start += max(word.rfind("="), word.rfind(",")) + 1
        return Completion(start, _beginning(VALUES.get(word.partition("=")[0], ()), text[start:]))
    options = list(_options(before, items)) if before else [*VERBS, *OWN_DEEDS]
    return Completion(start, _beginning(options, word))


def own_word(text: str) -> str | None:
    """The action that a line means which is no command of the queue: `quit`, `help`, `order information`."""
    words = text.split()
    deed = OWN_WORDS.get(words[0].lower()) if words else None
    if deed == "order":
        fits = len(words) == 1 or (len(words) == 2 and words[1] in WAYS)
        return " ".join(words) if fits else None
    return deed if deed == "help" or len(words) == 1 else None


def _agreed(words: Sequence[str]) -> str:
    """What all of them begin with; nothing where there are none."""
    if not words:
        return ""
    first, last = min(words), max(words)
    return first[: next((at for at, letter in enumerate(first) if letter != last[at]), len(first))]


def _options(before: Sequence[str], items: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    verb, named = before[0], sum("=" not in word for word in before[1:])
    if verb == "order" and len(before) == 1:
        yield from WAYS
    if verb in NAMES and (not named or verb in SEVERAL):
        yield from _ids(items, NAMES[verb], before[1:])
    if verb == "move" and named:
        yield from PLACES
    if verb in SPECS and (named or verb not in NAMES or verb.startswith("after")):
        written = {word.partition("=")[0] for word in before[1:]}
        yield from (key for key in KEYS if key.rstrip("=") not in written)


def _ids(items: Sequence[Mapping[str, Any]], states: tuple[str, ...], written: Sequence[str]) -> Iterable[str]:
    """Experiments in those states, and the sweeps that they belong to, in the queue's order."""
    fitting = [item for item in items if item.get("state") in states]
    ids = [str(item["id"]) for item in fitting] + [str(item["sweep"]) for item in fitting if item.get("sweep")]
    return (id_ for id_ in dict.fromkeys(ids) if id_ not in written)


def _beginning(options: Iterable[str], word: str) -> tuple[str, ...]:
    """Options that begin so; an id is found by either case."""
    exact = tuple(option for option in options if option.startswith(word))
    return exact or tuple(option for option in options if option[:1] in "ES" and option.startswith(word.upper()))
