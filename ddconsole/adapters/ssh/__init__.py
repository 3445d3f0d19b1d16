"""The host behind ssh: one connection, many channels, over asyncssh."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from functools import partial
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.shell import Mode, wire_command
from ddconsole.adapters.shell.host import GuardedHost
from ddconsole.adapters.shell.process import OneReader, Piped, lost
from ddconsole.adapters.ssh.connector import LanesConnector
from ddconsole.adapters.ssh.errors import FOREIGN, explain
from ddconsole.adapters.ssh.link import Link, Opener, Times
from ddconsole.adapters.ssh.target import SshTarget
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ddconsole.adapters.ssh.lanes import Lanes
    from ddconsole.core.ports import Asker, Forward

__all__ = ["SshConnector", "SshHost", "SshTarget", "Times"]


class SshConnector(LanesConnector[Link]):
    """By asyncssh."""

    def _open_with(self, asker: Asker, accept_new: bool) -> Opener:
        return Opener(self._target, asker, accept_new, self._times)

    def _host(self, first: Link, lanes: Lanes[Link]) -> SshHost:
        return SshHost(self._name, first, lanes, dict(self._target.send_env), self._times)


class SshHost(GuardedHost):
    """The `Host` port over an ssh connection."""

    def __init__(self, name: str, link: Link, lanes: Lanes[Link], env: dict[str, str], times: Times) -> None:
        super().__init__(name)
        self._link = link
        self._lanes = lanes
        self._env = env
        self._times = times

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as the user's ssh configuration asks for it."""
        return self._link.notes

    async def _start(self, argv: Sequence[str], marker: str, mode: Mode) -> Piped:
        command = wire_command(argv, marker, mode)
        long = mode is Mode.STREAM
        times = 0
        while True:
            times += 1
            lane = await self._lanes.take(long=long)
            try:
                process = await self._open_channel(lane.link, command)
            except asyncssh.ChannelOpenError as exc:
                if lane.link.alive and await self._lanes.refused(lane, long=long, times=times):
                    continue
                raise self._explain(exc) from exc
            except BaseException as exc:
                self._lanes.give_back(lane, long=long)
                if isinstance(exc, FOREIGN):
                    raise self._explain(exc) from exc
                raise
            lane.served = True
            return SshProcess(process, argv, self._name, partial(self._lanes.give_back, lane, long=long))

    async def _open_channel(self, link: Link, command: str) -> asyncssh.SSHClientProcess[bytes]:
        async with asyncio.timeout(self._times.channel):
            process: asyncssh.SSHClientProcess[bytes] = await link.connection.create_process(
                command.encode("utf-8", "surrogateescape"), encoding=None, env=self._env, term_type=None
            )
        return process

    def _explain(self, exc: BaseException) -> Exception:
        if isinstance(exc, TimeoutError) and self._link.alive:
            return UnreachableError(
                f"{self._name} does not answer",
                evidence=(f"no channel was opened within {self._times.channel:g} s",),
                advice="The console connects again; the host may be overloaded, or the line is dead.",
            )
        if not self._link.alive:
            return UnreachableError(
                f"the connection to {self._name} is lost", evidence=(str(exc),), advice="The console connects again."
            )
        return explain(exc, self._name)

    async def forward(self, port: int) -> Forward:
        """Reach 127.0.0.1:`port` of the host through a free local port.

        Raises:
            UnreachableError: the connection is lost.
            HostError: the host forbids forwarding, or no local port could be opened. A port where nothing listens
                yet is no error: connections through the forward are dropped until it is there.
        """
        try:
            async with asyncio.timeout(self._times.channel):
                await self._probe_forwarding(port)
            listener = await self._link.connection.forward_local_port("127.0.0.1", 0, "127.0.0.1", port)
        except FOREIGN as exc:
            raise self._explain(exc) from exc
        return SshForward(listener)

    async def _probe_forwarding(self, port: int) -> None:
        """Forbidden and closed look alike through a listener, which drops the connection in both cases."""
        try:
            _, writer = await self._link.connection.open_connection("127.0.0.1", port)
        except asyncssh.ChannelOpenError as exc:
            if exc.code != asyncssh.OPEN_CONNECT_FAILED or not self._link.alive:
                raise
        else:
            writer.close()

    async def ping(self) -> float:
        """Round trip in seconds, by the request that OpenSSH's own keepalive uses.

        Raises:
            UnreachableError: the connection is lost, or did not answer in its time.
        """
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self._times.ping):
                # asyncssh has no public round trip that opens no channel; a test holds this name to its word
                await self._link.connection._make_global_request(b"keepalive@openssh.com")
        except FOREIGN as exc:  # TimeoutError is an OSError
            raise UnreachableError(
                f"{self._name} does not answer", evidence=(str(exc) or f"no answer for {self._times.ping:g} s",)
            ) from exc
        if not self._link.alive:
            raise UnreachableError(f"the connection to {self._name} is lost", advice="The console connects again.")
        return time.perf_counter() - start

    async def close(self) -> None:
        """End our commands and close the connection. What was started in a session of its own goes on."""
        await self._end_all()
        await self._lanes.close()


class SshProcess:
    """A command on a channel without a terminal."""

    def __init__(
        self, process: asyncssh.SSHClientProcess[bytes], argv: Sequence[str], host: str, give_back: Callable[[], None]
    ) -> None:
        self._process = process
        self._argv = tuple(argv)
        self._host = host
        self._give_back = give_back
        self._let_go = False
        self.read_stdout = OneReader(lambda size: self._read(process.stdout, size))
        self.read_stderr = OneReader(lambda size: self._read(process.stderr, size))

    async def _read(self, reader: asyncssh.SSHReader[bytes], size: int) -> bytes:
        try:
            return await reader.read(size)
        except FOREIGN as exc:
            raise lost(self._host, self._argv) from exc

    async def write(self, data: bytes) -> None:
        """Give input. A command that does not take it says so by its outcome."""
        with contextlib.suppress(*FOREIGN):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def end_input(self) -> None:
        """The guard sees the end, and ends its command."""
        with contextlib.suppress(*FOREIGN):
            self._process.stdin.write_eof()

    async def wait(self) -> int | None:
        """The status, or None when the channel ended without one: the connection was lost."""
        await self._process.wait_closed()
        if self._process.exit_signal is not None:
            name = self._process.exit_signal[0]
            return 128 + getattr(signal, f"SIG{name}", signal.SIGKILL)
        return self._process.exit_status

    def abandon(self) -> None:
        """Close the channel, and give its place back."""
        if not self._let_go:
            self._let_go = True
            self._process.close()
            self._give_back()


class SshForward:
    """The `Forward` port: a listener on this machine's loopback."""

    def __init__(self, listener: asyncssh.SSHListener) -> None:
        self._listener = listener

    @property
    def local_port(self) -> int:
        """The port on 127.0.0.1 of this machine."""
        return self._listener.get_port()

    async def close(self) -> None:
        """Stop listening. Connections that stand are not cut."""
        self._listener.close()
        await self._listener.wait_closed()
