"""Prompt sets and coding suites: the shipped ones by name, or a user's JSONL file by path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ddconsole.core.errors import UsageError
from ddconsole.core.ports import Prompt
from ddconsole.passes import humaneval

PROMPT_SETS = ("code", "mixed", "long", "agentic")
"""The prompt sets that ship."""

CODING_SUITES = ("small",)
"""The coding suites that ship; `humaneval` comes from its package."""


@dataclass(frozen=True, slots=True)
class Task:
    """A coding task with hidden tests.

    Attributes:
        entry_point: the name that the tests call.
        tests: Python source; every top-level statement that asserts, or calls `check`, is one test.
        reference: a solution that passes.
        preamble: code that stands in front of every answer: imports and helpers that the task gives.
    """

    id: str
    prompt: str
    entry_point: str
    tests: str
    reference: str = ""
    preamble: str = ""


def load_prompts(name: str, max_tokens: int) -> tuple[Prompt, ...]:
    """A shipped prompt set by its name, or a JSONL file with `{"id", "text" | "prompt" | "messages"}` a line.

    Raises:
        UsageError: there is no such set or file, or a line of it cannot be read (with its number).
    """
    entries = _shipped(name, "prompts") if name in PROMPT_SETS else _jsonl(_user_file(name, PROMPT_SETS, "prompt set"))
    prompts = tuple(_prompt(entry, where, number, max_tokens) for number, (where, entry) in enumerate(entries, 1))
    _refuse_doubles(name, [prompt.id for prompt in prompts])
    return prompts


def load_suite(name: str) -> tuple[Task, ...]:
    """A shipped coding suite by its name, `humaneval` from its package, or a JSONL file with
    `{"id", "prompt", "entry_point", "tests"}` a line (`reference` and `preamble` where it has them).

    Raises:
        UsageError: there is no such suite, package or file, or a line of it cannot be read (with its number).
    """
    if name == humaneval.SUITE:
        return tuple(_task(entry, where) for where, entry in humaneval.entries())
    entries = _shipped(name, "tasks") if name in CODING_SUITES else _jsonl(_user_file(name, CODING_SUITES, "suite"))
    tasks = tuple(_task(entry, where) for where, entry in entries)
    _refuse_doubles(name, [task.id for task in tasks])
    return tasks


def _shipped(name: str, key: str) -> list[tuple[str, Any]]:
    """The entries of a file that ships, each with where it stands."""
    text = (resources.files("ddconsole.passes") / "suites" / f"{name}.json").read_text("utf-8")
    data = json.loads(text)
    entries = data[key] if isinstance(data, dict) else data
    return [(f"suites/{name}.json, entry {number}", entry) for number, entry in enumerate(entries, 1)]


def _user_file(name: str, shipped: tuple[str, ...], what: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"no {what} {name!r}: it is neither shipped nor a file",
            evidence=(f"shipped: {', '.join(shipped)}",),
            advice="Name a shipped one, or the path of a JSONL file.",
        )
    return path


def _jsonl(path: Path) -> list[tuple[str, Any]]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", advice="A JSONL file in UTF-8 is expected.") from error
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append((f"{path}, line {number}", json.loads(line)))
        except json.JSONDecodeError as error:
            raise UsageError(f"{path}, line {number}: not JSON: {error.msg}", evidence=(line[:200],)) from error
    if not entries:
        raise UsageError(f"{path} holds no entries", advice='Write one JSON object a line: {"id": "a", "text": "…"}')
    return entries


def _prompt(entry: Any, where: str, number: int, max_tokens: int) -> Prompt:
    messages = _messages(entry, where)
    said = "\n\n".join(str(one["content"]) for one in messages)
    text = said or _text(entry, where, "text", "prompt", "messages")
    identity = entry.get("id", f"line-{number}")
    own = entry.get("max_tokens", max_tokens)
    if not isinstance(own, int) or own < 1:
        raise UsageError(f"{where}: max_tokens: expected a whole number above 0, got {own!r}")
    return Prompt(id=str(identity), text=text, max_tokens=min(own, max_tokens), messages=messages)


def _messages(entry: Any, where: str) -> tuple[dict[str, Any], ...]:
    """The chat of an entry, as the endpoint takes it; empty where it has none."""
    chat = entry.get("messages") if isinstance(entry, dict) else None
    if chat is None:
        return ()
    if not isinstance(chat, list) or not chat:
        raise UsageError(f'{where}: messages: expected a list of {{"role": …, "content": …}}')
    if any(isinstance(entry.get(key), str) for key in ("text", "prompt")):
        raise UsageError(f"{where}: expected either messages or text, got both")
    for place, one in enumerate(chat):
        named = isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("role", "content"))
        if not named or not one["content"].strip():
            raise UsageError(
                f"{where}: messages[{place}]: expected a role and a content of text",
                evidence=(json.dumps(one, ensure_ascii=False)[:200],),
            )
    return tuple(chat)


def _task(entry: Any, where: str) -> Task:
    tests = entry.get("tests") if isinstance(entry, dict) else None
    if isinstance(tests, list):
        entry = entry | {"tests": "\n".join(map(str, tests))}
    return Task(
        id=_text(entry, where, "id"),
        prompt=_text(entry, where, "prompt", "text"),
        entry_point=_text(entry, where, "entry_point"),
        tests=_text(entry, where, "tests"),
        reference=str(entry.get("reference", "")),
        preamble=str(entry.get("preamble", "")),
    )


def _text(entry: Any, where: str, *keys: str) -> str:
    """The first of `keys` that holds text."""
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: expected an object, got {type(entry).__name__}")
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and value.strip():
            return value
    raise UsageError(f"{where}: expected text under {' or '.join(keys)}", evidence=(json.dumps(entry)[:200],))


def _refuse_doubles(name: str, ids: list[str]) -> None:
    """Ids pair requests between configs, so each may stand once."""
    for identity in ids:
        if ids.count(identity) > 1:
            raise UsageError(f"{name}: the id {identity!r} stands more than once", advice="Give each entry its own id.")
