"""One login, as asyncssh calls back: the host key is noted, and what has to be asked is asked."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.adapters.ssh.errors import printable
from ddconsole.adapters.ssh.identity import TRIES
from ddconsole.core.errors import AnswerNeededError
from ddconsole.core.ports import Asked, Question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ddconsole.core.ports import Asker

REMEDY = {
    Asked.HOST_KEY: "Compare the fingerprint, and answer yes; `--accept-new` takes an unknown key unseen.",
    Asked.PASSPHRASE: "Put the key into the agent (`ssh-add`), or connect from a terminal and type it.",
    Asked.PASSWORD: "Connect from a terminal and type it, or set up a key: `ssh-copy-id {host}`.",
    Asked.CODE: "Connect from a terminal and type it; a code cannot be given beforehand.",
}


class Asking:
    """Asks for one connection. The time for connecting stands still while a person thinks.

    Attributes:
        refusal: why no answer came; it is the reason of whatever fails afterwards.
    """

    def __init__(self, asker: Asker, host: str) -> None:
        self._asker = asker
        self.host = host
        self.refusal: AnswerNeededError | None = None
        self._limit: asyncio.Timeout | None = None
        self._seconds = 0.0
        self._asked: asyncio.Future[str | None] | None = None

    @property
    def can_ask(self) -> bool:
        """Somebody could answer."""
        return self._asker.can_ask

    @contextlib.asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """A limit for connecting, which begins anew after each answer.

        Raises:
            TimeoutError: the time is over.
        """
        self._seconds = seconds
        try:
            async with asyncio.timeout(seconds) as self._limit:
                yield
        finally:
            self._limit = None

    async def __call__(self, question: Question) -> str:
        """The answer.

        Raises:
            AnswerNeededError: nobody gave one.
        """
        if self._limit is not None:
            self._limit.reschedule(None)
        self._asked = asyncio.ensure_future(self._asker.ask(question))
        answer = await self._asked
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)
        if answer is None:
            self.refusal = unanswered(question, cancelled=self._asker.can_ask)
            raise self.refusal
        return answer

    def withdraw(self) -> None:
        """The connection has ended: whoever is still being asked need not answer."""
        if self._asked is not None:
            self._asked.cancel()


def unanswered(question: Question, *, cancelled: bool) -> AnswerNeededError:
    """The error for a question without an answer."""
    why = "it was not answered" if cancelled else "there is no terminal to ask on"
    return AnswerNeededError(
        f"{question.host} cannot be reached without an answer: {question.kind.value}",
        evidence=(f"{question.prompt}: {why}", *question.lines),
        advice=REMEDY[question.kind].format(host=question.host),
    )


class LoginClient(asyncssh.SSHClient):
    """Remembers the key that the host showed, trusts none that the files do not, and asks what the host asks."""

    def __init__(self, ask: Asking) -> None:
        self.offered: asyncssh.SSHKey | None = None
        self.wanted: list[str] = []
        self._ask = ask
        self._passwords = self._rounds = 0

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Called for a key that no file knows."""
        self.offered = key
        return False

    async def password_auth_requested(self) -> str | None:
        """The host takes passwords, and nothing before has served."""
        self.wanted.append("a password")
        if not self._ask.can_ask or self._passwords >= TRIES:
            return None
        again = ("The host did not take it.",) if self._passwords else ()
        self._passwords += 1
        return await self._answer(Question(Asked.PASSWORD, self._ask.host, "Password", "Password", again))

    def kbdint_auth_requested(self) -> str | None:
        """The host has questions of its own."""
        self.wanted.append("answers (keyboard-interactive)")
        if not self._ask.can_ask or self._rounds >= TRIES:
            return None
        self._rounds += 1
        return ""

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str] | None:
        """Ask each of them; one cancelled answer ends the login."""
        said = tuple(f"{self._ask.host} says: {printable(text)}" for text in (name, instructions) if text.strip())
        answers = []
        for text, echo in prompts:
            prompt = printable(text).rstrip(" :") or "Answer"
            answer = await self._answer(
                Question(Asked.CODE, self._ask.host, f"{self._ask.host} asks", prompt, said, secret=not echo)
            )
            if answer is None:
                return None
            answers.append(answer)
        return answers

    async def _answer(self, question: Question) -> str | None:
        """None ends this way of logging in; the refusal is told when all have ended."""
        if self._ask.refusal is not None:
            return None
        try:
            return await self._ask(question)
        except AnswerNeededError:
            return None
