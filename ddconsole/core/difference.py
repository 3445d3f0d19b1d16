"""What differs between two results besides their numbers: knobs, arguments, command, environment, host, program."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from ddconsole.core.boots import suite_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IGNORED = frozenset({"command", "boot", "proved", "unproved", "effective", "workload", "suite", "engine_version"})
"""Parts of a recipe that are told elsewhere, or that differ between any two attempts."""

VOLATILE = ("pid", "port", "uptime", "free", "used", "temperature", "load", "age", "seconds", "measured_at")
"""Names of host facts that change by themselves; a word of a fact's path."""

OWN_FLAGS = frozenset({"--port"})
"""Flags that the console chooses for each launch."""


class Change(NamedTuple):
    """One thing that differs. None stands for "has none"."""

    name: str
    a: Any
    b: Any


def changes(
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    recipe_a: Mapping[str, Any] | None = None,
    recipe_b: Mapping[str, Any] | None = None,
) -> list[Change]:
    """Everything that differs between two results, what was asked for first; nothing volatile."""
    mine, theirs = dict(_facts(a, recipe_a or {})), dict(_facts(b, recipe_b or {}))
    names = dict.fromkeys([*mine, *theirs])
    return [Change(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]


def flags_of(command: str) -> dict[str, str]:
    """The flags of a command line with their values, `true` for a bare one; words in front of the first flag are
    `command`. What is no shell text is taken at its blanks."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    flags: dict[str, str] = {}
    name = "command"
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            flags[name] = value if equals else "true"
        elif name != "command" and flags[name] == "true":
            flags[name] = word
        else:
            flags[name] = f"{flags.get(name, '')} {word}".strip()
    return {flag: value for flag, value in flags.items() if flag not in OWN_FLAGS}


def _facts(item: Mapping[str, Any], recipe: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _flat("", item.get("config") or {})
    yield from _flat("effective", item.get("effective") or {})
    yield from _flat("workload", item.get("workload") or {})
    yield "suite", suite_of(item)
    yield "engine_version", item.get("engine_version")
    yield "measured_on", item.get("measured_on")
    for flag, value in flags_of(str(recipe.get("command") or "")).items():
        yield f"command {flag}" if flag != "command" else flag, value
    yield from ((name, value) for name, value in _flat("", recipe, skip=IGNORED) if not _is_volatile(name))


def _flat(prefix: str, values: Mapping[str, Any], skip: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Nested values under dotted names, lists of objects by their places; other lists as their text."""
    for name, value in values.items():
        if name in skip:
            continue
        path = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, dict):
            yield from _flat(path, value)
        elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
            yield from _flat(path, {str(place): one for place, one in enumerate(value)})
        else:
            yield path, ", ".join(map(str, value)) if isinstance(value, list) else value


def _is_volatile(name: str) -> bool:
    words = name.lower().replace("_", ".").split(".")
    moving = any(word in words for word in VOLATILE) or ("clocks" in words and "max" not in words)
    return name.startswith("host_facts") and moving
