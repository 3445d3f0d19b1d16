"""Ssh servers on the loopback interface: asyncssh's within the test's process, and OpenSSH's own sshd."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh
import pytest

from ddconsole.adapters.openssh import OpenSshConnector
from ddconsole.adapters.ssh import SshConnector, SshHost, SshTarget
from ddconsole.core.ports import Question
from ddconsole.demo.host_session import Sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@dataclass
class Keys:
    """A host key and a client key in files, and a known_hosts file for one port."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Keys:
        """Fresh keys."""
        for name in ("host_key", "client_key"):
            key = asyncssh.generate_private_key("ssh-ed25519")
            key.write_private_key(str(folder / name))
            key.write_public_key(str(folder / f"{name}.pub"))
            (folder / name).chmod(0o600)
        return cls(folder)

    def path(self, name: str) -> str:
        """A key file's path."""
        return str(self.folder / name)

    def host_key_line(self, port: int) -> str:
        """The known_hosts line for this machine at `port`."""
        return f"[127.0.0.1]:{port} {(self.folder / 'host_key.pub').read_text()}"

    def target(self, port: int, **changes: object) -> SshTarget:
        """How to connect with these keys, whatever the developer's own configuration says."""
        known = self.folder / f"known_hosts-{port}"
        if not known.exists():
            known.write_text(self.host_key_line(port))
        given: dict[str, object] = {
            "host": "127.0.0.1",
            "port": port,
            "username": getpass.getuser(),
            "client_keys": (self.path("client_key"),),
            "known_hosts": (str(known),),
            "config": (),
        }
        return SshTarget(**(given | changes))  # type: ignore[arg-type]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys.make(tmp_path)


# --- who answers


class Answers:
    """An asker with answers in stock; None cancels. `questions` are what it was asked."""

    can_ask = True

    def __init__(self, *answers: str | None) -> None:
        self.left = list(answers)
        self.questions: list[Question] = []
        self.settled_times = 0

    async def ask(self, question: Question) -> str | None:
        self.questions.append(question)
        return self.left.pop(0)

    def settled(self) -> None:
        self.settled_times += 1


@pytest.fixture
def answers() -> Callable[..., Answers]:
    """Makes askers."""
    return Answers


@pytest.fixture(params=["asyncssh", "openssh"])
def by(request: pytest.FixtureRequest) -> Callable[..., SshConnector | OpenSshConnector]:
    """Makes connectors, by each transport in turn."""
    if request.param == "openssh" and shutil.which("ssh") is None:
        pytest.skip("OpenSSH's client is not installed (Debian: openssh-client)")
    return SshConnector if request.param == "asyncssh" else OpenSshConnector


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's agent is not asked."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


# --- asyncssh's server, within this process


@dataclass
class Script:
    """How the test's server behaves."""

    handler: Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]
    max_sessions: int = 100
    forwarding: bool = True
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    sessions: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    most_sessions: int = 0
    opened: int = 0


class ScriptedServer(asyncssh.SSHServer):
    """Runs commands with /bin/sh, within the script's limits for each connection."""

    def __init__(self, script: Script, client_key: asyncssh.SSHKey) -> None:
        self._script = script
        self._client_key = client_key
        self._here = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._script.connections.append(conn)

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key == self._client_key

    def public_key_auth_supported(self) -> bool:
        return True

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        if not self._script.forwarding:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        return True

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
        if self._here >= self._script.max_sessions:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
        return asyncssh.SSHServerProcess(self._serve, None, 0, False)

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        script = self._script
        self._here += 1
        script.sessions += 1
        script.idle.clear()
        script.opened += 1
        script.most_sessions = max(script.most_sessions, self._here)
        try:
            await script.handler(process)
        finally:
            self._here -= 1
            script.sessions -= 1
            if not script.sessions:
                script.idle.set()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Commands run as the demo host runs them: real processes, whose pipes close with the channel."""
    return Script(Sessions(tmp_path).serve)


@pytest.fixture
async def port(keys: Keys, script: Script) -> AsyncIterator[int]:
    """The port of a scripted server."""
    client_key = asyncssh.read_public_key(keys.path("client_key.pub"))
    async with asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: ScriptedServer(script, client_key),
        server_host_keys=[keys.path("host_key")],
        encoding=None,
    ) as server:
        yield server.get_port()
        for connection in script.connections:
            connection.abort()
        if script.sessions:
            async with asyncio.timeout(10):
                await script.idle.wait()


@pytest.fixture
async def host(keys: Keys, port: int) -> AsyncIterator[SshHost]:
    """A connection to the scripted server."""
    connected = await SshConnector(keys.target(port)).connect()
    yield connected
    await connected.close()


# --- OpenSSH's server


@dataclass
class Sshd:
    """A running sshd."""

    keys: Keys
    port: int
    process: subprocess.Popen[bytes]

    def target(self, **changes: object) -> SshTarget:
        return self.keys.target(self.port, **changes)

    def connections(self) -> list[int]:
        """The process behind each connection."""
        return _children(self.process.pid)

    def cut(self) -> None:
        """End the process behind each connection: to the client the connection is lost."""
        for pid in self.connections():
            end(pid)

    def die(self) -> None:
        """Connections are cut, and no new one can be made."""
        for pid in (self.process.pid, *self.connections()):
            end(pid)

    def freeze(self) -> None:
        """Stop everything: ports accept, connections stand, and nothing answers."""
        for pid in (self.process.pid, *self.connections()):
            os.kill(pid, signal.SIGSTOP)


def end(pid: int) -> None:
    """Kill a process that may have ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    answer = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (line.split() for line in answer.splitlines())
    return [int(pid) for pid, ppid in pairs if int(ppid) == parent]


@pytest.fixture
def start_sshd(keys: Keys) -> Iterator[Callable[..., Sshd]]:
    """Starts sshds with options of the test's choice."""
    if SSHD is None:
        pytest.skip("OpenSSH's sshd is not installed (Debian: openssh-server)")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    started: list[Sshd] = []

    def start(*options: str) -> Sshd:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        fixed = ("ListenAddress=127.0.0.1", "PidFile=none", "StrictModes=no", "UsePAM=no")
        # the developer's own start-up files are no part of these tests
        home = (f"AuthorizedKeysFile={keys.path('client_key.pub')}", f"SetEnv=HOME={keys.folder}")
        own = (*fixed, *options, *home)
        words = [SSHD, "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", keys.path("host_key")]
        process = subprocess.Popen(
            [*words, *(word for option in own for word in ("-o", option))], stderr=subprocess.DEVNULL
        )
        sshd = Sshd(keys, port, process)
        started.append(sshd)
        _await_listening(sshd)
        return sshd

    yield start
    for sshd in started:
        sshd.cut()
        sshd.process.kill()
        sshd.process.wait()


def _await_listening(sshd: Sshd) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        assert sshd.process.poll() is None, "sshd ended at once"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", sshd.port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError("sshd does not listen")


# --- what runs on this machine


@pytest.fixture
def processes() -> Callable[[str], list[str]]:
    """The command lines of live processes that hold a word."""

    def find(word: str) -> list[str]:
        answer = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, text=True, check=True).stdout
        return [line for line in answer.splitlines() if word in line]

    return find


@pytest.fixture
def none_left(processes: Callable[[str], list[str]]) -> Callable[[str], Awaitable[None]]:
    """Waits until no process holds a word."""

    async def wait(word: str) -> None:
        deadline = time.monotonic() + 8
        while left := processes(word):
            assert time.monotonic() < deadline, left
            await asyncio.sleep(0.05)

    return wait


@pytest.fixture
def seen(processes: Callable[[str], list[str]]) -> Callable[[str], Awaitable[None]]:
    """Waits until a process holds a word."""

    async def wait(word: str) -> None:
        deadline = time.monotonic() + 8
        while not processes(word):
            assert time.monotonic() < deadline, f"no process with {word}"
            await asyncio.sleep(0.02)

    return wait


@pytest.fixture
def unused_port() -> int:
    """A port of this machine where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
