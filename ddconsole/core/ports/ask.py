"""What a connection may have to ask a person: a host key that nobody knows yet, a passphrase, a password, a code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Asked(Enum):
    """What kind of answer is wanted."""

    HOST_KEY = "host key"
    """Yes or no: is this the host's key? The answer is `yes`."""
    PASSPHRASE = "passphrase"
    """Of a private key's file on this machine."""
    PASSWORD = "password"
    CODE = "code"
    """Whatever the host asks for by keyboard-interactive: a one-time code, most often."""
    TAKE_OVER = "take over"
    """Yes or no: may a service of the host be stopped, and put back at the end? The answer is `yes`."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `lines` explain it; text that came from the host is in them with control characters shown.

    Attributes:
        secret: the answer is never echoed. It is never stored or logged in either case.
    """

    kind: Asked
    host: str
    title: str
    prompt: str
    lines: tuple[str, ...] = ()
    secret: bool = True


class Asker(Protocol):
    """Puts questions to the person at the console."""

    @property
    def can_ask(self) -> bool:
        """Somebody could answer. False without a terminal: what needs an answer is then refused with the remedy."""
        ...

    async def ask(self, question: Question) -> str | None:
        """The answer; None when it was cancelled, or when nobody can be asked now."""
        ...

    def settled(self) -> None:
        """A connection stands: from now on a question must not interrupt; it waits until it is called for."""
        ...


class NoAsker:
    """Nobody is there to answer."""

    can_ask = False

    async def ask(self, question: Question) -> str | None:
        """No answer."""
        return None

    def settled(self) -> None:
        """Nothing changes."""
