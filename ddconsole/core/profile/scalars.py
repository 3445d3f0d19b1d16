"""Numbers and flags as they are typed in a profile, and the model that refuses unknown keys."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

TRUE_WORDS = frozenset({"true", "yes", "on"})
FALSE_WORDS = frozenset({"false", "no", "off"})


def whole(value: Any) -> Any:
    """A whole number as typed: `12`, `012` and `1e3` are decimal."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            raise ValueError("expected a whole number") from None
        if not math.isfinite(number) or number != int(number):
            raise ValueError("expected a whole number")
        return int(number)
    if isinstance(value, bool):
        raise ValueError("expected a whole number")
    return value


def _real(value: Any) -> Any:
    """A finite number as typed."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("expected a number") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value


def _flag(value: Any) -> Any:
    """true or false, in YAML's words."""
    if isinstance(value, str):
        word = value.lower()
        if word in TRUE_WORDS | FALSE_WORDS:
            return word in TRUE_WORDS
        raise ValueError("expected true or false")
    return value


Whole = Annotated[int, BeforeValidator(whole)]
Real = Annotated[float, BeforeValidator(_real)]
Flag = Annotated[bool, BeforeValidator(_flag)]


class Model(BaseModel):
    """Strict about keys; frozen, so that a profile never changes under a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)
