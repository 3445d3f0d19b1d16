"""A text file's bytes as text: UTF-8 alone, and no character that looks like nothing but changes the meaning."""

from __future__ import annotations

import codecs
import unicodedata

from ddconsole.core.errors import ProfileError

MAX_BYTES = 1024 * 1024
"""A profile is a page; a file beyond this is something else that was named by mistake."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LINE_BREAKS = frozenset("\x0b\x0c\x85\u2028\u2029")
"""Characters that YAML or an editor takes for a line's end though none is seen."""
_LOOK_LIKE_NOTHING = frozenset("\xa0\u2007\u202f\ufeff")
"""Spaces that are not YAML's, and a byte order mark in the middle."""


def decoded(raw: bytes, name: str) -> str:
    """The text of a file. `name` is how errors call the file; a UTF-8 byte order mark at the start is passed over.

    Raises:
        ProfileError: too big, another encoding, or a character that would be misread; with line and column.
    """
    if len(raw) > MAX_BYTES:
        raise ProfileError(
            f"{name}:1:1: {len(raw):,} bytes; a profile has at most {MAX_BYTES:,}, is it the right file?"
        )
    if raw.startswith(_UTF16) or b"\x00" in raw[:64]:
        raise ProfileError(f"{name}:1:1: the file is UTF-16 or binary; save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(raw[: error.start].decode("utf-8", "replace"))
        byte = raw[error.start]
        raise ProfileError(
            f"{name}:{line}:{column}: the byte 0x{byte:02x} is not UTF-8 (Latin-1, perhaps: {chr(byte)});"
            " save the file as UTF-8"
        ) from None
    _refuse_unseen(text, name)
    return text


def _place(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows `before`."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _refuse_unseen(text: str, name: str) -> None:
    """Refuse characters that cannot be seen and would be misread; a comment may hold the harmless ones."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.isascii() and line.isprintable():
            continue
        comment = line.lstrip().startswith("#")
        for column, letter in enumerate(line.rstrip("\r"), start=1):
            if _breaks(letter) or (not comment and _unseen(letter)):
                raise ProfileError(f"{name}:{number}:{column}: {_called(letter)} cannot be seen here; take it out")


def _breaks(letter: str) -> bool:
    return letter in _LINE_BREAKS or (unicodedata.category(letter) == "Cc" and letter != "\t")


def _unseen(letter: str) -> bool:
    return letter in _LOOK_LIKE_NOTHING or unicodedata.category(letter) == "Cf"


def _called(letter: str) -> str:
    name = unicodedata.name(letter, "").lower()
    return f"the character U+{ord(letter):04X}" + (f" ({name})" if name else "")
