"""Every error of asyncssh and of the network becomes one that the user can act on."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

import asyncssh
import pytest

from ddconsole.adapters.ssh.errors import FOREIGN, explain, printable
from ddconsole.core.errors import DdconsoleError, HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator


def below(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    """All subclasses."""
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


def bare(cls: type[BaseException]) -> BaseException:
    """An instance without its constructor's arguments, which differ widely."""
    exc = cls.__new__(cls)
    exc.__dict__.update(code=0, reason="")
    return exc


@pytest.mark.parametrize("cls", sorted(set(below(asyncssh.Error)), key=lambda cls: cls.__name__))
def test_every_asyncssh_error_has_an_explanation_of_its_own(cls: type[BaseException]) -> None:
    """None falls through to the words for `some error of asyncssh`; a new one in a later version shows up here."""
    error = explain(bare(cls), "ct200")
    assert isinstance(error, UnreachableError | HostError)
    assert error.what != explain(bare(asyncssh.Error), "ct200").what
    assert error.advice
    assert "{" not in error.what + error.advice


def test_every_exception_that_asyncssh_exports_is_caught() -> None:
    """But for the four that only tell a server's process what its client did."""
    events = {"BreakReceived", "SignalReceived", "SoftEOFReceived", "TerminalSizeChanged"}
    exported = [value for value in vars(asyncssh).values() if isinstance(value, type)]
    errors = [cls for cls in exported if issubclass(cls, Exception) and cls.__name__ not in events]
    assert len(errors) > 20
    assert [cls for cls in errors if not issubclass(cls, FOREIGN)] == []


@pytest.mark.parametrize(
    ("exc", "word", "kind"),
    [
        (socket.gaierror(-2, "Name or service not known"), "is not known", UnreachableError),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "refuses connections", UnreachableError),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 22, 0, 0), [Errno 111] …"),
         "refuses connections", UnreachableError),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no way to", UnreachableError),
        (TimeoutError(), "in time", UnreachableError),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "dropped", UnreachableError),
        (FileNotFoundError(errno.ENOENT, "No such file", "~/.ssh/x"), "missing", UnreachableError),
        (asyncssh.KeyImportError("Passphrase must be specified"), "private key", UnreachableError),
        (asyncssh.PermissionDenied("no more methods"), "does not accept this login", UnreachableError),
        (asyncssh.ChannelOpenError(1, "open failed"), "forbids forwarding", HostError),
        (asyncssh.ChannelOpenError(2, "open failed"), "could not open", HostError),
        (asyncssh.ChannelOpenError(4, "resource shortage"), "no further channel", HostError),
        (ValueError("bad port"), "cannot be addressed", UnreachableError),
    ],
)  # fmt: skip
def test_what_happened_is_said_in_plain_words(exc: Exception, word: str, kind: type[DdconsoleError]) -> None:
    """The causes that people meet are told apart, and name the host."""
    error = explain(exc, "ct200")
    assert type(error) is kind
    assert word in error.what
    assert error.advice


def test_text_from_the_host_is_evidence_and_cannot_move_the_cursor() -> None:
    """A disconnect reason is written by the other side."""
    error = explain(asyncssh.PermissionDenied("\x1b[2J\x1b]0;owned\x07 no\nreally"), "ct200")
    assert error.evidence == ("\\x1b[2J\\x1b]0;owned\\x07 no really",)


def test_evidence_stays_a_line() -> None:
    """However much the other side says."""
    assert len(printable("x" * 10_000)) == 500


@pytest.mark.parametrize("lost", [asyncssh.ConnectionLost("Connection lost"), ConnectionResetError(104, "reset")])
def test_a_line_that_is_lost_in_the_login_points_to_its_causes(lost: Exception) -> None:
    """A host that hangs up then was there; nothing connects again by itself."""
    early, late = explain(lost, "ct200", login=True), explain(lost, "ct200")
    assert early.what == "ct200 hung up before anybody had logged in"
    assert "ssh -vv ct200" in early.advice
    assert "MaxStartups" in early.advice
    assert "connects again" in late.advice
