"""The scripted world of the runner's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fakes.scripted import Script, ScriptedPass
from runner.world import Opened, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Opens a scripted world; several of them in one test share the store, as consoles one after another do."""

    @asynccontextmanager
    async def opened(script: Script | None = None, *passes: ScriptedPass, keep: bool = False) -> AsyncIterator[World]:
        world = World(tmp_path, script or Script(), passes or (ScriptedPass(),))
        monkeypatch.setattr("ddconsole.runner.attempt.build_passes", lambda *_: list(world.passes))
        await world.console.open(telemetry=False)
        world.seen.clear()  # what an earlier console told
        try:
            yield world
        finally:
            await world.console.close(keep_engine=keep)

    return opened
