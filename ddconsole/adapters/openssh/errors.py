"""What the system's ssh says when it fails, as the same errors that asyncssh's failures become."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.ssh.errors import (
    BY_CLASS,
    FORWARDING_PROHIBITED,
    HUNG_UP,
    NO_ROUTE,
    Explanation,
    explain_jump,
    printable,
)
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from ddconsole.adapters.ssh.settings import Settings
    from ddconsole.core.errors import DdconsoleError

_CHANGED = Explanation(
    UnreachableError,
    "the host key of {host} has CHANGED: it may not be the host you know",
    "Ask its owner. Only if the change is confirmed, remove the old key by the `ssh-keygen` line above; connect again.",
)
_UNKNOWN = Explanation(
    UnreachableError,
    "{host} is not known yet: no known_hosts file has its key",
    "Compare its fingerprint with the host's own; then record it from a terminal, by `ddconsole doctor` or "
    "`ssh {host}`, or take it unseen with `--accept-new`.",
)
_REVOKED = Explanation(
    UnreachableError, "the host key of {host} is revoked", "Do not connect; ask the host's owner for its new key."
)
_PROXY = Explanation(
    UnreachableError,
    "the ProxyCommand of {host} failed",
    "Run it by hand: it has to print the host's ssh greeting. `ssh -G {host}` shows it.",
)
_NO_WAY_ON = Explanation(
    UnreachableError,
    "the jump host opens no way to {host}",
    "Is {host} on, is its name known on the jump host, and does that one allow forwarding (`AllowTcpForwarding yes`)?",
)

_TABLE: tuple[tuple[str, Explanation], ...] = (
    (r"IDENTIFICATION HAS CHANGED", _CHANGED),
    (r"marked as revoked|REVOKED HOST KEY", _REVOKED),
    (r"Host key verification failed|No \S+ host key is known", _UNKNOWN),
    (r"Could not resolve hostname", BY_CLASS[socket.gaierror]),
    (r"Bad configuration option|bad configuration options|Can't open user config file", BY_CLASS[ValueError]),
    (r"stdio forwarding failed", _NO_WAY_ON),
    (r"administratively prohibited", FORWARDING_PROHIBITED),
    (r"Session open refused by peer", BY_CLASS[asyncssh.ChannelOpenError]),
    (r"Permission denied \(|Too many authentication|No supported auth", BY_CLASS[asyncssh.PermissionDenied]),
    (r"no matching .* found", BY_CLASS[asyncssh.KeyExchangeFailed]),
    (r"Connection refused", BY_CLASS[ConnectionRefusedError]),
    (r"No route to host|Network is unreachable", NO_ROUTE),
    (r"timed out|not responding", BY_CLASS[TimeoutError]),
    (r"kex_exchange_identification|Exceeded MaxStartups", HUNG_UP),
    (r"Connection (closed|reset)|Broken pipe|Connection to .* closed", BY_CLASS[ConnectionError]),
)  # fmt: skip

_FORM = re.compile(r"^(@+|\s*)$")
_SHUT = re.compile(r"kex_exchange_identification|Connection (closed|reset) by|banner exchange")


def explain_output(said: str, host: str, settings: Settings | None = None) -> DdconsoleError:
    """The error for what ssh has said. Its own words are the evidence, the key lines first.

    With `settings`, a way that does not open is told as the ProxyCommand's or the jump host's fault.
    """
    lines = [printable(line) for line in said.splitlines() if not _FORM.match(line)]
    meaning = next((found for pattern, found in _TABLE if re.search(pattern, said)), BY_CLASS[asyncssh.Error])
    proxied = settings is not None and bool(settings.first("proxycommand"))
    if proxied and (_SHUT.search(said) or meaning is BY_CLASS[asyncssh.Error]):
        meaning = _PROXY
    error = meaning.kind(
        meaning.what.format(host=host), evidence=_evidence(lines, meaning), advice=meaning.advice.format(host=host)
    )
    jump = settings.first("proxyjump") if settings is not None else ""
    return explain_jump(error, jump, host) if jump and _SHUT.search(said) else error


def _evidence(lines: list[str], meaning: Explanation) -> tuple[str, ...]:
    if meaning is _CHANGED:
        return tuple(line for line in lines if re.search(r"SHA256:|Offending|ssh-keygen", line))
    return tuple(lines[-5:])


def no_ssh(host: str) -> UnreachableError:
    """`transport: openssh` on a machine without it."""
    return UnreachableError(
        f"{host} cannot be reached by `transport: openssh`: there is no ssh program on this machine",
        advice="Install OpenSSH's client, or leave `transport` out of the profile.",
    )
