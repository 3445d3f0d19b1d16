"""Questions on the command line: hidden, cancelled, and only where somebody can answer."""

from __future__ import annotations

import asyncio
import os
import pty
import termios
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from ddconsole.adapters.openssh import OpenSshConnector
from ddconsole.adapters.paths import Paths
from ddconsole.adapters.ssh import SshConnector
from ddconsole.cli.asking import TerminalAsker
from ddconsole.cli.main import cli
from ddconsole.cli.wiring import make_connector
from ddconsole.core.errors import UnreachableError
from ddconsole.core.ports import Asked, Question
from ddconsole.core.profile import Profile

SECRET = Question(Asked.PASSPHRASE, "ct200", "Passphrase", "Passphrase of ~/.ssh/id", ("why \x1b[31mit is asked",))
OPEN = Question(Asked.HOST_KEY, "ct200", "ct200 is not known yet", "Is this its key (yes/no)?", ("SHA256:x",), False)


class Terminal:
    """A pseudo-terminal whose other end a test holds."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.name = os.ttyname(slave)
        self._slave = slave
        os.set_blocking(self.master, False)
        self.shown = b""

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._slave)[3] & termios.ECHO)

    async def until(self, word: bytes) -> None:
        """Read what is on the screen until `word` is there."""
        async with asyncio.timeout(5):
            while word not in self.shown:
                try:
                    self.shown += os.read(self.master, 4096)
                except BlockingIOError:
                    await asyncio.sleep(0.005)

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def close(self) -> None:
        os.close(self.master)
        os.close(self._slave)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


async def asked(terminal: Terminal, question: Question, typed: bytes) -> str | None:
    """Ask, type when the prompt stands, and take the answer."""
    asking = asyncio.create_task(TerminalAsker(terminal.name, present=True).ask(question))
    await terminal.until(question.prompt.encode())
    terminal.type(typed)
    return await asking


async def test_a_secret_is_not_echoed_and_the_terminal_is_as_before(terminal: Terminal) -> None:
    """Text of the host is shown without its escape sequences."""
    assert await asked(terminal, SECRET, b"hunter2\n") == "hunter2"
    await terminal.until(b": \r\n")
    assert b"hunter2" not in terminal.shown
    assert b"\x1b" not in terminal.shown
    assert b"why" in terminal.shown
    assert terminal.echoes()


async def test_an_open_question_is_echoed(terminal: Terminal) -> None:
    """A yes may be seen."""
    assert await asked(terminal, OPEN, b"yes\n") == "yes"
    await terminal.until(b"yes")


@pytest.mark.parametrize("typed", [b"\n", b"\x04", b"\x1b\n"], ids=["enter", "ctrl-d", "esc"])
async def test_no_answer_is_none(terminal: Terminal, typed: bytes) -> None:
    """Whichever way somebody says no."""
    assert await asked(terminal, SECRET, typed) is None


async def test_an_interrupted_question_leaves_the_terminal_echoing(terminal: Terminal) -> None:
    """Ctrl-C ends the command; the shell must not be left mute."""
    asking = asyncio.create_task(TerminalAsker(terminal.name, present=True).ask(SECRET))
    await terminal.until(b"Passphrase of")
    assert not terminal.echoes()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert terminal.echoes()


async def test_nobody_is_asked_after_a_cancel_or_once_a_connection_stood(terminal: Terminal) -> None:
    """A run that goes through the night must not stop at a prompt."""
    asker = TerminalAsker(terminal.name, present=True)
    asker.settled()
    assert not asker.can_ask
    assert await asker.ask(SECRET) is None
    assert not TerminalAsker(terminal.name, present=False).can_ask
    assert terminal.shown == b""


@pytest.mark.parametrize("words", [["doctor", "demo"], ["run", "demo"]])
@pytest.mark.parametrize("flag", [[], ["--accept-new"]])
def test_accept_new_reaches_the_connector(monkeypatch: pytest.MonkeyPatch, words: list[str], flag: list[str]) -> None:
    """With an asker beside it, which has no terminal here."""
    made: list[tuple[object, object]] = []

    class Unreachable:
        async def connect(self) -> object:
            raise UnreachableError("not today")

    def make(profile: object, paths: object, asker: TerminalAsker, *, accept_new: bool) -> Unreachable:
        made.append((asker.can_ask, accept_new))
        return Unreachable()

    monkeypatch.setattr("ddconsole.cli.wiring.make_connector", make)
    result = CliRunner().invoke(cli, [*words, *flag])
    assert result.exit_code == 5, result.output
    assert made == [(False, bool(flag))]


@pytest.mark.parametrize(("transport", "kind"), [("asyncssh", SshConnector), ("openssh", OpenSshConnector)])
def test_the_profiles_transport_chooses_the_connector(transport: str, kind: type) -> None:
    """`transport: openssh` is the system's ssh."""
    profile = Profile.model_validate(
        {"schema": "1", "host": "ct200", "transport": transport, "engine": {"command": ["e"], "model": "m"}}
    )
    assert type(make_connector(profile, Paths.from_environment())) is kind
