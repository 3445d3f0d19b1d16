"""Answers of a script that asks many things at once: named sections of lines.

A section begins with `= NAME`; each of its lines begins with a space. So no text of the host, whatever it is, can
pass for the beginning of a section.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Sections: TypeAlias = "dict[str, list[str]]"

SECTION: Final = r"""
section() { printf '= %s\n' "$1"; }
say() { awk '{ print " " $0 }'; }
tab=$(printf '\t')
# at most $1 seconds for a command, where the host has timeout(1)
within() {
  limit=$1; shift
  if command -v timeout >/dev/null 2>&1; then timeout -k 2 "$limit" "$@"; else "$@"; fi
}
"""
"""Shell functions of every such script: `section NAME`, `... | say`."""

LINE_LIMIT: Final = 400_000
"""Characters of a line that are read; a config.json travels as one line."""


def sections(text: str) -> Sections:
    """The lines of each section. Text before the first one is left out."""
    found: Sections = {}
    lines: list[str] | None = None
    for line in text.split("\n"):
        if line.startswith("= "):
            lines = found.setdefault(line[2:].strip(), [])
        elif line.startswith(" ") and lines is not None:
            lines.append(line[1:LINE_LIMIT].rstrip("\r"))
    return found


def rows(lines: list[str], mark: str, cells: int) -> list[list[str]]:
    """The tab-separated rows that begin with `mark` and have `cells` more cells."""
    split = (line.split("\t") for line in lines)
    return [row[1:] for row in split if row[0] == mark and len(row) == cells + 1]


def value(lines: list[str], mark: str) -> str | None:
    """The cell of the first row `mark<TAB>value`, or None."""
    return next((row[0].strip() for row in rows(lines, mark, 1)), None)


def whole(text: str | None) -> int | None:
    """A whole number of at most 18 digits, or None."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 18 else None


def shown(text: str, limit: int = 200) -> str:
    """Text of the host in a message: printable, and cut."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:limit]


GIB: Final = 1024**3


def gib(amount: int) -> str:
    """Bytes in words: `594 GiB`, `2.5 GiB`, `120 MiB`, `640 bytes`."""
    if amount < 1024**2:
        return f"{amount:,} bytes"
    if amount >= 10 * GIB:
        return f"{amount / GIB:,.0f} GiB"
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount // 1024**2} MiB"
