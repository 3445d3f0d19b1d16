"""The host behind the system's own `ssh`: one master connection, and a short-lived client for each command.

For hosts that asyncssh cannot reach: Kerberos, security keys, smart cards, or whatever else a company's ssh is built
with. The user's ssh_config is followed to the letter, since OpenSSH itself reads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from ddconsole.adapters.openssh.errors import explain_output
from ddconsole.adapters.openssh.master import Master, MasterMaker, quiet_client
from ddconsole.adapters.openssh.process import MuxProcess
from ddconsole.adapters.shell import Mode, wire_command
from ddconsole.adapters.shell.host import GuardedHost
from ddconsole.adapters.ssh.connector import LanesConnector
from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.adapters.shell.process import Piped
    from ddconsole.adapters.ssh.lanes import Lanes
    from ddconsole.adapters.ssh.link import Times
    from ddconsole.core.ports import Asker, Forward

__all__ = ["OpenSshConnector", "OpenSshHost"]

PROBE_S = 1.0
"""Seconds in which a forbidden forwarding is refused; a port that was opened does not answer in them."""

FREE_PORTS = 5
"""How often another local port is tried when somebody takes it between the choice and the use."""


class OpenSshConnector(LanesConnector[Master]):
    """By the system's ssh; a connection is a master of its own."""

    def _open_with(self, asker: Asker, accept_new: bool) -> MasterMaker:
        return MasterMaker(self._target, asker, accept_new, self._times)

    def _host(self, first: Master, lanes: Lanes[Master]) -> OpenSshHost:
        return OpenSshHost(self._name, first, lanes, self._times)


class OpenSshHost(GuardedHost):
    """The `Host` port over ControlMaster."""

    def __init__(self, name: str, master: Master, lanes: Lanes[Master], times: Times) -> None:
        super().__init__(name)
        self._master = master
        self._lanes = lanes
        self._times = times
        self._rtt = 0.0

    async def _start(self, argv: Sequence[str], marker: str, mode: Mode) -> Piped:
        command, long = wire_command(argv, marker, mode), mode is Mode.STREAM
        times = 0
        while True:
            times += 1
            lane = await self._lanes.take(long=long)
            process: MuxProcess | None = None
            try:
                process = await MuxProcess.start(lane.link, command, argv, self._name)
                begun = await self._begun(process)
            except BaseException:
                if process is not None:
                    self._reap(process)
                self._lanes.give_back(lane, long=long)
                raise
            if begun or not process.was_refused:
                lane.served = True
                process.on_end = partial(self._lanes.give_back, lane, long=long)
                return process
            self._reap(process)
            if not await self._lanes.refused(lane, long=long, times=times):
                raise explain_output(process.said, self._name)

    async def _begun(self, process: MuxProcess) -> bool:
        try:
            async with asyncio.timeout(self._times.channel):
                return await process.begin()
        except TimeoutError:
            raise UnreachableError(
                f"{self._name} does not answer",
                evidence=(f"no command was started within {self._times.channel:g} s",),
                advice="The console connects again; the host may be overloaded, or the line is dead.",
            ) from None

    async def forward(self, port: int) -> Forward:
        """Reach 127.0.0.1:`port` of the host through a free local port.

        Raises:
            UnreachableError: the connection is lost.
            HostError: the host forbids forwarding, or no local port could be opened.
        """
        await self._probe_forwarding(port)
        said = ""
        for _ in range(FREE_PORTS):
            local = _free_port()
            way = f"127.0.0.1:{local}:127.0.0.1:{port}"
            status, said = await self._master.control("forward", "-L", way)
            if status == 0:
                return MuxForward(self._master, local, way)
        self._check_alive()
        raise HostError(
            f"no port could be opened for forwarding to {self._name}",
            evidence=tuple(said.splitlines()[-3:]),
            advice="Look at what else listens on this machine.",
        )

    async def _probe_forwarding(self, port: int) -> None:
        """A closed port is no error: connections are dropped until something listens there."""
        self._check_alive()
        mark = self._master.heard
        process = await asyncio.create_subprocess_exec(
            *quiet_client(self._master.path, "-W", f"127.0.0.1:{port}"), "--", "ddconsole",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with asyncio.timeout(PROBE_S):
                await process.wait()
        except TimeoutError:
            return
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = await self._master.says_since(mark, "open failed") if process.returncode else ""
        if "administratively prohibited" in said:
            raise explain_output(said, self._name)

    def _check_alive(self) -> None:
        if not self._master.alive:
            raise UnreachableError(
                f"the connection to {self._name} is lost",
                evidence=tuple(self._master.words.splitlines()[-3:]),
                advice="The console connects again.",
            )

    async def ping(self) -> float:
        """Round trip in seconds: the time of an empty command, so the start of a shell on the host is in it.

        Where every channel is in use, the last one measured; ssh's own keepalive watches the line.

        Raises:
            UnreachableError: the connection is lost, or did not answer in its time.
        """
        self._check_alive()
        if not self._lanes.first.has_room(long=False):
            return self._rtt
        start = time.perf_counter()
        try:
            await self.run(["true"], timeout=self._times.ping)
        except HostError as error:
            if "did not end" not in error.what:
                raise
            raise UnreachableError(
                f"{self._name} does not answer", evidence=(f"no answer for {self._times.ping:g} s",)
            ) from error
        self._rtt = time.perf_counter() - start
        return self._rtt

    async def close(self) -> None:
        """End our commands and the master. What was started in a session of its own goes on."""
        await self._end_all()
        await self._lanes.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the connection has to say."""
        return self._master.notes


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class MuxForward:
    """The `Forward` port: a listener of the master's."""

    def __init__(self, master: Master, local_port: int, way: str) -> None:
        self._master = master
        self._local_port = local_port
        self._way = way

    @property
    def local_port(self) -> int:
        """The port on 127.0.0.1 of this machine."""
        return self._local_port

    async def close(self) -> None:
        """Stop listening. Connections that stand are not cut."""
        if self._master.alive:
            with contextlib.suppress(UnreachableError):
                await self._master.control("cancel", "-L", self._way)
