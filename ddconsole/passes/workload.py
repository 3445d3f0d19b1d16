"""The workload that a profile describes: its prompts, and the key under which results on them are kept."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.core.experiment import Workload
from ddconsole.passes import humaneval, shared_prefix
from ddconsole.passes.prompts import CODING_SUITES, PROMPT_SETS, load_prompts

if TYPE_CHECKING:
    from ddconsole.core.ports import Prompt
    from ddconsole.core.profile import Profile, WorkloadSection

DIGEST_DIGITS = 12
"""Hexadecimal digits of a file's SHA-256 that stand in a key."""


FIRST_CONTENT = {
    "code": "cd379ec7a760", "mixed": "a15b190c0556", "long": "a7ae16d0ec3e", "agentic": "0ea1b428694a",
    "small": "89e0ff51553e",
}  # fmt: skip
"""What a shipped file held while its name alone was its key: a result that names no hash is of exactly this content."""


def workload_of(profile: Profile) -> Workload:
    """What the profile's numbers hold for; equal workloads make results comparable."""
    section = profile.workload
    return Workload(prompts_key(section), section.temperature, section.thinking)


def prompts_key(section: WorkloadSection) -> str:
    """The name of the prompt set, with what else decides which prompts these are.

    A shipped set is its name, with the hash of its content once that was edited (`shipped_key`). A file is its path
    and the hash of its content (`mine.jsonl#3f2a9c104b7d`): when a line of it changes, older results are of another
    workload. Generated prompts are what they were generated from.
    """
    if section.prompts == shared_prefix.NAME:
        return shared_prefix.label(section.shared_prefix)
    if section.prompts in PROMPT_SETS:
        return shipped_key(section.prompts)
    digest = _digest(section.prompts)
    return f"{section.prompts}#{digest}" if digest else section.prompts


def suite_key(name: str) -> str:
    """The name of a coding suite, a file's with the hash of its content, a shipped one's as `shipped_key`."""
    if name in CODING_SUITES:
        return shipped_key(name)
    digest = "" if name == humaneval.SUITE else _digest(name)
    return f"{name}#{digest}" if digest else name


def shipped_key(name: str) -> str:
    """`code` as long as it holds what it held at first, `code#3f2a9c104b7d` since it was edited.

    Results of older versions name no hash, and are of the first content: they go on pairing with it, and with no other.
    """
    digest = _shipped_digest(name)
    return name if digest == FIRST_CONTENT.get(name) else f"{name}#{digest}"


def prompts_of(section: WorkloadSection, max_tokens: int) -> tuple[Prompt, ...]:
    """The prompts themselves.

    Raises:
        UsageError: there is no such set or file, or a line of it cannot be read (with its number).
    """
    if section.prompts == shared_prefix.NAME:
        return shared_prefix.shared_prefix_prompts(section.shared_prefix, max_tokens)
    return load_prompts(section.prompts, max_tokens)


@cache
def _shipped_digest(name: str) -> str:
    content = (resources.files("ddconsole.passes") / "suites" / f"{name}.json").read_bytes()
    return hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]


def _digest(name: str) -> str:
    """Of a file's bytes; empty where it cannot be read, which whoever loads it will say."""
    path = Path(name)
    try:
        stat = path.stat()
        return _digest_of(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=16)
def _digest_of(path: Path, _changed_ns: int, _size: int) -> str:
    """Read again only when the file has changed: previews ask for it with every key."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST_DIGITS]
