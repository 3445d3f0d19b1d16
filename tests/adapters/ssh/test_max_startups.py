"""A server that takes no more logins at a time (`MaxStartups`): named as that, and good again once there is room."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ddconsole.core.errors import UnreachableError

pytestmark = pytest.mark.realhost

ROOM_AGAIN_S = 15.0


@contextlib.asynccontextmanager
async def logins_that_stand_still(port: int, count: int):
    """Connections that sshd has greeted and that never log in: each holds one of its places."""
    held = []
    try:
        async with asyncio.timeout(ROOM_AGAIN_S):
            while len(held) < count:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                if (await reader.readline()).startswith(b"SSH-2.0-"):
                    held.append(writer)
                else:  # the fixture's own look at the port still has a place
                    writer.close()
        yield
    finally:
        for writer in held:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def test_too_many_logins_are_named_and_the_retry_succeeds_once_they_are_gone(by, start_sshd) -> None:
    """Two places, both taken by somebody who does not log in; then they leave."""
    sshd = start_sshd("MaxStartups=2:100:2")
    async with logins_that_stand_still(sshd.port, 2):
        with pytest.raises(UnreachableError) as refused:
            await by(sshd.target()).connect()
        assert "MaxStartups" in refused.value.advice
        assert "hung up before anybody had logged in" in refused.value.what
    host = None
    async with asyncio.timeout(ROOM_AGAIN_S):
        while host is None:  # until sshd, too, has seen them leave
            with contextlib.suppress(UnreachableError):
                host = await by(sshd.target()).connect()
    try:
        assert (await host.run(["echo", "in"])).stdout == "in\n"
    finally:
        await host.close()
