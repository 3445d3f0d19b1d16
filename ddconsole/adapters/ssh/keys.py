"""Which host keys are trusted, and words for those that are not.

asyncssh says "not trusted" for a host that was never seen and for one whose key has changed; for the user these are
a question and an alarm. Files that are missing and lines that cannot be read are left out, as OpenSSH does it, where
asyncssh would refuse the whole list. A host is known by its name, as OpenSSH knows it, not by its address.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.ssh.errors import explain
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ddconsole.core.errors import DdconsoleError

GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
"""Where OpenSSH looks besides the user's own files."""


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A key of a known_hosts file, and where it stands."""

    key: asyncssh.SSHKey
    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number} has {key_words(self.key)}"


class TrustedKeys:
    """What known_hosts files say of one host; asyncssh calls it during the handshake.

    Attributes:
        address: the host's name in these files; it bears a port other than 22, but never beside a HostKeyAlias.
        lines: the keys for this very name and port; one that differs from what the host shows means a change.
    """

    def __init__(self, files: Sequence[str], host: str = "", port: int = 22, alias: str = "") -> None:
        self.files = tuple(files)
        self.host = alias or host
        self.address = self.host if alias or port == 22 else f"[{self.host}]:{port}"
        self.lines: tuple[KnownLine, ...] = ()
        self.revoked: tuple[KnownLine, ...] = ()

    def __call__(self, host: str, addr: str, port: int | None) -> Sequence[Any]:
        """The keys for this host: trusted, authorities, revoked, and the same for X.509."""
        found = list(self._matching(self.address))
        self.lines = tuple(_trusted(found))
        self.revoked = tuple(_revoked(found))
        known = bool(self.lines) or any(matched[1] for *_, matched in found)
        if not known and self.address != self.host:
            # a line without a port is good for every port, but a different key there is no change of this one
            found += self._matching(self.host)
        return [[entry for *_, matched in found for entry in matched[kind]] for kind in range(7)]

    def _matching(self, address: str) -> Iterator[tuple[str, int, Sequence[Any]]]:
        for file in self.files:
            for number, line in _lines(file):
                matched = line.match(address, "", None)
                if any(matched):
                    yield file, number, matched


def _trusted(found: Sequence[tuple[str, int, Sequence[Any]]]) -> Iterator[KnownLine]:
    return (KnownLine(key, file, number) for file, number, matched in found for key in dict.fromkeys(matched[0]))


def _revoked(found: Sequence[tuple[str, int, Sequence[Any]]]) -> Iterator[KnownLine]:
    return (KnownLine(key, file, number) for file, number, matched in found for key in dict.fromkeys(matched[2]))


def _lines(file: str) -> Iterator[tuple[int, asyncssh.SSHKnownHosts]]:
    """The lines of a file that can be read, by number."""
    try:
        text = Path(file).expanduser().read_text("utf-8", "replace")
    except OSError:
        return  # a missing file trusts nobody
    for number, line in enumerate(text.splitlines(), 1):
        known = asyncssh.SSHKnownHosts()
        try:
            known.load(line)
        except ValueError:
            continue  # an unreadable line trusts nobody either
        yield number, known


def key_words(key: asyncssh.SSHKey) -> str:
    """Type and fingerprint, as ssh prints them."""
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def explain_host_key(
    exc: BaseException, host: str, trusted: TrustedKeys, offered: asyncssh.SSHKey | None
) -> DdconsoleError:
    """Tell an unknown key, a changed one and a revoked one apart; other errors as `explain` has them."""
    if isinstance(exc, asyncssh.HostKeyNotVerifiable) and "revoked" in str(exc):
        return _revoked_key(host, trusted)
    if isinstance(exc, asyncssh.HostKeyNotVerifiable) and offered is not None:
        return _changed(host, trusted, offered) if trusted.lines else unknown_key(host, offered)
    if isinstance(exc, asyncssh.KeyExchangeFailed) and trusted.lines and "host key" in str(exc).lower():
        return _changed(host, trusted, None)
    return explain(exc, host, login=True)


def unknown_key(host: str, offered: asyncssh.SSHKey) -> UnreachableError:
    """A key that no file knows, and nobody could be asked about."""
    return UnreachableError(
        f"{host} is not known yet: no known_hosts file has its key",
        evidence=(f"it shows {key_words(offered)}",),
        advice="Compare this fingerprint with the host's own; then record it from a terminal, by `ddconsole doctor` or "
        f"`ssh {host}`, or take it unseen with `--accept-new`.",
    )


def _changed(host: str, trusted: TrustedKeys, offered: asyncssh.SSHKey | None) -> UnreachableError:
    shows = key_words(offered) if offered else "a key of another type"
    files = list(dict.fromkeys(line.file for line in trusted.lines))
    remove = " and ".join(f"`ssh-keygen -f '{file}' -R '{trusted.address}'`" for file in files)
    return UnreachableError(
        f"the host key of {host} has CHANGED: it may not be the host you know",
        evidence=(f"it shows {shows}", *map(str, trusted.lines)),
        advice=f"Ask its owner. Only if the change is confirmed, remove the old key: {remove}; then connect again.",
    )


def _revoked_key(host: str, trusted: TrustedKeys) -> UnreachableError:
    return UnreachableError(
        f"the host key of {host} is revoked",
        evidence=tuple(f"{line.file}:{line.number} revokes {key_words(line.key)}" for line in trusted.revoked)
        or (f"@revoked for {trusted.address}",),
        advice="Do not connect; ask the host's owner for its new key.",
    )
