"""Who listens on a port of the host, on whatever address."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.engines.launch.ports import listeners

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the GPU host has /proc")


@pytest.fixture
async def host() -> AsyncIterator[LocalHost]:
    """This machine."""
    local = LocalHost()
    yield local
    await local.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
async def test_who_listens_is_found_on_every_address_and_ended_connections_are_nobody(
    host: LocalHost, address: str
) -> None:
    """A wildcard serves the loopback too; a connection in TIME_WAIT holds no port that a server could not take."""
    try:
        server = await asyncio.start_server(lambda _, writer: writer.close(), address, 0)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    port = server.sockets[0].getsockname()[1]
    assert [one.pid for one in await listeners(host, port)] == [os.getpid()]
    reader, writer = await asyncio.open_connection({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), port)
    assert await reader.read() == b""  # the server hangs up first: the wait is on its side
    writer.close()
    server.close()
    await server.wait_closed()
    assert await listeners(host, port) == []
