"""Which host keys are trusted, and words for those that are not.

asyncssh says "not trusted" for a host that was never seen and for one whose key has changed; for the user these are
a question and an alarm. Files that are missing and lines that cannot be read are left out, as OpenSSH does it, where
asyncssh would refuse the whole list.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.ssh.errors import explain
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ddconsole.core.errors import DdconsoleError

GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
"""Where OpenSSH looks besides the user's own files."""


class TrustedKeys:
    """What known_hosts files say of the host that a connection reached; asyncssh calls it during the handshake."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = tuple(files)
        self.trusted: list[asyncssh.SSHKey] = []
        self.address = ""

    def __call__(self, host: str, addr: str, port: int | None) -> Sequence[Any]:
        """The keys for this host: trusted, authorities, revoked, and the same for X.509."""
        self.address = f"[{host}]:{port}" if port else host
        found = [known.match(host, addr, port) for known in map(_read, self.files)]
        self.trusted = [key for result in found for key in result[0]]
        return [self.trusted, *([entry for result in found for entry in result[kind]] for kind in range(1, 7))]


def _read(file: str) -> asyncssh.SSHKnownHosts:
    known = asyncssh.SSHKnownHosts()
    try:
        lines = Path(file).expanduser().read_text("utf-8", "replace").splitlines()
    except OSError:
        return known  # a missing file trusts nobody
    for line in lines:
        try:
            known.load(line)
        except ValueError:
            continue  # an unreadable line trusts nobody either
    return known


class KeyWitness(asyncssh.SSHClient):
    """Remembers the key that the host showed, and trusts none that the files do not."""

    def __init__(self) -> None:
        self.offered: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Called for a key that no file knows."""
        self.offered = key
        return False


def explain_host_key(
    exc: BaseException, host: str, trusted: TrustedKeys, offered: asyncssh.SSHKey | None
) -> DdconsoleError:
    """Tell an unknown key, a changed one and a revoked one apart; other errors as `explain` has them."""
    if isinstance(exc, asyncssh.HostKeyNotVerifiable) and "revoked" in str(exc):
        return _revoked(host, trusted)
    if isinstance(exc, asyncssh.HostKeyNotVerifiable) and offered is not None:
        return _changed(host, trusted, offered) if trusted.trusted else _unknown(host, offered)
    if isinstance(exc, asyncssh.KeyExchangeFailed) and trusted.trusted and "host key" in str(exc).lower():
        return _changed(host, trusted, None)
    return explain(exc, host)


def _words(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def _unknown(host: str, offered: asyncssh.SSHKey) -> UnreachableError:
    return UnreachableError(
        f"{host} is not known yet: no known_hosts file has its key",
        evidence=(f"it shows {_words(offered)}",),
        advice=f"Compare this fingerprint with the host's own, then record it by logging in once with `ssh {host}`.",
    )


def _changed(host: str, trusted: TrustedKeys, offered: asyncssh.SSHKey | None) -> UnreachableError:
    shows = _words(offered) if offered else "a key of another type"
    return UnreachableError(
        f"the host key of {host} has CHANGED: it may not be the host you know",
        evidence=(f"it shows {shows}", *(f"known_hosts has {_words(key)}" for key in trusted.trusted)),
        advice="Ask its owner. Only if the change is confirmed, remove the old key: "
        f"`ssh-keygen -R '{trusted.address}'`, and log in once with `ssh {host}`.",
    )


def _revoked(host: str, trusted: TrustedKeys) -> UnreachableError:
    return UnreachableError(
        f"the host key of {host} is revoked",
        evidence=(f"@revoked for {trusted.address}",),
        advice="Do not connect; ask the host's owner for its new key.",
    )
