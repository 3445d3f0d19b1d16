"""What is wrong with a profile, as values: where, what was expected, what was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KeyPath = tuple[str | int, ...]
UNKNOWN_KEY = "unknown key"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: keys and list places from the top, `("engine", "port")`.
        message: what was expected, as a sentence without its capital.
        missing: the key that `path` ends with is not in the file; the problem is its absence.
        unknown: the key that `path` ends with is no key of a profile.
    """

    path: KeyPath
    message: str
    missing: bool = False
    unknown: bool = False

    def dotted(self) -> str:
        """The path as `passes.quick.throughput.concurrency[0]`."""
        return dotted(self.path)


class InvalidProfileError(ValueError):
    """Data that are no profile, with everything that is wrong with them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.dotted()}: {problem.message}" for problem in self.problems))


class KeyRuleError(ValueError):
    """A rule of a whole section that one of its keys breaks; `path` leads from the section to the key."""

    def __init__(self, *path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def dotted(path: KeyPath) -> str:
    """A path as it is written in messages: dots between keys, list places in brackets from 0."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def from_pydantic(errors: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Problems out of the list that pydantic's ValidationError gives; alternatives of one value become one problem."""
    found: dict[KeyPath, Problem] = {}
    for error in errors:
        problem = _problem(error, data)
        earlier = found.get(problem.path)
        if earlier is not None and problem.message != earlier.message:
            problem = Problem(problem.path, _either(earlier.message, problem.message))
        found[problem.path] = problem
    return tuple(found.values())


def _problem(error: Mapping[str, Any], data: Mapping[str, Any]) -> Problem:
    kind = error["type"]
    path = _real_path(error["loc"], data, missing=kind == "missing")
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, KeyRuleError):
        return Problem((*path, *cause.path), str(cause))
    if kind == "missing":
        return Problem(path, "a needed key is missing", missing=True)
    if kind == "extra_forbidden":
        return Problem(path, UNKNOWN_KEY, unknown=True)
    value = error.get("input")
    whole_section = kind == "value_error" and isinstance(value, dict)
    return Problem(path, _expected(error) + ("" if whole_section else _as_read(value)))


def _real_path(loc: Sequence[str | int], data: Any, *, missing: bool) -> KeyPath:
    """The part of pydantic's place that stands in the data; it also names branches of unions and validators."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        if _holds(data, part):
            data = data[part]
        elif not (missing and index == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)


def _holds(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _expected(error: Mapping[str, Any]) -> str:
    """What was expected, in words."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WORDS:
        return _WORDS[kind].format(**context)
    if kind == "value_error":
        return str(context["error"])
    return str(error["msg"])


def _as_read(value: Any) -> str:
    """What stands there instead, where it is short enough to help."""
    if value is None:
        return "; read nothing"
    if isinstance(value, dict):
        return "; read keys with values"
    if isinstance(value, list):
        return "; read a list" if value else "; read an empty list"
    return f"; read {str(value)[:60]!r}"


def _either(first: str, second: str) -> str:
    """`expected a whole number or 'auto'; read 'x'`."""
    head, _, read = first.partition(";")
    other = second.partition(";")[0].removeprefix("expected ")
    return f"{head} or {other}" + (f";{read}" if read else "")


_WORDS = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list, such as [first, second]",
    "dict_type": "expected keys with values",
    "model_type": "expected keys with values",
    "model_attributes_type": "expected keys with values",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "greater_than": "expected more than {gt:g}",
    "greater_than_equal": "expected at least {ge:g}",
    "less_than": "expected less than {lt:g}",
    "less_than_equal": "expected at most {le:g}",
    "too_short": "expected at least {min_length} item(s)",
    "string_too_short": "expected some text",
}
