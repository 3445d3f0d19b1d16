"""What a connection asks a person, by both transports: host keys, passphrases, passwords, codes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
from typing import TYPE_CHECKING

import asyncssh
import pytest

from ddconsole.adapters.ssh import SshConnector, SshTarget
from ddconsole.adapters.ssh.known_hosts import hashed_name, record_key
from ddconsole.core.errors import AnswerNeededError, UnreachableError
from ddconsole.core.ports import Asked, notes_of
from ddconsole.demo.host_session import Sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.realhost

SECRET = "correct horse battery"


async def login(connector) -> tuple[str, ...]:
    """Connect, run something, close; the connection's notes."""
    host = await connector.connect()
    try:
        assert (await host.run(["echo", "in"])).stdout == "in\n"
        return notes_of(host)
    finally:
        await host.close()


# --- host keys


async def test_an_unknown_key_is_asked_for_once_and_written_down(by, start_sshd, answers, keys, tmp_path: Path) -> None:
    """With type and fingerprint as ssh prints them; the new file has mode 600, its folder 700."""
    sshd, known = start_sshd(), tmp_path / "new" / "known"
    target = sshd.target(known_hosts=(str(known),))
    known.parent.mkdir(mode=0o700)
    asker = answers("yes")
    await login(by(target, asker=asker))
    (question,) = asker.questions
    fingerprint = asyncssh.read_public_key(keys.path("host_key.pub")).get_fingerprint()
    assert question.kind is Asked.HOST_KEY
    assert not question.secret
    assert fingerprint.startswith("SHA256:")
    assert fingerprint in " ".join(question.lines)
    assert "ed25519" in " ".join(question.lines).lower()
    assert known.stat().st_mode & 0o777 == 0o600
    assert f"[127.0.0.1]:{sshd.port}" in _found(known, f"[127.0.0.1]:{sshd.port}")
    await login(by(target, asker=answers()))


def _found(known: Path, address: str) -> str:
    """What OpenSSH finds in a known_hosts file."""
    return subprocess.run(["ssh-keygen", "-F", address, "-f", known], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("hashed", ["yes", "no"])
async def test_hash_known_hosts_is_followed(by, start_sshd, answers, keys, tmp_path: Path, hashed: str) -> None:
    """OpenSSH finds the line in either form."""
    sshd, known = start_sshd(), tmp_path / "known"
    (tmp_path / "config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  HashKnownHosts {hashed}\n"
        f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n  IdentityFile {keys.path('client_key')}\n"
    )
    await login(by(SshTarget("gpu", config=(str(tmp_path / "config"),)), asker=answers("yes")))
    assert known.read_text().startswith("|1|" if hashed == "yes" else "[127.0.0.1]")
    assert _found(known, f"[127.0.0.1]:{sshd.port}")


async def test_no_is_an_answer_and_nothing_is_written(by, start_sshd, answers, tmp_path: Path) -> None:
    """And nobody logs in."""
    known = tmp_path / "known"
    for word in ("no", None):
        with pytest.raises(UnreachableError):
            await login(by(start_sshd().target(known_hosts=(str(known),)), asker=answers(word)))
    assert not known.exists()


async def test_without_a_terminal_an_unknown_key_is_refused_with_the_remedy(by, start_sshd, tmp_path: Path) -> None:
    """A script must not hang, and must not trust by itself."""
    with pytest.raises(UnreachableError, match="is not known yet") as caught:
        await login(by(start_sshd().target(known_hosts=(str(tmp_path / "none"),))))
    assert "--accept-new" in caught.value.advice
    assert not (tmp_path / "none").exists()


async def test_accept_new_takes_an_unknown_key_but_no_changed_one(by, start_sshd, keys, tmp_path: Path) -> None:
    """`--accept-new` is for scripts, and no way around the alarm."""
    sshd, known = start_sshd(), tmp_path / "known"
    target = sshd.target(known_hosts=(str(known),))
    await login(by(target, accept_new=True))
    assert known.read_text().count("\n") == 1
    other = asyncssh.generate_private_key("ssh-ed25519")
    known.write_text(f"# first\n[127.0.0.1]:{sshd.port} {other.export_public_key().decode()}")
    with pytest.raises(UnreachableError, match="has CHANGED") as caught:
        await login(by(target, accept_new=True))
    told = " ".join(caught.value.evidence)
    assert f"{known}:2" in told
    assert told.count(str(known)) == told.count(f"{known}:2") + told.count(f'-f "{known}"') + told.count(
        f"-f '{known}'"
    )
    assert asyncssh.read_public_key(keys.path("host_key.pub")).get_fingerprint() in told
    assert "ssh-keygen" in told + caught.value.advice


async def test_strict_host_key_checking_yes_asks_nobody(start_sshd, answers, keys, tmp_path: Path) -> None:
    """The configuration says that unknown keys are refused."""
    sshd = start_sshd()
    (tmp_path / "config").write_text(
        f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  StrictHostKeyChecking yes\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  GlobalKnownHostsFile none\n"
    )
    asker = answers()
    with pytest.raises(UnreachableError, match="is not known yet"):
        await login(SshConnector(SshTarget("gpu", config=(str(tmp_path / "config"),)), asker=asker))
    assert asker.questions == []


def test_a_line_is_appended_whole_whatever_the_file_ends_with(tmp_path: Path) -> None:
    """A file without a last newline, and an existing mode, are respected."""
    known, key = tmp_path / "known", asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
    known.write_bytes(b"# caf\xe9 without newline")
    known.chmod(0o644)
    record_key(str(known), "gpu", key, hashed=False)
    record_key(str(known), "gpu2", key, hashed=True)
    lines = known.read_bytes().splitlines()
    assert lines[0] == b"# caf\xe9 without newline"
    assert lines[1].startswith(b"gpu ssh-ed25519 AAAA")
    assert lines[2].startswith(b"|1|")
    assert known.stat().st_mode & 0o777 == 0o644
    assert hashed_name("gpu", b"x" * 20) == hashed_name("gpu", b"x" * 20) != hashed_name("gpu", b"y" * 20)


# --- passphrases


@pytest.fixture
def locked(keys) -> None:
    """The client's key gets a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-p", "-a", "1", "-N", SECRET, "-f", keys.path("client_key")], check=True)


@pytest.mark.usefixtures("locked")
async def test_a_passphrase_is_asked_for_masked_and_again_when_it_was_wrong(
    by, start_sshd, answers, keys, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the key's file; nothing of the answer is in any log."""
    caplog.set_level(logging.DEBUG)
    asyncssh.set_debug_level(2)
    asker = answers("wrong", SECRET)
    await login(by(start_sshd().target(), asker=asker))
    assert [question.kind for question in asker.questions] == [Asked.PASSPHRASE, Asked.PASSPHRASE]
    assert all(question.secret and keys.path("client_key") in question.prompt for question in asker.questions)
    assert SECRET not in caplog.text
    assert asker.settled_times == 1


@pytest.mark.usefixtures("locked")
async def test_an_unlocked_key_serves_again_without_asking(start_sshd, answers) -> None:
    """The key is kept in memory, the passphrase is not."""
    asker = answers(SECRET)
    connector = SshConnector(start_sshd().target(), asker=asker)
    await login(connector)
    await login(connector)
    assert len(asker.questions) == 1
    assert SECRET not in repr(connector.__dict__)


@pytest.mark.usefixtures("locked")
async def test_a_cancelled_passphrase_ends_with_a_clear_error(by, start_sshd, answers) -> None:
    """Which says what was asked and what to do."""
    with pytest.raises(AnswerNeededError, match="passphrase") as caught:
        await login(by(start_sshd().target(), asker=answers(None)))
    assert "ssh-add" in caught.value.advice


@pytest.mark.usefixtures("locked")
async def test_a_passphrase_without_a_terminal_says_what_to_do(by, start_sshd) -> None:
    """Nobody is asked."""
    with pytest.raises(UnreachableError) as caught:
        await login(by(start_sshd().target()))
    assert "ssh-add" in caught.value.advice


async def test_a_key_that_hides_even_its_public_half_is_unlocked_first(
    keys, port: int, answers, tmp_path: Path
) -> None:
    """An old PEM file without a .pub beside it: the host cannot be asked whether it wants the key."""
    key = asyncssh.read_private_key(keys.path("client_key"))
    key.write_private_key(str(tmp_path / "old"), "pkcs8-pem", passphrase=SECRET)
    host = await SshConnector(keys.target(port, client_keys=(str(tmp_path / "old"),)), asker=answers(SECRET)).connect()
    await host.close()


# --- passwords and codes


class AskingServer(asyncssh.SSHServer):
    """Takes a password or, in two rounds, a password and a code."""

    def __init__(self, codes: bool) -> None:
        self._codes = codes
        self._round = 0

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return not self._codes

    def validate_password(self, username: str, password: str) -> bool:
        return password == SECRET

    def kbdint_auth_supported(self) -> bool:
        return self._codes

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> object:
        self._round = 0
        return "Two factors", "Have your \x1b[31mtoken ready", "", [("Password: ", False)]

    def validate_kbdint_response(self, username: str, responses: list[str]) -> object:
        self._round += 1
        if self._round == 1 and responses == [SECRET]:
            return "", "", "", [("Verification code: ", False), ("Your name: ", True)]
        return responses == ["123456", "me"]


@pytest.fixture
async def asking(keys, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[int]:
    """The port of a server that asks."""
    async with asyncssh.listen(
        "127.0.0.1", 0, server_factory=lambda: AskingServer(request.param == "codes"),
        server_host_keys=[keys.path("host_key")], process_factory=Sessions(tmp_path).serve, encoding=None,
    ) as server:  # fmt: skip
        yield server.get_port()


@pytest.mark.parametrize("asking", ["password"], indirect=True)
async def test_a_password_is_asked_for_and_again_when_it_was_wrong(by, asking: int, answers, keys) -> None:
    """As ssh asks."""
    asker = answers("wrong", SECRET)
    await login(by(keys.target(asking, client_keys=()), asker=asker))
    assert [question.kind for question in asker.questions] == [Asked.PASSWORD, Asked.PASSWORD]
    assert all(question.secret for question in asker.questions)


@pytest.mark.parametrize("asking", ["codes"], indirect=True)
async def test_codes_are_asked_for_in_the_hosts_words(asking: int, answers, keys) -> None:
    """Two rounds, three questions; one of them is not secret. Escape sequences are shown, not passed on."""
    asker = answers(SECRET, "123456", "me")
    await login(SshConnector(keys.target(asking, client_keys=()), asker=asker))
    assert [question.prompt for question in asker.questions] == ["Password", "Verification code", "Your name"]
    assert [question.secret for question in asker.questions] == [True, True, False]
    assert "\x1b" not in " ".join(asker.questions[0].lines)
    assert "token ready" in " ".join(asker.questions[0].lines)


@pytest.mark.parametrize("asking", ["codes"], indirect=True)
async def test_codes_are_asked_for_by_the_systems_ssh_too(asking: int, answers, keys) -> None:
    """Through its askpass, one after the other."""
    from ddconsole.adapters.openssh import OpenSshConnector

    asker = answers(SECRET, "123456", "me")
    await login(OpenSshConnector(keys.target(asking, client_keys=()), asker=asker))
    assert [question.kind for question in asker.questions] == [Asked.CODE] * 3


@pytest.mark.parametrize("asking", ["password", "codes"], indirect=True)
async def test_a_cancelled_answer_is_told_as_one(by, asking: int, answers, keys) -> None:
    """It is not asked a second time, and not told as a refused login."""
    asker = answers(None)
    with pytest.raises(AnswerNeededError, match="without an answer"):
        await login(by(keys.target(asking, client_keys=()), asker=asker))
    assert len(asker.questions) == 1


@pytest.mark.parametrize("asking", ["password", "codes"], indirect=True)
async def test_without_a_terminal_the_login_says_what_was_wanted(asking: int, keys) -> None:
    """So that the user knows that a terminal would help."""
    with pytest.raises(UnreachableError, match="does not accept this login") as caught:
        await login(SshConnector(keys.target(asking, client_keys=())))
    assert "no terminal" in json.dumps(caught.value.to_json())


@pytest.mark.parametrize("asking", ["password"], indirect=True)
async def test_a_person_may_take_longer_than_a_connection(asking: int, keys) -> None:
    """ConnectTimeout is for the network; it stands still while somebody types."""
    from ddconsole.adapters.ssh import Times

    class Slow:
        can_ask = True

        async def ask(self, question: object) -> str:
            await asyncio.sleep(1.2)  # what is tested is the passing of time itself
            return SECRET

        def settled(self) -> None:
            pass

    await login(SshConnector(keys.target(asking, client_keys=()), asker=Slow(), times=Times(connect=1.0)))


@pytest.mark.parametrize("asking", ["password"], indirect=True)
async def test_a_question_is_withdrawn_when_its_connection_ends(asking: int, keys) -> None:
    """Nobody is left answering for a connection that is gone."""
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    class Never:
        can_ask = True

        async def ask(self, question: object) -> str | None:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.set()
            return None

        def settled(self) -> None:
            pass

    connecting = asyncio.create_task(SshConnector(keys.target(asking, client_keys=()), asker=Never()).connect())
    await asked.wait()
    connecting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await connecting
    async with asyncio.timeout(5):
        await withdrawn.wait()


def test_no_secret_of_these_tests_is_in_an_environment() -> None:
    """What is typed goes to the one who asked, and nowhere else."""
    assert SECRET not in " ".join(os.environ.values())
