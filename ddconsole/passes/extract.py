"""Which part of an answer is the code.

The rule that was used is kept with the score: reasoning is removed first; then the last Python block that defines the
entry point, any other block that does, the last Python block, and without fences the text itself, tried as code.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN_THINK = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
CLOSE_THINK = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
PYTHON_NAMES = frozenset({"", "py", "python", "python2", "python3", "py3", "pycon", "ipython"})
CODE_START = re.compile(
    r"^(?:from\s+\w[\w.]*\s+import\b|import\s+\w|(?:async\s+)?def\s+\w|class\s+\w|@\w)", re.MULTILINE
)

MAX_PROSE_LINES = 1000
"""Lines that are tried when code stands in prose without a fence; each try parses what is left."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The code of an answer.

    Attributes:
        code: what to run; None when the answer holds none.
        rule: how it was found, or why nothing was.
        cut: the answer ended in the middle: its block, its reasoning or its text was never closed.
    """

    code: str | None
    rule: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `closed` is False when the text ended inside of it."""

    language: str
    code: str
    closed: bool


def extract_answer(text: str, entry_point: str, finish_reason: str | None = None) -> Extracted:
    """The code that answers a task.

    Args:
        text: the answer, which may hold reasoning between think tags, and any line ends.
        entry_point: the name that the tests will call.
        finish_reason: `length` means that max_tokens cut it.
    """
    was_cut = finish_reason == "length"
    spoken = _without_reasoning(text.replace("\r\n", "\n").replace("\r", "\n"))
    if spoken is None:
        return Extracted(None, "reasoning never ended", cut=was_cut)
    if not spoken.strip():
        return Extracted(None, "empty answer", cut=was_cut)
    blocks = list(_blocks(spoken))
    if blocks:
        block, rule = _choose(blocks, entry_point)
        if block is not None:
            return Extracted(block.code, rule, cut=was_cut and not block.closed)
    return _from_prose(spoken, entry_point, was_cut)


def _without_reasoning(text: str) -> str | None:
    """The text after the last end of reasoning; None when reasoning began and never ended."""
    ends = list(CLOSE_THINK.finditer(text))
    rest = text[ends[-1].end() :] if ends else text
    opened = OPEN_THINK.match(rest.lstrip())
    return None if opened else rest


def _blocks(text: str) -> Iterator[Block]:
    """The fenced blocks, by CommonMark's rules, in any indentation.

    A fence inside a docstring does not end its block: while a triple quote is open, a closing fence is content.
    """
    fence: re.Match[str] | None = None
    content: list[str] = []
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence is None:
            if found:
                fence, content = found, []
        elif found and _closes(found, fence) and not _inside_docstring(content):
            yield _block(fence, content, closed=True)
            fence = None
        else:
            content.append(line.removeprefix(fence["indent"]))
    if fence is not None:
        yield _block(fence, content, closed=False)


def _closes(found: re.Match[str], fence: re.Match[str]) -> bool:
    same = found["mark"][0] == fence["mark"][0] and len(found["mark"]) >= len(fence["mark"])
    return same and not found["info"].strip()


def _inside_docstring(content: list[str]) -> bool:
    text = "\n".join(content)
    return text.count('"""') % 2 == 1 or text.count("'''") % 2 == 1


def _block(fence: re.Match[str], content: list[str], *, closed: bool) -> Block:
    info = fence["info"].strip().strip("{}").lstrip(".")
    language = re.split(r"[\s,:;{]", info, maxsplit=1)[0].lower()
    return Block(language, "\n".join(content) + "\n", closed)


def _choose(blocks: list[Block], entry_point: str) -> tuple[Block | None, str]:
    """The block to run and the rule that chose it."""
    python = [block for block in blocks if block.language in PYTHON_NAMES]
    defines = re.compile(
        rf"^\s*(?:(?:async\s+)?def|class)\s+{re.escape(entry_point)}\b|^{re.escape(entry_point)}\s*=", re.M
    )
    for rule, candidates in (
        ("last python block with the entry point", [block for block in python if defines.search(block.code)]),
        ("last block with the entry point", [block for block in blocks if defines.search(block.code)]),
        ("last python block", [block for block in python if block.code.strip()]),
    ):
        if candidates:
            return candidates[-1], rule
    return None, "no python block"


def _from_prose(text: str, entry_point: str, was_cut: bool) -> Extracted:
    """Text without a usable fence: as it stands, or from its first line of code to where it stops to be code."""
    if _compiles(text) and entry_point in text:
        return Extracted(text, "whole text", cut=was_cut)
    start = CODE_START.search(text)
    if start is None or entry_point not in text[start.start() :]:
        return Extracted(None, "no code", cut=was_cut)
    lines = text[start.start() :].split("\n")[:MAX_PROSE_LINES]
    for end in range(len(lines), 0, -1):
        code = "\n".join(lines[:end]) + "\n"
        if entry_point in code and _compiles(code):
            return Extracted(code, "code in prose", cut=was_cut)
    return Extracted("\n".join(lines), "code in prose", cut=was_cut)


def _compiles(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
