"""A line that is cut, a host that stops answering, a master that dies: each ends in a named outcome in its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.openssh import OpenSshConnector
from ddconsole.adapters.openssh.folder import make_folder
from ddconsole.adapters.ssh import Times
from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.realhost

SOON = Times(connect=2.0, keepalive=1.0, missed=1, ping=1.0, channel=1.0, close=0.5)


@contextlib.asynccontextmanager
async def closing(host) -> AsyncIterator[None]:
    """Close the host after the block, within the limits that it has."""
    try:
        yield
    finally:
        async with asyncio.timeout(15):
            await host.close()


async def first_bytes(chunks) -> bytes:
    """The first chunk of a stream."""
    async with asyncio.timeout(10):
        return await anext(chunks)


async def test_a_cut_line_ends_streams_commands_and_forwards(by, start_sshd, none_left, tmp_path: Path) -> None:
    """In the middle of loading (a stream) and of a pass (a request through a forward); nothing is left on the host."""
    sshd, word = start_sshd(), f"cut-{tmp_path}"
    host = await by(sshd.target(), times=SOON).connect()
    async with closing(host), await asyncio.start_server(_never_answer, "127.0.0.1", 0) as engine:
        stream = await host.stream(["sh", "-c", "echo up; sleep 300 | sleep 301", word])
        chunks = aiter(stream.chunks())
        assert await first_bytes(chunks) == b"up\n"
        forward = await host.forward(engine.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
        running = asyncio.create_task(host.run(["sleep", "300"]))
        sshd.cut()
        async with asyncio.timeout(5):
            for work in (anext(chunks), running):
                with pytest.raises(UnreachableError):
                    await work
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        for call in (lambda: host.run(["true"]), lambda: host.stream(["true"]), lambda: host.forward(1), host.ping):
            with pytest.raises(UnreachableError):
                await call()
        await none_left(word)


async def _never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def test_a_host_that_stops_answering_is_noticed(by, start_sshd) -> None:
    """Half-open: packets are taken and nothing comes back. The ping says so first, then the line is given up."""
    sshd = start_sshd()
    host = await by(sshd.target(), times=SOON).connect()
    async with closing(host):
        chunks = aiter((await host.stream(["sh", "-c", "echo up; sleep 300"])).chunks())
        assert await first_bytes(chunks) == b"up\n"
        sshd.freeze()
        started = time.monotonic()
        with pytest.raises(UnreachableError, match=r"does not answer|is lost|was lost"):
            await host.ping()
        assert time.monotonic() - started < 8
        with pytest.raises(UnreachableError):
            await first_bytes(chunks)
        with pytest.raises((UnreachableError, HostError)):
            await host.run(["true"], timeout=2)
        with pytest.raises(UnreachableError):
            await host.stream(["true"])
        with pytest.raises(UnreachableError):
            await by(sshd.target(), times=SOON).connect()


async def test_a_frozen_host_is_closed_within_its_limit(by, start_sshd) -> None:
    """Leaving the console does not wait for a host that is gone."""
    sshd = start_sshd()
    host = await by(sshd.target(), times=SOON).connect()
    sshd.freeze()
    async with asyncio.timeout(12):
        await host.close()


# --- the master of the system's ssh


def folders(pid: int = os.getpid()) -> set[str]:
    """The sockets' folders of a process."""
    bases = {os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp", os.environ.get("TMPDIR", "")} - {""}
    return {f"{base}/{name}" for base in bases for name in os.listdir(base) if name.startswith(f"ddc-{pid}-")}


def masters(folder: str) -> list[int]:
    """The ssh processes that listen in a folder; the guard around them has the same words behind others."""
    told = subprocess.run(["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=2) for line in told.splitlines() if f"{folder}/m" in line]
    return [int(pid) for pid, program, rest in found if program.endswith("/ssh") and rest.startswith("-N")]


async def test_a_masters_socket_is_private_and_gone_afterwards(start_sshd, processes) -> None:
    """A folder of mode 700 whose path is short; no process and no file stay behind."""
    before = folders()
    host = await OpenSshConnector(start_sshd().target()).connect()
    (folder,) = folders() - before
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert len(f"{folder}/m") + 17 <= 104
    assert os.listdir(folder) == ["m"]
    assert processes(folder)
    await host.close()
    assert folders() == before
    assert processes(folder) == []


async def test_a_master_that_dies_is_a_lost_connection(start_sshd, processes, none_left, tmp_path: Path) -> None:
    """Commands under it end, here and on the host; no client connects by itself."""
    before, word = folders(), f"master-{tmp_path}"
    sshd = start_sshd()
    host = await OpenSshConnector(sshd.target()).connect()
    async with closing(host):
        (folder,) = folders() - before
        chunks = aiter((await host.stream(["sh", "-c", "echo up; sleep 300", word])).chunks())
        assert await first_bytes(chunks) == b"up\n"
        for pid in masters(folder):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(UnreachableError):
            await first_bytes(chunks)
        with pytest.raises(UnreachableError):
            await host.run(["true"])
        await none_left(word)
    assert folders() == before
    assert processes(folder) == []


CONSOLE = """
import asyncio, os, signal, sys
from ddconsole.adapters.openssh import OpenSshConnector
from ddconsole.adapters.ssh import SshTarget
async def main():
    target = SshTarget("127.0.0.1", int(sys.argv[1]), None, (sys.argv[2],), (sys.argv[3],), ())
    host = await OpenSshConnector(target).connect()
    await host.stream(["sh", "-c", "sleep 300; :", sys.argv[4]])
    print(host._master.folder, flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""


async def test_a_killed_console_leaves_no_master(start_sshd, none_left, keys, tmp_path: Path) -> None:
    """SIGKILL leaves no time to tidy: the guard ends the master, and the next console removes the empty folder."""
    sshd, word = start_sshd(), f"orphan-{tmp_path}"
    target = sshd.target()
    console = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CONSOLE, str(sshd.port), keys.path("client_key"), *target.known_hosts, word,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert console.stdout is not None
    folder = (await console.stdout.readline()).decode().strip()
    assert folder in folders(console.pid)
    console.kill()
    await console.wait()
    await none_left(word)
    await none_left(folder)
    fresh = make_folder()
    assert folder not in folders(console.pid)
    fresh.rmdir()


def test_a_long_temporary_folder_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A socket's path may have 104 bytes."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    folder = make_folder()
    assert not str(folder).startswith(str(long))
    folder.rmdir()
