"""One ssh connection, opened as OpenSSH would resolve its name: configuration, keys, agent, proxies, jump hosts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import asyncssh

from ddconsole.adapters.ssh.errors import FOREIGN, explain_jump, no_way_on
from ddconsole.adapters.ssh.identity import KeyRing, gather
from ddconsole.adapters.ssh.keys import explain_host_key, key_words, unknown_key
from ddconsole.adapters.ssh.known_hosts import record_key
from ddconsole.adapters.ssh.login import Asking, LoginClient
from ddconsole.adapters.ssh.options import connect_options, trusted_keys, unheeded, user_known_hosts
from ddconsole.adapters.ssh.proxy import ProxyProcess
from ddconsole.adapters.ssh.settings import Settings, read_settings
from ddconsole.adapters.ssh.target import SshTarget
from ddconsole.core.errors import DdconsoleError, UnreachableError
from ddconsole.core.ports import Asked, NoAsker, Question

if TYPE_CHECKING:
    from ddconsole.adapters.ssh.keys import TrustedKeys
    from ddconsole.core.ports import Asker

__all__ = ["Link", "Opener", "SshTarget", "Times"]


CLOSE_S = 3.0


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that things may take on one connection. A test scales them down.

    Attributes:
        connect: until it stands, where ssh_config has no ConnectTimeout; a person's time to answer is not counted.
        keepalive: between two questions whether the host is still there, which may go unanswered `missed` times.
        ping: for one round trip.
        channel: until the host has opened a channel, or refused it.
        close: for a connection to end in good order; then it is dropped.
    """

    connect: float = 20.0
    keepalive: float = 10.0
    missed: int = 2
    ping: float = 10.0
    channel: float = 20.0
    close: float = CLOSE_S


@dataclass(slots=True)
class Link:
    """A connection and what it goes through: jump hosts, nearest to the host last, or a ProxyCommand."""

    connection: asyncssh.SSHClientConnection
    hops: list[Link]
    proxy: ProxyProcess | None = None
    notes: tuple[str, ...] = ()
    close_s: float = CLOSE_S
    name: str = ""

    @property
    def alive(self) -> bool:
        """It has not been closed or lost."""
        return not self.connection.is_closed()

    async def close(self) -> None:
        """Close the connection, then what it went through. One that does not answer is dropped."""
        self.connection.close()
        try:
            async with asyncio.timeout(self.close_s):
                await self.connection.wait_closed()
        except FOREIGN:  # TimeoutError is an OSError
            self.connection.abort()
        if self.proxy is not None:
            await self.proxy.close()
        for hop in reversed(self.hops):
            await hop.close()


@dataclass(slots=True)
class Opener:
    """Opens connections to one target. Unlocked keys and the user's answers of one process live in it.

    Attributes:
        accept_new: an unknown host key is recorded without asking, and said.
    """

    target: SshTarget
    asker: Asker = field(default_factory=NoAsker)
    accept_new: bool = False
    times: Times = field(default_factory=Times)
    ring: KeyRing = field(default_factory=KeyRing)

    async def open(self) -> Link:
        """Connect, through jump hosts where the configuration names them.

        Raises:
            AnswerNeededError: a person has to answer first.
            UnreachableError: with what failed, the evidence, and the remedy.
        """
        link = await self._to(self.target, frozenset(), None)
        self.asker.settled()
        return link

    async def _to(self, target: SshTarget, visited: frozenset[str], through: Link | None) -> Link:
        settings = await read_settings(target)
        hops = [through] if through else await self._hops(target, settings, visited | {target.host})
        try:
            return await self._knock(target, settings, hops)
        except BaseException:
            for hop in reversed(hops if through is None else []):
                await hop.close()
            raise

    async def _hops(self, target: SshTarget, settings: Settings, visited: frozenset[str]) -> list[Link]:
        """The jump hosts of ProxyJump. We open them ourselves, so that their host keys are checked as strictly."""
        wanted = [SshTarget.parse(jump) for jump in settings.first("proxyjump").split(",") if jump]
        hops: list[Link] = []
        try:
            for jump in (jump for jump in wanted if jump.host not in visited):
                hop = replace(jump, config=target.config, known_hosts=target.known_hosts)
                hops.append(await self._to(hop, visited, hops[-1] if hops else None))
        except DdconsoleError as error:
            for link in reversed(hops):
                await link.close()
            raise explain_jump(error, jump.host, target.host) from error
        return hops

    async def _knock(self, target: SshTarget, settings: Settings, hops: list[Link]) -> Link:
        """Connect; once more when an unknown host key has been accepted meanwhile."""
        noted = unheeded(settings)
        for first in (True, False):
            trusted = trusted_keys(target, settings)
            attempt = Attempt(self, target, settings, trusted, hops)
            try:
                link = await attempt.connect()
            except _UnknownKey as unknown:
                if not first:
                    raise unknown_key(target.host, unknown.key) from None
                noted = (*noted, *await self._accept(target, settings, trusted, unknown.key, attempt.ask))
            else:
                link.notes = (*link.notes, *noted)
                return link
        raise AssertionError("the second try returns or raises")

    async def _accept(
        self, target: SshTarget, settings: Settings, trusted: TrustedKeys, key: asyncssh.SSHKey, ask: Asking
    ) -> tuple[str, ...]:
        """Have an unknown key accepted and recorded.

        Raises:
            UnreachableError: ssh_config forbids it, nobody could be asked, or the answer was no.
        """
        files = target.known_hosts or user_known_hosts(settings)
        wanted = settings.first("stricthostkeychecking", "ask").lower()
        unseen = self.accept_new or wanted in ("accept-new", "no", "off", "false")
        if not files or (wanted in ("yes", "true") and not self.accept_new) or not (unseen or ask.can_ask):
            raise unknown_key(target.host, key)
        if not unseen:
            await _agree(target, trusted, key, ask)
        record_key(files[0], trusted.address, key, hashed=settings.says("hashknownhosts", "yes", "true"))
        return (f"the host key of {target.host} was new and is recorded in {files[0]}: {key_words(key)}",)


async def _agree(target: SshTarget, trusted: TrustedKeys, key: asyncssh.SSHKey, ask: Asking) -> None:
    lines = (
        f"No known_hosts file has a key for {trusted.address}.",
        f"It shows {key.get_algorithm()}",
        key.get_fingerprint(),
        "Compare this with what the host's owner tells you.",
    )
    prompt = "Is this its key (yes/no)?"
    answer = await ask(Question(Asked.HOST_KEY, target.host, f"{target.host} is not known yet", prompt, lines, False))
    if answer.strip().lower() not in ("yes", "y"):
        raise unknown_key(target.host, key)


class _UnknownKey(Exception):  # noqa: N818 - it is a question, not an error
    def __init__(self, key: asyncssh.SSHKey) -> None:
        self.key = key


class Attempt:
    """One try to connect and to log in."""

    def __init__(
        self, opener: Opener, target: SshTarget, settings: Settings, trusted: TrustedKeys, hops: list[Link]
    ) -> None:
        self._opener = opener
        self._target = target
        self._settings = settings
        self._trusted = trusted
        self._hops = hops
        self.ask = Asking(opener.asker, target.host)
        self._client = LoginClient(self.ask)

    async def connect(self) -> Link:
        """The connection, or why there is none."""
        identity = await gather(self._settings, self._target.client_keys, self._opener.ring, self.ask)
        proxy = await self._proxy()
        try:
            connection = await self._open(identity.keys, proxy)
        except BaseException as exc:
            try:
                if isinstance(exc, FOREIGN):
                    raise await self._why(exc, proxy, identity.tried) from exc
                raise
            finally:
                if proxy is not None:
                    await proxy.close()
        finally:
            self.ask.withdraw()
            await identity.close()
        return Link(connection, self._hops, proxy, tuple(identity.notes), self._opener.times.close, self._target.host)

    async def _proxy(self) -> ProxyProcess | None:
        command = self._settings.first("proxycommand")
        return await ProxyProcess.start(self._settings.command(command)) if command and not self._hops else None

    async def _open(self, keys: list[Any], proxy: ProxyProcess | None) -> asyncssh.SSHClientConnection:
        times, settings = self._opener.times, self._settings
        way: dict[str, Any] = (
            {"sock": proxy.socket} if proxy else {"tunnel": self._hops[-1].connection if self._hops else ()}
        )
        seconds = float(settings.first("connecttimeout") or times.connect)
        async with self.ask.within(seconds):
            return await asyncssh.connect(
                settings.host,
                client_factory=lambda: self._client,
                client_keys=keys or None,
                agent_path=None,
                agent_forwarding=False,
                x11_forwarding=False,
                request_pty=False,
                command=None,
                connect_timeout=None,
                login_timeout=0,
                keepalive_interval=times.keepalive,
                keepalive_count_max=times.missed,
                utf8_decode_errors="replace",
                **way,
                **connect_options(settings, self._trusted),
            )

    async def _why(self, exc: BaseException, proxy: ProxyProcess | None, tried: list[str]) -> Exception:
        """The failure in words: an answer that is missing, the ProxyCommand, the host key, or what asyncssh says."""
        if self.ask.refusal is not None:
            return self.ask.refusal
        offered = self._client.offered
        unknown = isinstance(exc, asyncssh.HostKeyNotVerifiable) and "revoked" not in str(exc)
        if unknown and offered and not self._trusted.lines:
            return _UnknownKey(offered)
        if proxy is not None and not isinstance(exc, asyncssh.PermissionDenied | asyncssh.HostKeyNotVerifiable):
            failure = await proxy.failure(self._target.host)
            if failure is not None:
                return failure
        if self._hops and isinstance(exc, asyncssh.ChannelOpenError):
            return no_way_on(exc, self._hops[-1].name, self._target.host)
        error = explain_host_key(exc, self._target.host, self._trusted, offered)
        if isinstance(exc, asyncssh.PermissionDenied):
            return self._refused(error, tried)
        return error

    def _refused(self, error: DdconsoleError, tried: list[str]) -> UnreachableError:
        """A login that was refused: with what it was tried, and what else the host would have taken."""
        keys = f"tried {len(tried)} keys: {', '.join(tried)}" if tried else "no key was there to try"
        wanted = dict.fromkeys(self._client.wanted)
        more = f"it was given {' and '.join(wanted)}, and refused"
        if not self.ask.can_ask:
            more = f"it would take {' or '.join(wanted)}, but there is no terminal to ask on"
        told = (f"as user {self._settings.user}", keys, *((more,) if wanted else ()))
        return UnreachableError(error.what, evidence=(*error.evidence, *told), advice=error.advice)
