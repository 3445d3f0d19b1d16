"""An open store for every test of this room that asks for one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where the store is; its folder does not exist yet."""
    return tmp_path / "home" / "data" / "ddconsole.db"


@pytest.fixture
def store(store_path: Path) -> Iterator[SqliteStore]:
    """An open store."""
    opened = SqliteStore(store_path, now=lambda: NOW)
    yield opened
    opened.close()
