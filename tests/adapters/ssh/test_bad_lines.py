"""A slow line that loses packets, a line that is half open, an address that changes: no byte is lost by any of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import pytest
from fakes.slow_line import slow_line

from ddconsole.adapters.ssh import SshConnector, Times
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from .conftest import Keys, Script

SOON = Times(connect=5.0, keepalive=1.0, missed=1, ping=1.5, channel=3.0, close=0.5)


async def test_200_ms_and_2_percent_loss_are_a_slow_line_and_no_lost_one(keys: Keys, port: int) -> None:
    """The round trip is told as it is; commands, streams and a forwarded port bring every byte in order."""
    lines = "import sys\nfor n in range(20000): sys.stdout.write('line %d\\n' % n)\n"
    wanted = hashlib.sha256("".join(f"line {number}\n" for number in range(20_000)).encode()).hexdigest()
    async with slow_line(port) as line, asyncio.timeout(60):
        host = await SshConnector(keys.target(line.port)).connect()
        try:
            assert 0.2 <= await host.ping() < 2.0
            assert (await host.run(["echo", "there"])).stdout == "there\n"
            stream = await host.stream(["python3", "-c", lines])
            seen = hashlib.sha256()
            async for chunk in stream.chunks():
                seen.update(chunk)
            assert seen.hexdigest() == wanted
            await stream.close()
            echoed = asyncio.Event()
            server = await asyncio.start_server(partial(echo, echoed), "127.0.0.1", 0)
            forward = await host.forward(server.sockets[0].getsockname()[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
            sent = bytes(range(256)) * 200
            writer.write(sent)
            assert await reader.readexactly(len(sent)) == sent
            writer.close()
            await writer.wait_closed()
            await forward.close()
            await echoed.wait()
            server.close()
            assert line.lost > 0, "the line did lose something"
        finally:
            await host.close()


async def drained(chunks: AsyncIterator[bytes]) -> None:
    async for _ in chunks:
        pass


def listening(port: int) -> list[str]:
    """Local addresses, in hexadecimal, at which a TCP port of this machine is served."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]


async def echo(done: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
    done.set()


async def test_a_half_open_line_is_noticed_within_its_limit(keys: Keys, port: int) -> None:
    """The other side is gone and nobody was told: the next question finds out, and a new connection works."""
    async with slow_line(port, delay_s=0.0, loss=0.0) as line, asyncio.timeout(40):
        host = await SshConnector(keys.target(line.port), times=SOON).connect()
        stream = await host.stream(["sh", "-c", "while :; do echo x; sleep 0.05; done"])
        chunks = stream.chunks()
        await anext(chunks)
        line.open.clear()
        with pytest.raises(UnreachableError):
            await drained(chunks)
        with pytest.raises(UnreachableError):
            await host.ping()
        await host.close()
        line.open.set()
        again = await SshConnector(keys.target(line.port), times=SOON).connect()
        assert await again.ping() < 1.0
        await again.close()


async def test_an_address_that_changed_is_looked_up_again(
    keys: Keys, port: int, script: Script, tmp_path: Path
) -> None:
    """A laptop in another network, a host with a new lease: each connection resolves its alias anew."""
    client_key = asyncssh.read_public_key(keys.path("client_key.pub"))
    from .conftest import ScriptedServer

    async with asyncssh.listen(
        "127.0.0.1", 0, server_factory=lambda: ScriptedServer(script, client_key),
        server_host_keys=[keys.path("host_key")], encoding=None,
    ) as moved:  # fmt: skip
        known = tmp_path / "known"
        known.write_text(keys.host_key_line(port) + keys.host_key_line(moved.get_port()))
        config = tmp_path / "config"

        def lives_at(where: int) -> None:
            config.write_text(f"Host box\n  HostName 127.0.0.1\n  Port {where}\n  UserKnownHostsFile {known}\n")

        target = replace(keys.target(0), host="box", port=None, config=(str(config),), known_hosts=(str(known),))
        connector = SshConnector(target)
        lives_at(port)
        first = await connector.connect()
        before = len(script.connections)
        lives_at(moved.get_port())
        await first.close()
        second = await connector.connect()
        assert (await second.run(["echo", "moved"])).stdout == "moved\n"
        assert script.connections[before].get_extra_info("sockname")[1] == moved.get_port()
        await second.close()
        for connection in script.connections:
            connection.abort()


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="no /proc here")
async def test_a_forwarded_port_listens_on_loopback_alone(keys: Keys, port: int) -> None:
    """Nobody in the network reaches the engine through our tunnel."""
    host = await SshConnector(keys.target(port)).connect()
    try:
        forward = await host.forward(9)
        assert listening(forward.local_port) == ["0100007F"]
        await forward.close()
    finally:
        await host.close()
