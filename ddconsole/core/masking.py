"""Secrets are masked where text comes in: SGLang prints its API keys in clear and tells them in /server_info."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MASK: Final = "***"

SHORTEST: Final = 4
"""Characters below which a value is no secret worth masking: it would take parts of words away."""

_NAME = r"(?:api[_-]?key|password|passwd|secret|(?:auth|access|hf)[_-]token)"
_ASSIGNED = re.compile(
    rf"(?i)(?P<name>{_NAME}['\"]?\s*[=:]\s*)(?!None\b|null\b)"
    r"(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s,;'\"})\]]+)"
)
_FLAG = re.compile(rf"(?i)(?P<name>--[\w-]{{0,40}}?{_NAME}[ =])(?P<value>\S+)")
_BEARER = re.compile(r"(?i)(?P<name>\bbearer\s+)(?P<value>[\w.~+/=-]{4,})")
_TOKEN = re.compile(r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})")
_CUES: Final = ("key", "passw", "secret", "bearer ", "hf_", "sk-")
_TOKEN_CUES: Final = ("h_token", "s_token", "h-token", "s-token", "f-token")
"""Without one of these, in any case, a text holds no secret that we could tell; found faster than any pattern."""
_KEY = re.compile(rf"[\w-]*{_NAME}", re.IGNORECASE)


def _has_cue(text: str) -> bool:
    lower = text.lower()
    for cue in _CUES:  # no generator inside any(): it costs twice as much, and this runs for every line
        if cue in lower:
            return True
    return ("_token" in lower or "-token" in lower) and any(cue in lower for cue in _TOKEN_CUES)


class Masker:
    """Masks what looks like a secret, and the values of the profile's own secrets wherever they turn up."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        known = sorted({value for value in secrets if len(value) >= SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str, *, routine: bool = False) -> str:
        """`text` with secrets replaced by `***`; in what is routine only the profile's own can be."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return self._search(text) if not routine and _has_cue(text) else text

    def may_hold_secrets(self, text: str) -> bool:
        """False only when nothing in `text`, nor in any of its lines, looks like a secret."""
        return _has_cue(text)

    def knows_any(self, text: str) -> bool:
        """Whether one of the profile's own secrets is in `text`."""
        return self._known is not None and self._known.search(text) is not None

    @staticmethod
    def _search(text: str) -> str:
        text = _ASSIGNED.sub(rf"\g<name>{MASK}", text)
        text = _FLAG.sub(rf"\g<name>{MASK}", text)
        return _TOKEN.sub(MASK, _BEARER.sub(rf"\g<name>{MASK}", text))

    def data(self, data: Any, *, name: str = "") -> Any:
        """A JSON value with its secrets masked, by the key's name and by the text's look."""
        if isinstance(data, Mapping):
            return {str(key): self.data(value, name=str(key)) for key, value in data.items()}
        if isinstance(data, list):
            return [self.data(value, name=name) for value in data]
        if isinstance(data, str):
            return MASK if data and _KEY.fullmatch(name) else self.text(data)
        return data
