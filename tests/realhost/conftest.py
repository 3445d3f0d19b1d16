"""A booted systemd machine for the session, and launchers on it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from realhost.box import Box, cannot_boot

from ddconsole.core.ports import Host, Launched, LaunchPlan
from ddconsole.engines.launch.base import FoundLauncher
from ddconsole.engines.launch.systemd import SystemdLauncher

STATE = "/run/box/state"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One machine, one worker."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.realhost)
            item.add_marker(pytest.mark.xdist_group("systemd"))


@pytest.fixture(scope="session")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """The machine; skips with the reason where there can be none."""
    why = cannot_boot()
    if why is not None:
        pytest.skip(why)
    machine = Box.boot(tmp_path_factory.mktemp("box"))
    try:
        asyncio.run(machine.until_up())
        yield machine
    finally:
        machine.end()


@pytest.fixture
async def host(box: Box) -> AsyncIterator[Host]:
    """A connection to it."""
    connected = await box.connect()
    yield connected
    await connected.close()


@pytest.fixture
async def user_manager(host: Host) -> None:
    """root's own systemd, as a login session or lingering would start it."""
    await host.run(["systemctl", "start", "user@0.service"])


@pytest.fixture
def name() -> str:
    """A name for a launch that no other test has."""
    return f"test-{secrets.token_hex(4)}"


Launch = Callable[..., Awaitable[Launched]]


@pytest.fixture
async def launch(host: Host, name: str) -> AsyncIterator[Launch]:
    """Starts plans by a launcher, and ends at the end whatever the test left."""
    started: list[tuple[FoundLauncher, Launched]] = []

    async def start(*argv: str, by: FoundLauncher | None = None, **fields: Any) -> Launched:
        launcher = by or system()
        launched = await launcher.launch(host, LaunchPlan(argv=argv, **fields), f"{name}-{len(started)}")  # type: ignore[attr-defined]
        started.append((launcher, launched))
        return launched

    yield start
    for launcher, launched in started:
        await launcher.stop(host, launched)


def system(state_dir: str = STATE, **changes: Any) -> SystemdLauncher:
    """The launcher of system units, with a short grace."""
    return SystemdLauncher(state_dir, 1, **({"scope": "system"} | changes))
