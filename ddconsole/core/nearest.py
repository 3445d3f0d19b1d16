"""The nearest valid name for one that is unknown."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` was most likely meant to be, or None where nothing is near.

    Case does not count, and `-` and `_` are the same.
    """
    names: dict[str, str] = {}
    for name in known:
        names.setdefault(_plain(name), name)
    close = difflib.get_close_matches(_plain(word), names, n=1, cutoff=0.6)
    return names[close[0]] if close else None


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_")
