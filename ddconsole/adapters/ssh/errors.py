"""Every error of asyncssh and of the network, as something the user can act on.

The table is by class; an unlisted class falls to the nearest listed ancestor, and a test walks asyncssh's tree.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.core.errors import DdconsoleError, HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened, with `{host}` for its name, and what to do about it."""

    kind: Callable[..., DdconsoleError]
    what: str
    advice: str


def _unreachable(what: str, advice: str) -> Explanation:
    return Explanation(UnreachableError, what, advice)


def _refused(what: str, advice: str) -> Explanation:
    return Explanation(HostError, what, advice)


_LATER = "The console connects again by itself; look at the network and at the host's sshd if it stays so."
_VERSIONS = "Compare `ssh -vv {host}`; the host's ssh server may be very old, or not an ssh server."
_CONFIG = "Check that line of your ssh configuration; `ssh -G {host}` shows how OpenSSH reads it."

BY_CLASS: dict[type[BaseException], Explanation] = {
    asyncssh.ConnectionLost: _unreachable("the connection to {host} was lost", _LATER),
    asyncssh.HostKeyNotVerifiable: _unreachable(
        "the host key of {host} cannot be verified", "Log in once with `ssh {host}` to compare and record its key."
    ),
    asyncssh.PermissionDenied: _unreachable(
        "{host} does not accept this login",
        "Try `ssh {host}`. A key with a passphrase has to be in the agent (`ssh-add`); ssh_config names user and key.",
    ),
    asyncssh.IllegalUserName: _unreachable(
        "{host} refuses this user name", "Set `User` for it in ~/.ssh/config, or write user@host in the profile."
    ),
    asyncssh.KeyExchangeFailed: _unreachable("no common way to encrypt the connection to {host}", _VERSIONS),
    asyncssh.CompressionError: _unreachable("compressed data from {host} were damaged", _LATER),
    asyncssh.MACError: _unreachable("data from {host} were damaged on the way", _LATER),
    asyncssh.ProtocolError: _unreachable("{host} broke the ssh protocol", _VERSIONS),
    asyncssh.ProtocolNotSupported: _unreachable("{host} speaks no ssh version that we know", _VERSIONS),
    asyncssh.ServiceNotAvailable: _unreachable("{host} offers no login over ssh", _VERSIONS),
    asyncssh.DisconnectError: _unreachable("{host} ended the connection", _LATER),
    asyncssh.ChannelOpenError: _refused(
        "{host} opens no further channel", "Raise `MaxSessions` in the host's sshd_config, or close other consoles."
    ),
    asyncssh.ChannelListenError: _refused(
        "no port could be opened for forwarding to {host}", "Look at what else listens on this machine."
    ),
    asyncssh.ProcessError: _refused("a command on {host} failed", "Run it there by hand."),
    asyncssh.TimeoutError: _refused("a command on {host} took too long", "Run it there by hand."),
    asyncssh.SFTPError: _refused("a file on {host} could not be reached", "Check the path and its rights there."),
    asyncssh.Error: _unreachable("the ssh connection to {host} failed", _LATER),
    asyncssh.KeyImportError: _unreachable(
        "a private key for {host} cannot be read", "If it has a passphrase, put it into the agent: `ssh-add FILE`."
    ),
    asyncssh.KeyEncryptionError: _unreachable(
        "a private key for {host} is encrypted", "Put it into the agent: `ssh-add FILE`."
    ),
    asyncssh.ConfigParseError: _unreachable("your ssh configuration cannot be read", _CONFIG),
    asyncssh.PasswordChangeRequired: _unreachable(
        "{host} wants a new password first", "Log in once with `ssh {host}` and set it."
    ),
    socket.gaierror: _unreachable(
        "the name {host} is not known", "Check the profile's `host`; `ssh -G {host}` shows the name it stands for."
    ),
    ConnectionRefusedError: _unreachable(
        "{host} refuses connections", "Is sshd running there, and is the port right? Try `ssh {host}`."
    ),
    TimeoutError: _unreachable(
        "{host} did not answer in time", "Is it on, and is the way to it open (VPN, jump host, firewall)?"
    ),
    ConnectionError: _unreachable("{host} dropped the connection", _LATER),
    FileNotFoundError: _unreachable("a file of your ssh configuration is missing", _CONFIG),
    PermissionError: _unreachable("a file of your ssh configuration cannot be read", _CONFIG),
    OSError: _unreachable("{host} cannot be reached", "Is there a way to it? Try `ssh {host}`."),
    ValueError: _unreachable("{host} cannot be addressed", _CONFIG),
}
"""What each class means; the nearest ancestor that stands here speaks for the others."""

FORWARDING_PROHIBITED = _refused(
    "{host} forbids forwarding", "Set `AllowTcpForwarding yes` in its sshd_config, or run ddconsole on the host itself."
)
_CONNECT_FAILED = _refused(
    "{host} could not open what was asked for", "Nothing listens there, or `MaxSessions` of its sshd is reached."
)
_BY_CODE: dict[int, Explanation] = {
    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED: FORWARDING_PROHIBITED,
    asyncssh.OPEN_CONNECT_FAILED: _CONNECT_FAILED,
}
HUNG_UP = _unreachable(
    "{host} hung up before anybody had logged in",
    "Compare `ssh -vv {host}`: no common way to encrypt, too many logins (`MaxStartups`), or an address it bans.",
)
_LOST = (asyncssh.ConnectionLost, ConnectionResetError, BrokenPipeError)
NO_ROUTE = _unreachable(
    "there is no way to {host}", "Look at this machine's network: VPN, Wi-Fi, the route to the host."
)
_BY_ERRNO: dict[int, Explanation] = {
    errno.ECONNREFUSED: BY_CLASS[ConnectionRefusedError],
    errno.EHOSTUNREACH: NO_ROUTE,
    errno.ENETUNREACH: NO_ROUTE,
    errno.EHOSTDOWN: NO_ROUTE,
    errno.ETIMEDOUT: BY_CLASS[TimeoutError],
}

_REASONS = {
    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED: "administratively prohibited",
    asyncssh.OPEN_CONNECT_FAILED: "connect failed",
    asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE: "unknown channel type",
    asyncssh.OPEN_RESOURCE_SHORTAGE: "resource shortage",
}
"""How OpenSSH words the codes of a channel that was not opened."""

FOREIGN = (asyncssh.Error, asyncssh.ChannelListenError, asyncssh.PasswordChangeRequired, OSError, ValueError)
"""What asyncssh may raise: its own tree, the network's errors, and ValueError for keys and configuration."""


def explain(exc: BaseException, host: str, *, login: bool = False) -> DdconsoleError:
    """The error of ours for a foreign one. Text that the host sent is evidence, with control characters shown.

    A line that is lost during the `login` has causes of its own.
    """
    meaning = HUNG_UP if login and isinstance(exc, _LOST) else _meaning(exc)
    said = printable(str(exc))
    return meaning.kind(
        meaning.what.format(host=host), evidence=(said,) if said else (), advice=meaning.advice.format(host=host)
    )


def _meaning(exc: BaseException) -> Explanation:
    if isinstance(exc, asyncssh.ChannelOpenError) and exc.code in _BY_CODE:
        return _BY_CODE[exc.code]
    if isinstance(exc, OSError) and not isinstance(exc, socket.gaierror) and (by_number := _by_errno(exc)):
        return by_number
    return next((BY_CLASS[cls] for cls in type(exc).__mro__ if cls in BY_CLASS), BY_CLASS[asyncssh.Error])


def _by_errno(exc: OSError) -> Explanation | None:
    """By number; a host with several addresses gives one error that only quotes the numbers of all attempts."""
    if exc.errno is not None:
        return _BY_ERRNO.get(exc.errno)
    return next((meaning for number, meaning in _BY_ERRNO.items() if f"[Errno {number}]" in str(exc)), None)


def explain_jump(error: DdconsoleError, jump: str, host: str) -> DdconsoleError:
    """The same error, with the way that it lies on: its remedy is the jump host's, not the host's."""
    if "through the jump host" in error.what:
        return error
    told = f"{host} cannot be reached through the jump host {jump}: {error.what}"
    return type(error)(told, evidence=error.evidence, advice=error.advice)


def no_way_on(exc: asyncssh.ChannelOpenError, jump: str, host: str) -> UnreachableError:
    """The jump host stands, and does not lead on."""
    if exc.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        remedy = f"Set `AllowTcpForwarding yes` in the sshd_config of {jump}, or go by another jump host."
    else:
        remedy = f"Is {host} on, and is its name known on {jump}? Try `ssh {jump} nc -z {host} 22`."
    return UnreachableError(
        f"the jump host {jump} opens no way to {host}",
        evidence=(f"{printable(str(exc))}: {_REASONS.get(exc.code, exc.code)}",),
        advice=remedy,
    )


def printable(text: str) -> str:
    """One line without control characters, at most 500 characters."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in " ".join(text.split())[:500])
