"""Profiles as tests need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.profile import Profile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


@pytest.fixture
def make_profile() -> Callable[..., Profile]:
    """A profile with the sections given over small defaults."""

    def make(engine: dict[str, Any] | None = None, **sections: Any) -> Profile:
        base: dict[str, Any] = {"command": ["python3", "-m", "sglang.launch_server"], "model": "M", "drafter": "D"}
        return Profile(schema=1, host="local", engine=base | (engine or {}), **sections)

    return make


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalHost]:
    """This machine, with a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    local = LocalHost()
    yield local
    await local.close()
