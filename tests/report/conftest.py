"""The book that the reports are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from report.books import book

from ddconsole.report.book import Book


@pytest.fixture
def make() -> Callable[..., Book]:
    """`make(outcome="failed", …)` changes the last result."""

    def made(**changes: Any) -> Book:
        return book(**changes)

    return made
