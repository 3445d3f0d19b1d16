"""A host's alias means what OpenSSH says it means, by both transports, against a real sshd."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from asyncssh.config import SSHClientConfig

from ddconsole.adapters.ssh import SshConnector, SshTarget
from ddconsole.adapters.ssh import settings as settings_room
from ddconsole.adapters.ssh.options import unheeded
from ddconsole.adapters.ssh.settings import read_settings
from ddconsole.core.errors import UnreachableError
from ddconsole.core.ports import notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.realhost


@pytest.fixture
def home(tmp_path: Path, keys) -> Path:
    """A folder for configurations; `write` of the tests puts them there."""
    folder = tmp_path / "my ssh"
    folder.mkdir()
    return folder


def config(home: Path, sshd, text: str, known: str = "") -> tuple[str, ...]:
    """An ssh_config with `text` first, then the key and the known_hosts of these tests for every host."""
    lines = known or sshd.keys.host_key_line(sshd.port)
    (home / "known").write_text(lines)
    (home / "config").write_text(
        f"{text}\nHost *\n  User {getpass.getuser()}\n  IdentityFile {sshd.keys.path('client_key')}\n"
        f'  UserKnownHostsFile "{home}/known"\n  GlobalKnownHostsFile none\n'
    )
    return (str(home / "config"),)


def keygen(*words: str) -> None:
    """Make, change or sign a key."""
    subprocess.run(["ssh-keygen", "-q", *words], check=True, stdout=subprocess.DEVNULL)


async def says(connector, *words: str) -> str:
    """The answer of a command over a fresh connection."""
    host = await connector.connect()
    try:
        return (await host.run(list(words))).stdout
    finally:
        await host.close()


async def test_include_match_and_tokens(by, start_sshd, home: Path) -> None:
    """A relative value, a token, and a Match that runs a command with a token in it."""
    sshd = start_sshd()
    (home / "more").write_text(f"Host ct*\n  HostName 127.0.0.%nope\nMatch all\n  Port {sshd.port}\n")
    text = (
        f'Match originalhost ct200 exec "test %n = ct200"\n  HostName 127.0.0.1\nMatch all\nInclude "{home}/more"\n'
        "Host *\n"
    )
    connector = by(SshTarget("ct200", config=config(home, sshd, text)))
    assert await says(connector, "echo", "here") == "here\n"


async def test_a_proxy_command_is_a_shell_line_and_may_chatter(by, start_sshd, none_left, home: Path) -> None:
    """Tokens, a redirection, a quoted word; what it says on stderr is no part of the connection."""
    if shutil.which("python3") is None:
        pytest.skip("python3 is not installed")
    sshd = start_sshd()
    (home / "pipe.py").write_text(
        "import os, socket, sys, threading\n"
        "print('chatter', file=sys.stderr, flush=True)\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while d := os.read(0, 65536): s.sendall(d)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while d := s.recv(65536): os.write(1, d)\n"
    )
    text = f"Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  ProxyCommand python3 '{home}/pipe.py' %h %p | cat\n"
    connector = by(SshTarget("far", config=config(home, sshd, text)))
    assert await says(connector, "echo", "through") == "through\n"
    await none_left(f"{home}/pipe.py")


async def test_jump_hosts_one_after_the_other(by, start_sshd, home: Path) -> None:
    """Each with its own alias, port and host key."""
    home = home.parent  # ssh hands -F to its jump hosts, but without quotes
    first, second = start_sshd(), start_sshd()
    text = (
        f"Host one\n  HostName 127.0.0.1\n  Port {first.port}\n"
        f"Host two\n  HostName 127.0.0.1\n  Port {second.port}\n"
        f"Host far\n  HostName 127.0.0.1\n  Port {first.port}\n  ProxyJump one,two\n"
    )
    known = first.keys.host_key_line(first.port) + first.keys.host_key_line(second.port)
    target = SshTarget("far", config=config(home, first, text, known))
    assert await says(by(target), "sh", "-c", "echo ${SSH_CONNECTION%% *}") == "127.0.0.1\n"


async def test_a_host_key_alias_names_the_line_of_known_hosts(by, start_sshd, home: Path) -> None:
    """Without a port, whatever the port is."""
    sshd = start_sshd()
    public = (sshd.keys.folder / "host_key.pub").read_text()
    text = f"Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  HostKeyAlias gpu.lab\n"
    connector = by(SshTarget("far", config=config(home, sshd, text, f"gpu.lab {public}")))
    assert await says(connector, "echo", "known") == "known\n"


async def test_certificates_of_hosts_and_of_users(by, start_sshd, home: Path, keys) -> None:
    """A host that only shows a certificate of a known authority, and a user whose key nobody listed."""
    folder = keys.folder
    for name in ("ca", "visitor"):
        keygen("-t", "ed25519", "-N", "", "-f", f"{folder}/{name}")
    keygen("-s", f"{folder}/ca", "-I", "test", "-n", getpass.getuser(), f"{folder}/visitor.pub")
    keygen("-s", f"{folder}/ca", "-I", "test", "-h", "-n", "127.0.0.1", f"{folder}/host_key.pub")
    sshd = start_sshd(
        f"TrustedUserCAKeys={folder}/ca.pub", f"HostCertificate={folder}/host_key-cert.pub",
        "AuthorizedKeysFile=none",
    )  # fmt: skip
    (home / "known").write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {(folder / 'ca.pub').read_text()}")
    target = keys.target(
        sshd.port, client_keys=(str(folder / "visitor"),), known_hosts=(str(home / "known"),)
    )  # fmt: skip
    assert await says(by(target), "echo", "signed") == "signed\n"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    """A real ssh-agent's socket."""
    path = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    while not os.path.exists(path):
        assert process.poll() is None
    yield path
    process.send_signal(signal.SIGTERM)
    process.wait()


def add(agent: str, *files: str) -> None:
    """Put keys into the agent."""
    subprocess.run(["ssh-add", "-q", *files], env=os.environ | {"SSH_AUTH_SOCK": agent}, check=True)


async def test_the_agent_of_identity_agent_serves_a_locked_key(by, start_sshd, home: Path, agent: str, keys) -> None:
    """Seven keys in the agent, three tries allowed: the one that ssh_config names comes first, and nobody is asked."""
    sshd = start_sshd("MaxAuthTries=3")
    add(agent, *_others(home))
    add(agent, keys.path("client_key"))
    keygen("-p", "-N", "secret", "-f", keys.path("client_key"))
    text = f'Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityAgent "{agent}"\n'
    connector = by(SshTarget("far", config=config(home, sshd, text)))
    assert await says(connector, "echo", "agent") == "agent\n"


async def test_identities_only_offers_the_named_key_alone(by, start_sshd, home: Path, agent: str, keys) -> None:
    """Its public half stands in IdentityFile, its private half in the agent; six others there are not even offered."""
    sshd = start_sshd("MaxAuthTries=1")
    add(agent, *_others(home), keys.path("client_key"))
    os.unlink(keys.path("client_key"))
    only = f"  IdentitiesOnly yes\n  IdentityFile {keys.path('client_key.pub')}\n"
    text = f'Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityAgent "{agent}"\n{only}'
    connector = by(SshTarget("far", config=config(home, sshd, text)))
    assert await says(connector, "echo", "named") == "named\n"


def _others(home: Path) -> list[str]:
    names = [str(home / f"other{number}") for number in range(6)]
    for name in names:
        keygen("-t", "ed25519", "-N", "", "-f", name)
    return names


async def test_a_dead_agent_is_a_note_and_no_failure(start_sshd, home: Path) -> None:
    """The key file serves."""
    sshd = start_sshd()
    text = f"Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityAgent {home.parent}/none\n"
    host = await SshConnector(SshTarget("far", config=config(home, sshd, text))).connect()
    assert any("agent" in note and "does not answer" in note for note in notes_of(host))
    await host.close()


async def test_without_an_ssh_program_asyncssh_reads_the_configuration(
    start_sshd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said."""
    sshd = start_sshd()
    text = f"Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n"
    (home / "plain").write_text("")
    monkeypatch.setattr(settings_room, "ssh_program", lambda: None)
    host = await SshConnector(SshTarget("far", config=config(home, sshd, text))).connect()
    assert (await host.run(["echo", "read"])).stdout == "read\n"
    assert any("asyncssh" in note for note in notes_of(host))
    await host.close()


# --- what is not heeded, and what is refused


async def resolved(tmp_path: Path, text: str):
    """The settings that a configuration gives for `far`."""
    (tmp_path / "config").write_text(f"Host far\n{text}")
    return await read_settings(SshTarget("far", config=(str(tmp_path / "config"),)))


async def test_what_asyncssh_does_not_follow_is_listed_and_the_rest_is_not(tmp_path: Path) -> None:
    """Only what the user set, and only where it changes how or how safely the host is reached."""
    found = await resolved(
        tmp_path,
        "  KnownHostsCommand /bin/true %H\n  BindInterface lo\n  ForwardX11 yes\n  ControlMaster auto\n"
        "  HostbasedAuthentication no\n  StrictHostKeyChecking no\n  VerifyHostKeyDNS yes\n  SetEnv A=b\n",
    )
    told = " ".join(unheeded(found))
    for word in (
        "knownhostscommand",
        "bindinterface lo",
        "verifyhostkeydns",
        "accept-new",
        "SetEnv",
        "transport: openssh",
    ):
        assert word in told
    for word in ("forwardx11", "controlmaster", "hostbased", "gssapi"):
        assert word not in told


async def test_an_empty_configuration_has_nothing_to_say(tmp_path: Path) -> None:
    """No warning without a cause."""
    assert unheeded(await resolved(tmp_path, "  Port 2222\n")) == ()


async def test_every_option_that_is_listed_is_unknown_to_asyncssh_or_needs_a_library(tmp_path: Path) -> None:
    """A new asyncssh that learns one shows up here."""
    found = await resolved(tmp_path, "  Tunnel yes\n  RevokedHostKeys /none\n")
    assert not {"tunnel", "revokedhostkeys", "knownhostscommand", "verifyhostkeydns"} & set(SSHClientConfig._handlers)
    assert len(unheeded(found)) == 2


@pytest.mark.parametrize("name", ["a;b", "a$(id)", "-oProxyCommand=x", "a b", "`id`", "a'b", "a\nb", "x|y"])
async def test_a_name_that_could_act_in_a_shell_is_refused(by, keys, name: str) -> None:
    """Older versions of OpenSSH hand `%h` to a shell as it is."""
    with pytest.raises(UnreachableError, match="no name of a host"):
        await by(SshTarget(name, config=())).connect()


async def test_a_broken_configuration_is_told_with_its_line(by, tmp_path: Path) -> None:
    """OpenSSH's own words."""
    (tmp_path / "config").write_text("Host far\n  NoSuchOption yes\n")
    with pytest.raises(UnreachableError, match="configuration cannot be read") as caught:
        await by(SshTarget("far", config=(str(tmp_path / "config"),))).connect()
    assert any("line 2" in line and "nosuchoption" in line.lower() for line in caught.value.evidence)


async def test_a_match_exec_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a configuration has a limit of its own."""
    monkeypatch.setattr(settings_room, "RESOLVE_S", 0.3)
    (tmp_path / "config").write_text('Match exec "exec sleep 30"\n  Port 1\n')
    async with asyncio.timeout(10):
        with pytest.raises(UnreachableError, match="did not end within"):
            await read_settings(SshTarget("far", config=(str(tmp_path / "config"),)))
