"""One ssh connection, opened as OpenSSH would resolve its name: configuration, keys, agent, jump hosts."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh

from ddconsole.adapters.ssh.errors import FOREIGN, explain
from ddconsole.adapters.ssh.keys import GLOBAL_KNOWN_HOSTS, KeyWitness, TrustedKeys, explain_host_key

if TYPE_CHECKING:
    from collections.abc import Mapping

KEEPALIVE_S, KEEPALIVE_COUNT = 15, 3
"""A link that is silently cut is given up after their product, 45 s."""

CONNECT_S = 20.0
"""The most that a connection may take to stand, where ssh_config has no ConnectTimeout."""


_BRACKETED = re.compile(r"\[(?P<host>[^\]]+)\](?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to connect. None means: as OpenSSH resolves it from the user's configuration.

    Attributes:
        host: an alias of ssh_config, a name or an address.
        client_keys: private key files; when given, neither the agent nor other keys are tried.
        known_hosts: files that hold the trusted host keys.
        config: ssh_config files; an empty tuple reads none.
        send_env: variables that the host's sshd may accept for our commands.
    """

    host: str
    port: int | None = None
    username: str | None = None
    client_keys: tuple[str, ...] | None = None
    known_hosts: tuple[str, ...] | None = None
    config: tuple[str, ...] | None = None
    send_env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SshTarget:
        """`alias`, `user@host` or `user@host:port`; a jump host is written in the same way."""
        user, _, place = text.rpartition("@")
        bracketed = _BRACKETED.fullmatch(place)
        if bracketed:
            host, port = bracketed["host"], bracketed["port"]
        elif place.count(":") == 1 and place.partition(":")[2].isdigit():
            host, _, port = place.partition(":")
        else:
            host, port = place, None
        return cls(host, int(port) if port else None, user or None)

    def given(self) -> dict[str, Any]:
        """The options that fix what OpenSSH's configuration would say, in asyncssh's names."""
        chosen = {"port": self.port, "username": self.username}
        return {name: value for name, value in chosen.items() if value is not None} | {"config": self._config()}

    def _config(self) -> list[str] | None:
        if self.config is not None:
            return list(self.config) or None
        usual = (Path.home() / ".ssh" / "config", Path("/etc/ssh/ssh_config"))
        return [str(path) for path in usual if path.is_file()] or None


@dataclass(slots=True)
class Link:
    """A connection and the jump hosts that it goes through, nearest to the host last."""

    connection: asyncssh.SSHClientConnection
    hops: list[asyncssh.SSHClientConnection]

    @property
    def alive(self) -> bool:
        """It has not been closed or lost."""
        return not self.connection.is_closed()

    async def close(self) -> None:
        """Close the connection, then its jump hosts from near to far."""
        for connection in (self.connection, *reversed(self.hops)):
            connection.close()
            with contextlib.suppress(*FOREIGN):
                await connection.wait_closed()


async def open_link(target: SshTarget, visited: frozenset[str] = frozenset()) -> Link:
    """Connect, through jump hosts where the configuration names them.

    Raises:
        UnreachableError: with what failed, the evidence, and the remedy.
    """
    try:
        settings = await asyncssh.SSHClientConnectionOptions.construct(
            host=target.host, client_keys=None, **target.given()
        )
    except FOREIGN as exc:
        raise explain(exc, target.host) from exc
    hops = await _open_hops(target, settings, visited | {target.host})
    try:
        return Link(await _connect(target, settings, hops[-1] if hops else None), hops)
    except BaseException:
        for hop in reversed(hops):
            hop.close()
        raise


async def _open_hops(
    target: SshTarget, settings: asyncssh.SSHClientConnectionOptions, visited: frozenset[str]
) -> list[asyncssh.SSHClientConnection]:
    """The jump hosts of ProxyJump. We open them ourselves, so that their host keys are checked as strictly."""
    jumps = str(settings.tunnel) if settings.tunnel else ""
    wanted = [SshTarget.parse(jump) for jump in jumps.split(",") if jump]
    hops: list[asyncssh.SSHClientConnection] = []
    for jump in (jump for jump in wanted if jump.host not in visited):
        hop = replace(jump, config=target.config, known_hosts=target.known_hosts)
        link = await open_link(hop, visited) if not hops else Link(await _connect_through(hop, hops[-1]), [])
        hops += [*link.hops, link.connection]
    return hops


async def _connect_through(target: SshTarget, tunnel: asyncssh.SSHClientConnection) -> asyncssh.SSHClientConnection:
    settings = await asyncssh.SSHClientConnectionOptions.construct(host=target.host, client_keys=None, **target.given())
    return await _connect(target, settings, tunnel)


async def _connect(
    target: SshTarget,
    settings: asyncssh.SSHClientConnectionOptions,
    tunnel: asyncssh.SSHClientConnection | None,
) -> asyncssh.SSHClientConnection:
    trusted = TrustedKeys(target.known_hosts or _known_hosts_files(settings))
    witness = KeyWitness()
    try:
        return await asyncssh.connect(
            target.host,
            tunnel=tunnel or (),
            client_factory=lambda: witness,
            known_hosts=trusted,
            connect_timeout=settings.connect_timeout or CONNECT_S,
            keepalive_interval=KEEPALIVE_S,
            keepalive_count_max=KEEPALIVE_COUNT,
            agent_forwarding=False,
            x11_forwarding=False,
            request_pty=False,
            utf8_decode_errors="replace",
            **_identity(target, settings),
            **target.given(),
        )
    except FOREIGN as exc:
        raise explain_host_key(exc, target.host, trusted, witness.offered) from exc


def _known_hosts_files(settings: asyncssh.SSHClientConnectionOptions) -> tuple[str, ...]:
    """The files that ssh_config names, else the usual ones. `UserKnownHostsFile none` trusts nobody here."""
    named = settings.known_hosts
    if isinstance(named, list) and named:
        return tuple(map(str, named))
    user = () if named is None else (str(Path.home() / ".ssh" / "known_hosts"), str(Path.home() / ".ssh/known_hosts2"))
    return (*user, *GLOBAL_KNOWN_HOSTS)


def _identity(target: SshTarget, settings: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
    """Which keys prove who we are.

    An IdentityFile that does not exist is skipped, as OpenSSH does; asyncssh would fail on it.
    """
    if target.client_keys is not None:
        return {"client_keys": list(target.client_keys), "agent_path": None}
    files = settings.config.get("IdentityFile", [])
    named = [str(file) for file in files] if isinstance(files, list) else []
    present = [file for file in named if Path(file).expanduser().is_file()]
    if present == named:
        return {}
    return {"client_keys": present, "ignore_encrypted": True}
