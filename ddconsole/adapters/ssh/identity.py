"""With which keys a login is tried, and in which order; encrypted ones are unlocked when the host accepts them.

As OpenSSH has it: of the agent's keys those that ssh_config names come first, then the other ones, then the key files.
`IdentitiesOnly` leaves the other ones out. A key that the agent holds is never asked a passphrase for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.ssh.errors import FOREIGN, printable
from ddconsole.core.errors import AnswerNeededError, UnreachableError
from ddconsole.core.ports import Asked, Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from ddconsole.adapters.ssh.settings import Settings

    Ask = Callable[[Question], Awaitable[str]]

TRIES = 3
"""How often a passphrase or a password may be mistyped, as OpenSSH has it."""

AGENT_S = 5.0
"""Seconds for an agent to list its keys; one that asks for a confirmation does so only when it signs."""


@dataclass(slots=True)
class KeyRing:
    """Keys that were unlocked in this process. They are kept for reconnecting; their passphrases are not."""

    unlocked: dict[str, asyncssh.SSHKey] = field(default_factory=dict)


@dataclass(slots=True)
class Identity:
    """What a login is tried with. `tried` names it in messages; `close` lets the agent go."""

    keys: list[asyncssh.SSHKey | asyncssh.SSHKeyPair] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    agent: asyncssh.SSHAgentClient | None = None

    async def close(self) -> None:
        """Let the agent go."""
        if self.agent is not None:
            self.agent.close()
            with contextlib.suppress(*FOREIGN):
                await self.agent.wait_closed()


async def gather(settings: Settings, files: Sequence[str] | None, ring: KeyRing, ask: Ask) -> Identity:
    """The keys for one login. `files` are all that may be used; None: as ssh_config and the agent have it.

    Raises:
        AnswerNeededError: a passphrase is needed before the host can be asked, and nobody gave it.
        UnreachableError: a key file that was asked for by name cannot be read.
    """
    identity = Identity()
    if settings.says("pubkeyauthentication", "no", "false"):
        return identity
    found = [_KeyFile.read(path) for path in _paths(settings, files)]
    known = [file for file in found if file is not None]
    if files is None:
        await _add_agent(identity, settings, known)
    held = {key.public_data for key in identity.keys if isinstance(key, asyncssh.SSHKeyPair)}
    for file in known:
        if file.public is None or file.public.public_data not in held:
            await _add_file(identity, file, settings, ring, ask)
    return identity


def _paths(settings: Settings, files: Sequence[str] | None) -> Iterator[str]:
    """Key files that exist; OpenSSH skips the others without a word."""
    for name in settings.every("identityfile") if files is None else files:
        path = settings.expand(name)
        if Path(path).is_file() or files is not None:
            yield path


@dataclass(frozen=True, slots=True)
class _KeyFile:
    """A file of IdentityFile. `private` is None for a .pub, whose key the agent has to hold."""

    path: str
    public: asyncssh.SSHKey | None
    private: bytes | None

    @classmethod
    def read(cls, path: str) -> _KeyFile | None:
        """The file, as far as it can be read without a passphrase.

        Raises:
            UnreachableError: it cannot be opened.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as exc:
            raise UnreachableError(
                f"the private key {path} cannot be read", evidence=(str(exc),), advice="Check its path and its rights."
            ) from exc
        public = _public(path)
        private = data if b"PRIVATE KEY" in data else None
        return cls(path, public, private) if private or public else None


def _public(path: str) -> asyncssh.SSHKey | None:
    for name in (path, path + ".pub"):
        with contextlib.suppress(OSError, ValueError, asyncssh.KeyImportError):
            return asyncssh.read_public_key(name)
    return None


async def _add_agent(identity: Identity, settings: Settings, files: Sequence[_KeyFile]) -> None:
    path = agent_path(settings)
    if not path:
        return
    try:
        async with asyncio.timeout(AGENT_S):
            identity.agent = await asyncssh.connect_agent(path)
            keys = list(await identity.agent.get_keys())
    except FOREIGN as exc:  # TimeoutError is an OSError
        said = printable(str(exc)) or f"no answer for {AGENT_S:g} s"
        identity.notes.append(f"the ssh agent at {path} does not answer ({said}); it is left out")
        return
    named = [file.public.public_data for file in files if file.public is not None]
    first = [key for data in named for key in keys if key.key_public_data == data]
    rest = [] if settings.says("identitiesonly", "yes", "true") else [key for key in keys if key not in first]
    identity.keys += [*first, *rest]
    identity.tried += [f"{printable(key.get_comment() or 'a key')} of the agent" for key in (*first, *rest)]


def agent_path(settings: Settings) -> str:
    """The agent's socket, or empty: IdentityAgent's, else that of SSH_AUTH_SOCK."""
    named = settings.values.get("identityagent", ("SSH_AUTH_SOCK",))[0]
    if named.lower() == "none":
        return ""
    if named == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK", "")
    if named.startswith("$") and not named.startswith("${"):
        return os.environ.get(named[1:], "")
    return settings.expand(named)


async def _add_file(identity: Identity, file: _KeyFile, settings: Settings, ring: KeyRing, ask: Ask) -> None:
    if file.private is None:
        return  # only the agent could have signed for it
    identity.tried.append(file.path)
    certificates = _certificates(settings, file)
    key = ring.unlocked.get(file.path) or await _open(file)
    if key is None and file.public is None:
        key = await _unlock(file, settings, ring, ask)  # it does not even tell which key it is
    if key is not None:
        identity.keys += asyncssh.load_keypairs([key], None, certificates)
        return

    async def passphrase(_: str) -> str:
        """Called by asyncssh once the host has accepted the key."""
        return await _passphrase(file, settings, ring, ask)

    loop = asyncio.get_running_loop()
    identity.keys += asyncssh.load_keypairs([file.path], passphrase, certificates, loop=loop)  # type: ignore[arg-type]


def _certificates(settings: Settings, file: _KeyFile) -> list[str]:
    """CertificateFile, and the certificate that lies beside the key; asyncssh picks what fits the key."""
    named = [settings.expand(name) for name in settings.every("certificatefile")]
    return [path for path in (*named, file.path + "-cert.pub") if Path(path).is_file()]


async def _open(file: _KeyFile, passphrase: str | None = None) -> asyncssh.SSHKey | None:
    """The private key, or None when it wants another passphrase. Deriving one takes up to a second, in a thread.

    Raises:
        UnreachableError: it is no private key that asyncssh can use.
    """
    assert file.private is not None
    try:
        key = await asyncio.to_thread(asyncssh.import_private_key, file.private, passphrase)
    except asyncssh.KeyEncryptionError as exc:
        if "bcrypt" in str(exc):
            raise _no_bcrypt(file) from exc
        return None
    except asyncssh.KeyImportError as exc:
        if passphrase is None and "passphrase" in str(exc).lower():
            return None
        raise UnreachableError(
            f"the private key {file.path} cannot be read",
            evidence=(printable(str(exc)),),
            advice=f"`ssh-keygen -y -f {file.path}` tells whether OpenSSH can; `transport: openssh` then uses it.",
        ) from exc
    key.set_filename(file.path)
    return key


def _no_bcrypt(file: _KeyFile) -> UnreachableError:
    return UnreachableError(
        f"the private key {file.path} cannot be unlocked here",
        evidence=("OpenSSH's format wants the Python package bcrypt, which is missing",),
        advice=f"`pip install bcrypt`, or put the key into the agent: `ssh-add {file.path}`.",
    )


async def _unlock(file: _KeyFile, settings: Settings, ring: KeyRing, ask: Ask) -> asyncssh.SSHKey:
    await _passphrase(file, settings, ring, ask)
    return ring.unlocked[file.path]


async def _passphrase(file: _KeyFile, settings: Settings, ring: KeyRing, ask: Ask) -> str:
    """Ask until it opens the key; the opened key goes into the ring.

    Raises:
        AnswerNeededError: it was cancelled, or mistyped TRIES times.
    """
    for left in range(TRIES, 0, -1):
        again = () if left == TRIES else ("That passphrase does not open it.",)
        answer = await ask(
            Question(Asked.PASSPHRASE, settings.alias, "Passphrase", f"Passphrase of {file.path}", again)
        )
        key = await _open(file, answer)
        if key is not None:
            ring.unlocked[file.path] = key
            return answer
    raise AnswerNeededError(
        f"the passphrase of {file.path} was wrong {TRIES} times",
        advice=f"Try again, or put the key into the agent: `ssh-add {file.path}`.",
    )
