"""An engine's `--help` as argparse prints it: its flags, which of them take a value, and from which choices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPTION: Final = re.compile(r"( +)(-{1,2}[A-Za-z0-9].*)")
_HELP: Final = re.compile(r"( +)-h, --help\b")
_NAME: Final = re.compile(r"-{1,2}[A-Za-z0-9][A-Za-z0-9_.-]*")
_CHOICES: Final = re.compile(r"\{([^{}]*)\}")
_VERSION: Final = re.compile(r"= +(?:.* )?v?([0-9]+\.[0-9]+[A-Za-z0-9.+!-]*)\s*")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, by all its names.

    Attributes:
        takes_value: False for a bare flag.
        choices: the values that it may have; empty when any will do.
    """

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Help:
    """What an engine says of its command line.

    Attributes:
        flags: by each of their names.
        text: the whole, for what is only said in words.
        version: by `--version`, where the engine has it.
    """

    flags: Mapping[str, Flag] = field(default_factory=dict)
    text: str = ""
    version: str | None = None

    def abbreviated(self, name: str) -> tuple[str, ...]:
        """Flags that `name` is a beginning of; argparse takes it when there is exactly one."""
        return tuple(sorted(known for known in self.flags if known.startswith(name)))

    def mentions(self, word: str) -> bool:
        """Whether the help has the word anywhere, in whatever case."""
        return word.casefold() in self.text.casefold()


def parse_help(lines: list[str]) -> Help:
    """The flags of argparse's help. Never raises; what is no help has no flags.

    An option stands at the indentation of `-h, --help`; deeper lines are descriptions or the usage, which may begin
    with a flag's name as well.
    """
    flags: dict[str, Flag] = {}
    version = None
    indent: str | None = next((match[1] for line in lines if (match := _HELP.match(line))), None)
    for line in lines:
        match = _OPTION.fullmatch(line)
        if match is not None and (indent is None or match[1] == indent):
            indent = match[1]
            for flag in _flags(match[2]):
                flags.update(dict.fromkeys(flag.names, flag))
        elif said := _VERSION.fullmatch(line):
            version = said[1]
    return Help(flags, "\n".join(lines), version)


def _flags(invocation: str) -> Iterator[Flag]:
    """The flag of one line `-h, --help  text` or `--a X, --b X  text`."""
    shown = re.split(r"\s{2,}", invocation, maxsplit=1)[0]
    bare = _CHOICES.sub("{}", shown)  # choices may hold commas
    parts = [part.strip() for part in bare.split(",")]
    names = tuple(match[0] for part in parts if (match := _NAME.match(part)))
    if not names:
        return
    choices = _CHOICES.search(shown)
    values = tuple(choice.strip() for choice in choices[1].split(",")) if choices else ()
    yield Flag(names, any(part != match[0] for part in parts if (match := _NAME.match(part))), values)
