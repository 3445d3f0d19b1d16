"""JSON on one line that a terminal, a log viewer or an editor shows without obeying it."""

from __future__ import annotations

import json
import re

_UNSEEN = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""C1 controls, direction marks, line separators, what nobody sees, and halves of surrogate pairs, which no file and no
database takes: JSON itself only escapes what is below 0x20."""


def json_line(value: object, *, spaced: bool = False) -> str:
    """`value` as JSON without a line end. Readable text stays as it is; what could be a command is written \\uXXXX.

    Nothing is lost: a reader gets the same strings. NaN is a bug of ours, never written.
    """
    separators = None if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators, allow_nan=False)
    return _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    """Such a character only stands inside a string; beyond the first plane it takes two escapes (RFC 8259)."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
