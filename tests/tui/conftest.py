"""What every test of the screen begins with: no wish of the developer's terminal reaches a picture."""

from __future__ import annotations

import pytest

WISHES = ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS", "TEXTUAL_COLOR_SYSTEM", "COLUMNS", "LINES")


@pytest.fixture(autouse=True)
def no_wishes_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours, themes and sizes are those of the test."""
    for name in WISHES:
        monkeypatch.delenv(name, raising=False)
