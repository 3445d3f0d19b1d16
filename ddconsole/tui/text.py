"""Text from the host as data: no escape sequence survives, no markup is read, and width is counted in cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len, set_cell_size
from textual.content import Content

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE_LIMIT = 2_000
"""Characters of one line that a screen ever looks at; the whole line stays in the host's log."""

ELLIPSIS = "…"

Align = Literal["left", "right"]
Severity = Literal["error", "warning", "plain"]

_ESCAPES = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?                        # CSI: colours, cursor
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?  # OSC, DCS: titles, clipboard
    | \x1b[ -/]*[0-~]?                                         # the rest
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Controls, direction marks, and what nobody sees; the joiners of emoji and scripts stay."""
_SURROGATE = re.compile("[\ud800-\udfff]")

_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|Traceback|Exception|[A-Z]\w+Error|out of memory|Segmentation fault|core dumped)\b"
)
_WARNING = re.compile(r"\b(?:WARN(?:ING)?|[A-Z]\w+Warning|deprecated)\b")


def clean(text: object, limit: int = LINE_LIMIT) -> str:
    """One line of harmless text: escape sequences and control characters are gone, tabs and newlines are spaces."""
    line = str(text)[: limit * 2]
    if line.isascii() and line.isprintable():
        return line[:limit]
    line = _ESCAPES.sub("", line)
    line = line.replace("\n", " ").expandtabs(4)
    line = _SURROGATE.sub("�", _CONTROL.sub("", line))
    return line[:limit]


def fit(text: str, width: int, align: Align = "left") -> str:
    """`text` in exactly `width` cells: padded, or cut with an ellipsis."""
    if width <= 0:
        return ""
    cells = cell_len(text)
    if cells > width:
        text, cells = set_cell_size(text, width - 1) + ELLIPSIS, width
    padding = " " * (width - cells)
    return padding + text if align == "right" else text + padding


def fit_content(content: Content, width: int, align: Align = "left") -> Content:
    """`content` in exactly `width` cells, with its styles."""
    if width <= 0:
        return Content("")
    missing = width - content.cell_length
    if missing < 0:
        cut = content.truncate(width - 1)
        return fit_content(cut + Content.styled(ELLIPSIS, _last_style(cut)), width, align)
    if missing == 0:
        return content
    return content.pad_left(missing) if align == "right" else content.pad_right(missing)


def _last_style(content: Content) -> str:
    """The style of the last span, so that an ellipsis looks like what it stands for."""
    style = content.spans[-1].style if content.spans else ""
    return style if isinstance(style, str) else ""


def styled(text: object, style: str = "") -> Content:
    """Harmless text in one style; never read as markup."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def join(parts: Iterable[Content], separator: str = "") -> Content:
    """Parts side by side."""
    return Content(separator).join(parts)


def wrap(parts: Iterable[Content], width: int, gap: str = "  ") -> list[Content]:
    """Parts side by side in as many lines as it takes; a part is never split."""
    lines: list[Content] = []
    line: Content | None = None
    for part in parts:
        longer = part if line is None else join((line, part), gap)
        if line is not None and longer.cell_length > width:
            lines.append(line)
            longer = part
        line = longer
    if line is not None:
        lines.append(line)
    return lines


def wrap_words(text: object, width: int, lines: int) -> list[str]:
    """`text` broken at words into at most `lines` lines of `width` cells; the last is cut with an ellipsis."""
    words = clean(text).split(" ")
    out: list[str] = []
    while words and len(out) < lines:
        line = words.pop(0)
        while words and cell_len(f"{line} {words[0]}") <= width:
            line = f"{line} {words.pop(0)}"
        out.append(line)
    if words and out:
        out[-1] = " ".join([out[-1], *words])
    return [fit(line, width).rstrip() if cell_len(line) > width else line for line in out]


def severity(line: str) -> Severity:
    """A guess at how bad a log line is, by the words that engines use."""
    if _ERROR.search(line):
        return "error"
    return "warning" if _WARNING.search(line) else "plain"
