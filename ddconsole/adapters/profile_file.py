"""Profiles as files: found by name, read strictly, and refused in one message that says where and what to write."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddconsole.adapters import yaml_text
from ddconsole.adapters.paths import find_profile, shipped_profiles
from ddconsole.core.errors import ProfileError
from ddconsole.core.nearest import nearest
from ddconsole.core.profile import key_help, known_keys, parse_profile
from ddconsole.core.profile.problems import InvalidProfileError, Problem, dotted

if TYPE_CHECKING:
    from pathlib import Path

    from ddconsole.adapters.yaml_text import Document, KeyPath
    from ddconsole.core.profile import Profile

MAX_TOLD = 6
"""Further problems that an error names behind its first."""


@dataclass(frozen=True, slots=True)
class LoadedProfile:
    """A profile and where it came from.

    Attributes:
        name: the file's name without its suffix; the queue's key in the store.
        digest: SHA-256 of the file's bytes, in hex: which text a result was measured under.
        document: the file's data with their places, for errors that are found later.
    """

    profile: Profile
    name: str
    path: Path
    digest: str
    document: Document = field(repr=False)

    def error(self, path: KeyPath, message: str, advice: str = "") -> ProfileError:
        """An error of what stands at `path`, such as `("queue", 0)`."""
        return ProfileError(_line(Problem(path, message), self.document, str(self.path)), advice=advice)


def load_profile(name: str) -> LoadedProfile:
    """The profile of that name, or in that file.

    Raises:
        UsageError: there is no such profile.
        ProfileError: it cannot be read; `what` holds file, line, key and what was expected.
    """
    return load_file(find_profile(name))


def load_file(path: Path) -> LoadedProfile:
    """The profile in a file. Raises as `load_profile`."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror or error}") from None
    document = yaml_text.read(raw, str(path))
    profile = _profile(document, str(path))
    return LoadedProfile(profile, path.stem, path, hashlib.sha256(raw).hexdigest(), document)


def parse(raw: bytes, name: str) -> Profile:
    """The profile that a file's bytes mean. `name` is how errors call the file.

    Raises:
        ProfileError: with file, line, column, key, what was expected and, for an unknown key, the nearest valid name.
    """
    return _profile(yaml_text.read(raw, name), name)


def _profile(document: Document, name: str) -> Profile:
    try:
        return parse_profile(document.data)
    except InvalidProfileError as error:
        raise _told(error.problems, document, name) from None


def shipped_text(name: str) -> str:
    """The text of a shipped profile, comments and all: what `profiles new` starts from."""
    return (shipped_profiles() / f"{name}.yaml").read_text(encoding="utf-8")


def _told(problems: tuple[Problem, ...], document: Document, name: str) -> ProfileError:
    """One error for all problems: the first in the file is what happened, the others are its evidence."""
    first, *others = sorted(problems, key=lambda problem: document.place(problem.path))
    more = [_line(problem, document, name) for problem in others[:MAX_TOLD]]
    if len(others) > MAX_TOLD:
        more.append(f"and {len(others) - MAX_TOLD} more")
    return ProfileError(
        _line(first, document, name),
        evidence=tuple(more),
        advice="`ddconsole profiles schema` prints every key and what it takes",
    )


def _line(problem: Problem, document: Document, name: str) -> str:
    """`profiles/x.yaml:7:3: engine.prot: unknown key; did you mean port?`"""
    line, column = document.place(problem.path)
    text = problem.message
    if problem.unknown:
        text += _instead(problem)
    elif problem.missing and key_help(problem.path):
        text += f" ({key_help(problem.path)})"
    return f"{name}:{line}:{column}: {problem.dotted()}: {text}"


def _instead(problem: Problem) -> str:
    """The nearest valid name, and the valid ones where they are few."""
    *above, key = problem.path
    keys = known_keys(tuple(above))
    near = nearest(str(key), keys)
    if near:
        return f"; did you mean {near}?"
    where = dotted(tuple(above)) or "a profile"
    return f"; {where} has {', '.join(keys)}"
