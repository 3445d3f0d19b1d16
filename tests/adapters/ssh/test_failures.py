"""Each way in which a connection can fail has words of its own: what happened, the evidence, what to do."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import asyncssh
import pytest

from ddconsole.adapters.ssh import SshConnector, SshTarget, Times
from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.realhost

SOON = Times(connect=1.0, keepalive=1.0, missed=1, ping=1.0, channel=1.0, close=1.0)


def write(folder: Path, keys, text: str) -> tuple[str, ...]:
    """A configuration whose hosts are known and whose key is the tests'."""
    (folder / "config").write_text(
        f"{text}\nHost *\n  IdentityFile {keys.path('client_key')}\n  UserKnownHostsFile {folder}/known\n"
        f"  GlobalKnownHostsFile none\n"
    )
    return (str(folder / "config"),)


class Scene:
    """What a test case may build its failure from."""

    def __init__(self, keys, start_sshd, folder: Path, unused_port: int) -> None:
        self.keys, self.start_sshd, self.folder, self.unused_port = keys, start_sshd, folder, unused_port

    def known(self, *ports: int) -> None:
        """These ports' keys are known."""
        (self.folder / "known").write_text("".join(map(self.keys.host_key_line, ports)))

    def config(self, text: str) -> SshTarget:
        return SshTarget("far", config=write(self.folder, self.keys, text))

    def name(self) -> SshTarget:
        return self.config("Host far\n  HostName no-such-host.invalid")

    def refused(self) -> SshTarget:
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {self.unused_port}")

    def key_unknown(self) -> SshTarget:
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {self.start_sshd().port}")

    def key_changed(self) -> SshTarget:
        port = self.start_sshd().port
        public = (self.folder / "client_key.pub").read_text()
        (self.folder / "known").write_text(f"[127.0.0.1]:{port} {public}")
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {port}")

    def auth(self) -> SshTarget:
        port = self.start_sshd().port
        self.known(port)
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(f"{self.folder}/client_key")
        (self.folder / "client_key").chmod(0o600)
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {port}")

    def user(self) -> SshTarget:
        port = self.start_sshd("DenyUsers=*").port
        self.known(port)
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {port}")

    def jump_refused(self) -> SshTarget:
        jump = f"Host jump\n  HostName 127.0.0.1\n  Port {self.unused_port}\n"
        return self.config(f"{jump}Host far\n  HostName 127.0.0.1\n  ProxyJump jump")

    def jump_leads_nowhere(self) -> SshTarget:
        port = self.start_sshd().port
        self.known(port)
        jump = f"Host jump\n  HostName 127.0.0.1\n  Port {port}\n"
        return self.config(f"{jump}Host far\n  HostName 127.0.0.1\n  Port {self.unused_port}\n  ProxyJump jump")

    def jump_forbids(self) -> SshTarget:
        port, behind = self.start_sshd("AllowTcpForwarding=no").port, self.start_sshd().port
        self.known(port, behind)
        jump = f"Host jump\n  HostName 127.0.0.1\n  Port {port}\n"
        return self.config(f"{jump}Host far\n  HostName 127.0.0.1\n  Port {behind}\n  ProxyJump jump")

    def proxy_fails(self) -> SshTarget:
        return self.config("Host far\n  ProxyCommand sh -c 'echo no way today >&2; exit 3'")

    def proxy_missing(self) -> SshTarget:
        return self.config("Host far\n  ProxyCommand no-such-proxy-program %h %p")

    def algorithms(self) -> SshTarget:
        port = self.start_sshd("Ciphers=aes128-ctr").port
        self.known(port)
        return self.config(f"Host far\n  HostName 127.0.0.1\n  Port {port}\n  Ciphers aes256-ctr")


TABLE: list[tuple[Callable[[Scene], SshTarget], str, str, str]] = [
    (Scene.name, "name far is not known", "", "ssh -G far"),
    (Scene.refused, "refuses connections", "", "sshd running"),
    (Scene.key_unknown, "is not known yet", "", "--accept-new"),
    (Scene.key_changed, "has CHANGED", "known:1", "ssh-keygen"),
    (Scene.auth, "does not accept this login", "publickey|client_key", "ssh-add"),
    (Scene.user, "does not accept this login", "publickey|client_key", "ssh-add"),
    (Scene.jump_refused, "through the jump host jump", "", ""),
    (Scene.jump_leads_nowhere, "jump host jump", "", ""),
    (Scene.jump_forbids, "jump host jump", "prohibited", ""),
    (Scene.proxy_fails, "the ProxyCommand of far failed", "no way today", "by hand"),
    (Scene.proxy_missing, "the ProxyCommand of far failed", "no-such-proxy-program", "by hand"),
    # sshd hangs up at the same moment, and a reset takes its words along: either way the same remedy
    (Scene.algorithms, "no common way to encrypt|hung up before anybody had logged in", "", "ssh -vv far"),
]


@pytest.mark.parametrize(("make", "what", "evidence", "advice"), TABLE, ids=[row[0].__name__ for row in TABLE])
async def test_a_failure_says_what_and_what_to_do(
    by, keys, start_sshd, tmp_path: Path, unused_port: int, make, what: str, evidence: str, advice: str
) -> None:
    """By both transports, in the same words."""
    connector = by(make(Scene(keys, start_sshd, tmp_path, unused_port)), name="far")
    with pytest.raises(UnreachableError) as caught:
        await connector.connect()
    error = caught.value
    told = " ".join(error.evidence)
    assert any(words in error.what for words in what.split("|")), error.what
    assert not evidence or any(word in told for word in evidence.split("|")), told
    assert error.evidence
    assert error.advice
    assert advice in error.advice


# --- what accepts and never answers


@contextlib.asynccontextmanager
async def mute(greeting: bytes = b""):
    """A port that takes connections, sends `greeting`, and says nothing more."""
    gone: list[asyncio.Event] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone.append(ended := asyncio.Event())
        writer.write(greeting)
        with contextlib.suppress(ConnectionError):
            while await reader.read(4096):
                pass
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            for ended in gone:
                await ended.wait()


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-mute\r\n"], ids=["never-speaks", "greets-only"])
async def test_a_host_that_accepts_and_never_speaks_is_given_up(by, keys, greeting: bytes) -> None:
    """Within the limit, as a host that did not answer."""
    async with mute(greeting) as port, asyncio.timeout(10):
        with pytest.raises(UnreachableError, match="in time"):
            await by(keys.target(port), times=SOON).connect()


async def test_what_is_no_ssh_server_is_told_as_such(by, keys) -> None:
    """A web server on that port, say: it talks, and then hangs up."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 400)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server, asyncio.timeout(10):
        with pytest.raises(UnreachableError) as caught:
            await by(keys.target(server.sockets[0].getsockname()[1]), times=SOON).connect()
    assert caught.value.evidence
    assert caught.value.advice


# --- the host stands, and does not do everything


@pytest.mark.parametrize("sessions", [1, 4])
async def test_few_sessions_are_enough_for_all_that_a_console_does(by, start_sshd, sessions: int) -> None:
    """GPU state and the log as streams, short commands beside them, on few connections."""
    host = await by(start_sshd(f"MaxSessions={sessions}").target()).connect()
    assert 0 < await host.ping() < 5
    streams = [await host.stream(["sleep", "300"]) for _ in range(2)]
    answers = await asyncio.gather(*(host.run(["echo", str(number)]) for number in range(6)))
    assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(6)]
    assert 0 < await host.ping() < 5
    for stream in streams:
        await stream.close()
    await host.close()


async def test_four_sessions_need_one_connection(start_sshd, keys) -> None:
    """Two streams and a short command fit into MaxSessions 4 without a second connection."""
    sshd = start_sshd("MaxSessions=4")
    host = await SshConnector(sshd.target()).connect()
    streams = [await host.stream(["sleep", "300"]) for _ in range(3)]
    assert (await host.run(["echo", "fits"])).stdout == "fits\n"
    deadline = time.monotonic() + 5
    while len(sshd.connections()) != 1:  # the fixture's own look at the port may still be there
        assert time.monotonic() < deadline, sshd.connections()
        await asyncio.sleep(0.02)
    for stream in streams:
        await stream.close()
    await host.close()


async def test_a_host_without_sessions_says_what_to_raise(by, start_sshd) -> None:
    """A channel limit is no failed command."""
    host = await by(start_sshd("MaxSessions=0").target()).connect()
    with pytest.raises(HostError) as caught:
        await host.run(["true"])
    assert "MaxSessions" in caught.value.advice
    await host.close()


async def test_a_limit_on_all_connections_says_what_to_raise(by, start_sshd) -> None:
    """One session each, and more streams than connections are opened for."""
    host = await by(start_sshd("MaxSessions=1").target()).connect()
    streams = [await host.stream(["sleep", "300"]) for _ in range(4)]
    with pytest.raises(HostError) as caught:
        await host.stream(["sleep", "300"])
    assert "MaxSessions" in caught.value.advice
    await asyncio.gather(*(stream.close() for stream in streams))
    await host.close()


async def test_forbidden_forwarding_is_told(by, start_sshd, unused_port: int) -> None:
    """It must not read as an engine that is not ready."""
    host = await by(start_sshd("AllowTcpForwarding=no").target()).connect()
    with pytest.raises(HostError, match="forbids forwarding") as caught:
        await host.forward(unused_port)
    assert "AllowTcpForwarding" in caught.value.advice
    await host.close()


@pytest.mark.parametrize("command", ["echo This account is not available.; exit 1", "exec cat /dev/null"])
async def test_a_login_shell_that_runs_nothing_is_told_with_its_words(by, start_sshd, command: str) -> None:
    """`nologin`, or a start-up file that exits."""
    host = await by(start_sshd(f"ForceCommand={command}").target()).connect()
    with pytest.raises(HostError, match="without running `true`") as caught:
        await host.run(["true"])
    assert ("not available" in " ".join(caught.value.evidence)) == ("echo" in command)
    stream = await host.stream(["true"])
    with pytest.raises(HostError, match="without running `true`"):
        async for _ in stream.chunks():
            pass
    await host.close()
