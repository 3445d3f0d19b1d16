"""The host behind OpenSSH's own sshd, as it stands on every GPU host."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.ssh import SshConnector, SshHost
from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.realhost


@contextlib.asynccontextmanager
async def connected(sshd, **changes: object) -> AsyncIterator[SshHost]:
    """A connection for the block."""
    host = await SshConnector(sshd.target(**changes)).connect()
    try:
        yield host
    finally:
        await host.close()


def printing(shell: str) -> str:
    """A forced command that greets on both outputs, as start-up files do, and goes on to a login shell."""
    return (
        f"ForceCommand=printf 'welcome!\\n\\033[31mthree\\nlines'; echo noise >&2; "
        f'exec {shell} -c "$SSH_ORIGINAL_COMMAND"'
    )


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "tcsh"])
async def test_a_printing_login_shell_disturbs_nothing(start_sshd, shell: str) -> None:
    """Its greeting is in neither output, and hostile words arrive."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    async with connected(start_sshd(printing(shell))) as host:
        done = await host.run(["sh", "-c", 'printf "%s|" "$@"; echo err >&2', "sh", "it's", "a\nb", "!\\$(id)"])
        assert (done.stdout, done.stderr) == ("it's|a\nb|!\\$(id)|", "err\n")
        stream = await host.stream(["printf", "bytes"])
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"bytes"


async def test_a_bashrc_that_prints_disturbs_nothing(start_sshd, tmp_path: Path) -> None:
    """bash reads it for every command of an ssh session; here by the variable that names it."""
    rc = tmp_path / "rc"
    rc.write_text("echo welcome!\n")
    async with connected(start_sshd(f'ForceCommand=BASH_ENV={rc} exec bash -c "$SSH_ORIGINAL_COMMAND"')) as host:
        assert (await host.run(["echo", "answer"])).stdout == "answer\n"


async def test_closing_a_stream_leaves_no_process(start_sshd, none_left, tmp_path: Path) -> None:
    """Closing the channel alone would leave all of them."""
    word = f"close-{tmp_path}"
    async with connected(start_sshd()) as host:
        stream = await host.stream(["sh", "-c", "echo up; sleep 300 | sleep 301", word])
        async for chunk in stream.chunks():
            assert chunk == b"up\n"
            break
        await stream.close()
        await none_left(word)


async def test_a_cut_connection_leaves_no_process(start_sshd, none_left, tmp_path: Path) -> None:
    """The process behind the connection is killed: no goodbye, and nobody left to send a signal."""
    sshd, word = start_sshd(), f"cut-{tmp_path}"
    async with connected(sshd) as host:
        stream = await host.stream(["sh", "-c", "echo up; sleep 300 | sleep 301", word])
        chunks = aiter(stream.chunks())
        assert await anext(chunks) == b"up\n"
        sshd.cut()
        with pytest.raises(UnreachableError, match="was lost"):
            await anext(chunks)
        await none_left(word)


async def test_what_has_a_session_of_its_own_survives_a_cut(start_sshd, processes, none_left, tmp_path: Path) -> None:
    """As an engine has to."""
    sshd, word = start_sshd(), f"kept-{tmp_path}"
    async with connected(sshd) as host:
        launch = 'setsid sh -c "sleep 300; :" "$1" </dev/null >/dev/null 2>&1 & echo $!'
        group = (await host.run(["sh", "-c", launch, "sh", word])).stdout.strip()
        sshd.cut()
        with pytest.raises(UnreachableError):
            await host.run(["sleep", "300"])
    assert processes(word)
    async with connected(sshd) as again:
        assert (await again.run(["kill", "-KILL", "--", f"-{int(group)}"])).ok
    await none_left(word)


async def test_a_timeout_ends_the_remote_processes(start_sshd, none_left, tmp_path: Path) -> None:
    """Also one that ignores TERM."""
    word = f"timeout-{tmp_path}"
    async with connected(start_sshd()) as host:
        with pytest.raises(HostError, match="did not end within"):
            await host.run(["sh", "-c", "trap '' TERM; sleep 300 & sleep 301", word], timeout=0.3)
        await none_left(word)


async def test_streams_free_their_sessions(start_sshd) -> None:
    """Eight streams one after another through two sessions: a slot that stays taken would show."""
    async with connected(start_sshd("MaxSessions=2")) as host:
        for _ in range(8):
            stream = await host.stream(["sleep", "300"])
            await stream.close()
        assert (await host.run(["echo", "free"])).stdout == "free\n"


async def test_two_sessions_are_enough(start_sshd) -> None:
    """Two streams and eight commands at once where sshd allows two sessions a connection."""
    async with connected(start_sshd("MaxSessions=2")) as host:
        streams = [await host.stream(["sleep", "300"]) for _ in range(2)]
        answers = await asyncio.gather(*(host.run(["echo", str(number)]) for number in range(8)))
        assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(8)]
        for stream in streams:
            await stream.close()


async def test_forbidden_forwarding_is_told(start_sshd, unused_port: int) -> None:
    """AllowTcpForwarding no."""
    async with connected(start_sshd("AllowTcpForwarding=no")) as host:
        with pytest.raises(HostError, match="forbids forwarding"):
            await host.forward(unused_port)


async def test_a_forward_and_a_closed_port(start_sshd, unused_port: int) -> None:
    """A closed port drops the connection, and the forward works once something listens."""
    async with connected(start_sshd()) as host:
        forward = await host.forward(unused_port)
        reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        async with await asyncio.start_server(lambda _, answer: answer.close(), "127.0.0.1", unused_port):
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        await writer.wait_closed()
        await forward.close()


async def test_a_banner_in_latin_1_is_no_obstacle(start_sshd, tmp_path: Path) -> None:
    """Text before the login is data as well."""
    (tmp_path / "banner").write_bytes(b"Zutritt f\xfcr Befugte \x92\n")
    async with connected(start_sshd(f"Banner={tmp_path}/banner")) as host:
        assert (await host.run(["true"])).ok


async def test_input_and_the_round_trip(start_sshd) -> None:
    """A large input, byte for byte, and the time of a keepalive."""
    data = bytes(range(256)) * 400
    count = "import sys; d = sys.stdin.buffer.read(); print(len(d), sum(d))"
    async with connected(start_sshd()) as host:
        done = await host.run([sys.executable, "-c", count], stdin=data)
        assert done.stdout == f"{len(data)} {sum(data)}\n"
        assert 0 < await host.ping() < 5


async def test_the_host_key_is_checked(start_sshd, tmp_path: Path) -> None:
    """An unknown key stops before any of our keys is offered."""
    (tmp_path / "empty").touch()
    with pytest.raises(UnreachableError, match="is not known yet"):
        async with connected(start_sshd(), known_hosts=(str(tmp_path / "empty"),)):
            pass


def test_a_forced_greeting_is_what_the_tests_say() -> None:
    """The helper's own quoting: three lines on stdout, one on stderr."""
    assert shlex.split(printing("sh").removeprefix("ForceCommand="))[:2] == [
        "printf",
        "welcome!\\n\\033[31mthree\\nlines;",
    ]
