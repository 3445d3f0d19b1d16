"""One `Host`, several ways to it: the same promises hold on this machine, over asyncssh and over the system's ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.local import LocalConnector
from ddconsole.adapters.openssh import OpenSshConnector
from ddconsole.adapters.ssh import SshConnector
from ddconsole.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ddconsole.core.ports import Connector, Host

HOSTILE = ["it's", "a\nb", "!\\$(id)", "", "é 漢", "-n", "~", "*", "\x1b[31m", "$HOME `id` ; #"]


WAYS = [
    "local",
    "asyncssh",
    pytest.param("asyncssh-sshd", marks=pytest.mark.realhost),
    pytest.param("openssh-sshd", marks=pytest.mark.realhost),
]


@pytest.fixture(params=WAYS)
def connector(request: pytest.FixtureRequest) -> Connector:
    """A way to a host: this machine, asyncssh's own server in this process, or a real sshd."""
    if request.param == "local":
        return LocalConnector()
    if request.param == "asyncssh":
        return SshConnector(request.getfixturevalue("keys").target(request.getfixturevalue("port")))
    sshd = request.getfixturevalue("start_sshd")()
    if request.param == "openssh-sshd" and shutil.which("ssh") is None:
        pytest.skip("OpenSSH's client is not installed (Debian: openssh-client)")
    return (SshConnector if request.param == "asyncssh-sshd" else OpenSshConnector)(sshd.target())


@pytest.fixture
async def host(connector: Connector) -> AsyncIterator[Host]:
    """A connected host."""
    connected = await connector.connect()
    yield connected
    await connected.close()


async def test_outputs_status_and_input(host: Host) -> None:
    """Each where it belongs, without a byte added."""
    done = await host.run(["sh", "-c", "cat; printf err >&2; exit 7"], stdin=b"in\nput")
    assert (done.status, done.stdout, done.stderr, done.ok) == (7, "in\nput", "err", False)


async def test_hostile_words_arrive_verbatim(host: Host) -> None:
    """No word is read by a shell."""
    done = await host.run(["printf", "%s\\0", *HOSTILE])
    assert done.stdout.split("\0")[:-1] == HOSTILE


async def test_a_large_input_arrives_whole(host: Host) -> None:
    """With every byte value."""
    data = bytes(range(256)) * 1000
    count = "import sys; d = sys.stdin.buffer.read(); print(len(d), sum(d))"
    assert (await host.run([sys.executable, "-c", count], stdin=data)).stdout == f"{len(data)} {sum(data)}\n"


@pytest.mark.parametrize("status", [0, 1, 126, 255])
async def test_a_status_is_the_commands_own(host: Host, status: int) -> None:
    """Also 255, which is what ssh says for itself."""
    assert (await host.run(["sh", "-c", f"exit {status}"])).status == status


async def test_a_missing_program_is_a_status_for_run_and_an_error_for_stream(host: Host) -> None:
    """A quiet stream must not look like a missing program."""
    done = await host.run(["no-such-program-here", "x"])
    assert done.status == 127
    assert "no-such-program-here" in done.stderr
    stream = await host.stream(["no-such-program-here"])
    with pytest.raises(HostError, match="cannot be run on") as caught:
        async for _ in stream.chunks():
            pass
    assert "not found" in caught.value.evidence[0]


async def test_a_timeout_ends_the_command(host: Host, none_left, tmp_path: Path) -> None:
    """Also one that ignores TERM; the host is fine afterwards."""
    word = f"timeout-{tmp_path}"
    with pytest.raises(HostError, match=rf"did not end within 0\.5 s on {host.name}") as caught:
        await host.run(["sh", "-c", "trap '' TERM; sleep 300 & sleep 301", word], timeout=0.5)
    assert caught.value.advice
    await none_left(word)
    assert (await host.run(["echo", "fine"])).stdout == "fine\n"


async def test_a_cancelled_command_leaves_nothing(host: Host, seen, none_left, tmp_path: Path) -> None:
    """The console may lose interest at any moment."""
    word = f"cancel-{tmp_path}"
    task = asyncio.create_task(host.run(["sh", "-c", "sleep 300; :", word]))
    await seen(word)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await none_left(word)


async def test_a_stream_gives_bytes_at_once_and_ends_with_its_close(host: Host, none_left, tmp_path: Path) -> None:
    """No newline is waited for; grandchildren end too."""
    word = f"stream-{tmp_path}"
    stream = await host.stream(["sh", "-c", "printf half; sleep 300 | sleep 301", word])
    chunks = aiter(stream.chunks())
    assert await anext(chunks) == b"half"
    await stream.close()
    await none_left(word)


async def test_undecodable_bytes_pass(host: Host) -> None:
    """One bad byte must not drop a channel."""
    stream = await host.stream(["printf", "ok\\ncaf\\351 bad\\nafter\\n"])
    assert b"".join([chunk async for chunk in stream.chunks()]) == b"ok\ncaf\xe9 bad\nafter\n"
    assert (await host.run(["printf", "\\377"])).stdout == "�"


async def test_many_commands_at_once(host: Host) -> None:
    """Beside two streams; they queue where there is no room."""
    streams = [await host.stream(["sleep", "300"]) for _ in range(2)]
    answers = await asyncio.gather(*(host.run(["echo", str(number)]) for number in range(12)))
    assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(12)]
    for stream in streams:
        await stream.close()


async def test_a_forward_leads_to_the_hosts_loopback(host: Host) -> None:
    """Whoever listens there is reached."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        forward = await host.forward(server.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()
        await forward.close()
        if forward.local_port != server.sockets[0].getsockname()[1]:  # this machine's own port is no forward of ours
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", forward.local_port)


async def test_a_forward_to_a_closed_port_is_no_error(host: Host, unused_port: int) -> None:
    """The engine is still loading: connections are refused or dropped."""
    forward = await host.forward(unused_port)
    with contextlib.suppress(ConnectionError):
        reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    await forward.close()


async def test_the_round_trip_is_measured(host: Host) -> None:
    """In seconds."""
    assert 0 <= await host.ping() < 5


async def test_closing_ends_our_commands_and_nothing_else(
    connector: Connector, none_left, processes, tmp_path: Path
) -> None:
    """What has a session of its own, as an engine has, goes on."""
    host, word, kept = await connector.connect(), f"closed-{tmp_path}", f"kept-{tmp_path}"
    await host.stream(["sh", "-c", "sleep 300; :", word])
    launch = 'setsid sh -c "sleep 300; :" "$1" </dev/null >/dev/null 2>&1 & echo $!'
    group = int((await host.run(["sh", "-c", launch, "sh", kept])).stdout)
    await host.close()
    await none_left(word)
    assert processes(kept)
    os.killpg(group, 9)
    await none_left(kept)
