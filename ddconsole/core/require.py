"""What a profile's `limits.require` asks of a result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the profile's `limits.require` asks of a figure: at least `least` (a share for coding, else the value)."""

    name: str
    least: float
    text: str


def parse_require(require: Mapping[str, str]) -> tuple[Requirement, ...]:
    """`coding: 5/5`, `coding: 80%`, `tau: 3.5`, `tok_s_e2e: 120`.

    Raises:
        UsageError: an unknown figure, or words that say no number.
    """
    return tuple(_requirement(name, str(text).strip()) for name, text in require.items())


def _requirement(name: str, text: str) -> Requirement:
    if name not in ("coding", "tau", "tok_s_e2e", "tok_s_decode"):
        known = "known: coding, tau, tok_s_e2e, tok_s_decode"
        raise UsageError(f"limits.require: unknown figure {name!r}", evidence=(known,))
    if name == "coding":
        fraction = re.fullmatch(r"(\d+)\s*/\s*([1-9]\d*)", text)
        percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
        if fraction:
            return Requirement(name, int(fraction[1]) / int(fraction[2]), text)
        if percent:
            return Requirement(name, float(percent[1]) / 100, text)
        raise UsageError(f"limits.require.coding: expected 5/5 or 80%, got {text!r}")
    number = re.fullmatch(r"(?:>=\s*)?(\d+(?:\.\d+)?)", text)
    if number is None:
        raise UsageError(f"limits.require.{name}: expected a number, got {text!r}")
    return Requirement(name, float(number[1]), text)
