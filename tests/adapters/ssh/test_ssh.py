"""The host behind ssh, against a server within this process whose behaviour the test sets."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import asyncssh
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.adapters.ssh import SshConnector, SshHost, SshTarget
from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.demo.connector import ensure_demo_host
from ddconsole.demo.host_state import login

if TYPE_CHECKING:
    from pathlib import Path


# --- connecting


async def test_an_unknown_host_key_is_refused_with_its_fingerprint(keys, port: int, tmp_path: Path) -> None:
    """The user can compare it; nothing is trusted by itself."""
    (tmp_path / "empty").touch()
    with pytest.raises(UnreachableError, match="is not known yet") as caught:
        await SshConnector(keys.target(port, known_hosts=(str(tmp_path / "empty"),))).connect()
    fingerprint = asyncssh.read_public_key(keys.path("host_key.pub")).get_fingerprint()
    assert fingerprint in caught.value.evidence[0]
    assert "ssh 127.0.0.1" in caught.value.advice


async def test_a_changed_host_key_is_an_alarm_with_both_fingerprints(keys, port: int, tmp_path: Path) -> None:
    """It must not look like a first visit."""
    other = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / "old").write_text(f"[127.0.0.1]:{port} {other.export_public_key().decode()}")
    with pytest.raises(UnreachableError, match="has CHANGED") as caught:
        await SshConnector(keys.target(port, known_hosts=(str(tmp_path / "old"),))).connect()
    shown = asyncssh.read_public_key(keys.path("host_key.pub")).get_fingerprint()
    assert shown in caught.value.evidence[0]
    assert other.get_fingerprint() in caught.value.evidence[1]
    assert caught.value.evidence[1].startswith(f"{tmp_path}/old:1 has ")
    assert len(caught.value.evidence) == 2
    assert f"ssh-keygen -f '{tmp_path}/old' -R '[127.0.0.1]:{port}'" in caught.value.advice


async def test_a_host_key_of_another_type_is_a_change_too(keys, port: int, tmp_path: Path) -> None:
    """The handshake then fails earlier, with words about algorithms."""
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    (tmp_path / "old").write_text(f"[127.0.0.1]:{port} {other.export_public_key().decode()}")
    with pytest.raises(UnreachableError, match="has CHANGED"):
        await SshConnector(keys.target(port, known_hosts=(str(tmp_path / "old"),))).connect()


async def test_a_revoked_host_key_is_refused(keys, port: int, tmp_path: Path) -> None:
    """Even where another line trusts it."""
    line = keys.host_key_line(port)
    (tmp_path / "revoked").write_text(f"{line}@revoked {line}")
    with pytest.raises(UnreachableError, match="is revoked"):
        await SshConnector(keys.target(port, known_hosts=(str(tmp_path / "revoked"),))).connect()


async def test_garbage_and_missing_files_do_not_spoil_known_hosts(keys, port: int, tmp_path: Path) -> None:
    """OpenSSH skips what it cannot read, and so do we."""
    (tmp_path / "mixed").write_text(f"garbage\n@odd x y\n|1|bad|hash ssh-ed25519 AAAA\n{keys.host_key_line(port)}")
    files = (str(tmp_path / "missing"), str(tmp_path / "mixed"))
    host = await SshConnector(keys.target(port, known_hosts=files)).connect()
    await host.close()


async def test_a_wrong_client_key_says_what_to_do(keys, port: int, tmp_path: Path) -> None:
    """The remedy names the agent."""
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "wrong"))
    with pytest.raises(UnreachableError, match="does not accept this login") as caught:
        await SshConnector(keys.target(port, client_keys=(str(tmp_path / "wrong"),))).connect()
    assert "ssh-add" in caught.value.advice


async def test_an_encrypted_client_key_points_to_the_agent(keys, port: int, tmp_path: Path) -> None:
    """We never ask for the passphrase ourselves."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(tmp_path / "locked"), "pkcs8-pem", passphrase="secret")
    with pytest.raises(UnreachableError) as caught:
        await SshConnector(keys.target(port, client_keys=(str(tmp_path / "locked"),))).connect()
    assert "ssh-add" in caught.value.advice
    assert "secret" not in str(caught.value.to_json())


async def test_a_closed_port_is_told_as_refused(keys) -> None:
    """And not as a time-out."""
    async with asyncssh.listen("127.0.0.1", 0, server_host_keys=[keys.path("host_key")]) as server:
        port = server.get_port()
    with pytest.raises(UnreachableError, match="refuses connections"):
        await SshConnector(keys.target(port)).connect()


async def test_a_name_that_does_not_exist_is_told_as_such(keys) -> None:
    """The reserved top-level name is never resolved."""
    with pytest.raises(UnreachableError, match=r"no-such-host\.invalid"):
        await SshConnector(keys.target(22, host="no-such-host.invalid")).connect()


async def test_a_silent_port_is_given_up_after_the_configured_time(keys, tmp_path: Path) -> None:
    """Something accepts the connection and never speaks; ConnectTimeout of ssh_config rules."""
    (tmp_path / "config").write_text("Host *\n  ConnectTimeout 1\n")

    gone = asyncio.Event()

    async def listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(listen_only, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableError, match="in time"):
            await SshConnector(keys.target(port, config=(str(tmp_path / "config"),))).connect()
        async with asyncio.timeout(5):
            await gone.wait()


async def test_what_is_no_ssh_server_is_told_as_such(keys) -> None:
    """A web server on that port, say."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 400)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        with pytest.raises(UnreachableError) as caught:
            await SshConnector(keys.target(server.sockets[0].getsockname()[1])).connect()
    assert caught.value.advice


# --- as OpenSSH's configuration has it


def config_file(folder: Path, keys, port: int, extra: str = "") -> tuple[str]:
    """An ssh_config with the alias `gpu1`, one of whose key files does not exist."""
    known = folder / "known"
    known.write_text(keys.host_key_line(port))
    (folder / "config").write_text(
        f"Host gpu1\n  HostName 127.0.0.1\n  Port {port}\n  User somebody\n  RequestTTY force\n  ForwardAgent yes\n"
        f"  IdentityFile {folder}/no-such-key\n  IdentityFile {keys.path('client_key')}\n{extra}"
        f"Host *\n  UserKnownHostsFile {folder}/none {known}\n"
    )
    return (str(folder / "config"),)


async def test_an_alias_is_resolved_by_ssh_config(keys, port: int, script, tmp_path: Path) -> None:
    """Name, port, user, key and known_hosts; a key file that is missing is skipped; no terminal, no agent."""
    host = await SshConnector(SshTarget("gpu1", config=config_file(tmp_path, keys, port))).connect()
    done = await host.run(["sh", "-c", "tty; echo $SSH_AUTH_SOCK"])
    assert done.stdout == "not a tty\n\n"
    assert script.connections[0].get_extra_info("username") == "somebody"
    assert host.name == "gpu1"
    await host.close()


async def test_a_jump_host_is_gone_through_and_closed(keys, port: int, script, tmp_path: Path) -> None:
    """Its host key is checked as strictly."""
    behind = f"Host behind\n  HostName 127.0.0.1\n  Port {port}\n  ProxyJump gpu1\n"
    config = config_file(tmp_path, keys, port, f"{behind}  IdentityFile {keys.path('client_key')}\n")
    host = await SshConnector(SshTarget("behind", config=config)).connect()
    assert (await host.run(["echo", "hi"])).stdout == "hi\n"
    assert len(script.connections) == 2
    await host.close()
    await asyncio.gather(*(connection.wait_closed() for connection in script.connections))


async def test_a_jump_host_with_an_unknown_key_is_refused(keys, port: int, tmp_path: Path) -> None:
    """`UserKnownHostsFile none` trusts nobody, where asyncssh would trust everybody."""
    config = tmp_path / "config"
    config.write_text(
        f"Host jump\n  HostName 127.0.0.1\n  Port {port}\n  UserKnownHostsFile none\n"
        f"Host behind\n  ProxyJump jump\nHost *\n  IdentityFile {keys.path('client_key')}\n"
    )
    with pytest.raises(UnreachableError, match="jump is not known yet"):
        await SshConnector(SshTarget("behind", config=(str(config),))).connect()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ct200", ("ct200", None, None)),
        ("me@ct200", ("ct200", None, "me")),
        ("me@ct200:2222", ("ct200", 2222, "me")),
        ("fe80::1", ("fe80::1", None, None)),
        ("[fe80::1]:22", ("fe80::1", 22, None)),
    ],
)
def test_a_target_is_read_as_ssh_reads_it(text: str, parts: tuple[object, ...]) -> None:
    """User and port are optional; an address of IPv6 is not cut."""
    target = SshTarget.parse(text)
    assert (target.host, target.port, target.username) == parts


# --- running commands


def test_hostile_words_arrive_verbatim(tmp_path: Path) -> None:
    """Any text without NUL, over one connection to a server that uses a real shell."""
    with asyncio.Runner() as runner:
        info = ensure_demo_host(tmp_path / "demo", linger_s=0.1)
        host = runner.run(SshConnector(SshTarget(**login(info))).connect())

        @settings(max_examples=40, deadline=None)
        @given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
        def holds(words: list[str]) -> None:
            done = runner.run(host.run(["printf", "%s\\0", *words]))
            assert done.stdout.split("\0")[:-1] == words

        holds()
        runner.run(host.close())


async def test_a_lost_connection_under_a_command_is_unreachable(host: SshHost, script, seen, tmp_path: Path) -> None:
    """And never an empty answer with status 0."""
    task = asyncio.create_task(host.run(["sh", "-c", "sleep 300; :", f"lost-{tmp_path}"]))
    await seen(f"lost-{tmp_path}")
    script.connections[0].abort()
    with pytest.raises(UnreachableError, match="was lost") as caught:
        await task
    assert "sleep 300" in caught.value.evidence[0]


async def test_a_dead_connection_is_told_by_every_call(host: SshHost, script) -> None:
    """Nothing hangs, and nothing says that the host had refused."""
    script.connections[0].abort()
    with pytest.raises(UnreachableError):
        await host.run(["sleep", "300"])
    for call in (lambda: host.run(["true"]), lambda: host.stream(["true"]), lambda: host.forward(1), host.ping):
        with pytest.raises(UnreachableError):
            await call()


async def test_a_login_shell_that_runs_nothing_is_told_with_its_words(host: SshHost, script) -> None:
    """`nologin`, or a start-up file that exits."""

    async def nologin(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"This account is currently not available.\n")
        process.exit(1)

    script.handler = nologin
    with pytest.raises(HostError, match="without running `true`") as caught:
        await host.run(["true"])
    assert caught.value.evidence == ("This account is currently not available.",)
    stream = await host.stream(["true"])
    with pytest.raises(HostError, match="without running `true`"):
        async for _ in stream.chunks():
            pass


# --- streams


async def test_a_line_longer_than_any_buffer_passes(host: SshHost) -> None:
    """Bytes as they come; nothing waits for a newline."""
    stream = await host.stream(["sh", "-c", "head -c 5000000 /dev/zero; echo"])
    assert sum([len(chunk) async for chunk in stream.chunks()]) == 5_000_001


async def test_closing_a_stream_that_nobody_reads_ends_it(host: SshHost, none_left) -> None:
    """The window is full and the command blocked; it ends all the same."""
    stream = await host.stream(["yes", "nobody-reads-this"])
    await stream.close()
    await none_left("nobody-reads-this")


async def test_a_lost_connection_ends_a_stream_here_and_there(host: SshHost, script, none_left, tmp_path: Path) -> None:
    """The reader is told; the command does not stay on the host."""
    word = f"stream-{tmp_path}"
    stream = await host.stream(["sh", "-c", "echo up; sleep 300 | sleep 301", word])
    chunks = aiter(stream.chunks())
    assert await anext(chunks) == b"up\n"
    script.connections[0].abort()
    with pytest.raises(UnreachableError, match="was lost"):
        await anext(chunks)
    await none_left(word)
    await stream.close()


# --- the budget of channels


async def test_short_commands_queue_where_the_host_allows_two(keys, port: int, script) -> None:
    """A refused channel is never a failed command."""
    script.max_sessions = 2
    host = await SshConnector(keys.target(port)).connect()
    answers = await asyncio.gather(*(host.run(["echo", str(number)]) for number in range(12)))
    assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(12)]
    await host.close()


async def test_a_budget_is_kept_without_asking_the_host(keys, port: int, script) -> None:
    """No more channels at a time than were counted."""
    host = await SshConnector(keys.target(port), channels=3).connect()
    await asyncio.gather(*(host.run(["true"]) for _ in range(9)))
    assert script.most_sessions <= 3
    assert len(script.connections) == 1
    await host.close()


async def test_streams_leave_a_channel_for_commands(keys, port: int, script) -> None:
    """With two sessions a connection, two streams and a command all work; the second stream has its own connection."""
    host = await SshConnector(keys.target(port), channels=2).connect()
    streams = [await host.stream(["cat", "/dev/zero"]) for _ in range(2)]
    assert (await host.run(["echo", "free"])).stdout == "free\n"
    assert len(script.connections) == 2
    for stream in streams:
        await stream.close()
    await host.close()


async def test_a_limit_that_is_learnt_late_does_not_block_commands(keys, port: int, script) -> None:
    """Two streams fill the host's sessions before anybody knows that there are only two."""
    script.max_sessions = 2
    host = await SshConnector(keys.target(port)).connect()
    streams = [await host.stream(["cat", "/dev/zero"]) for _ in range(2)]
    assert (await host.run(["echo", "free"], timeout=10)).stdout == "free\n"
    for stream in streams:
        await stream.close()
    await host.close()


async def test_a_host_without_any_session_says_what_to_raise(keys, port: int, script) -> None:
    """Nothing else is open, so there is nothing to wait for."""
    script.max_sessions = 0
    host = await SshConnector(keys.target(port)).connect()
    with pytest.raises(HostError) as caught:
        await host.run(["true"])
    assert "MaxSessions" in caught.value.advice
    await host.close()


# --- forwards and round trips


async def test_forbidden_forwarding_is_told_at_once(host: SshHost, script, unused_port: int) -> None:
    """It must not read as an engine that is not ready."""
    script.forwarding = False
    with pytest.raises(HostError, match="forbids forwarding") as caught:
        await host.forward(unused_port)
    assert "AllowTcpForwarding" in caught.value.advice


async def test_the_round_trip_is_measured_without_a_channel(host: SshHost, script) -> None:
    """It works while all sessions are taken."""
    assert 0 < await host.ping() < 5
    assert script.opened == 0


async def test_a_signal_is_told_as_a_shell_tells_it(host: SshHost, script) -> None:
    """When the guard itself was killed: 128 and the signal's number, if there was an answer at all."""

    async def killed(process: asyncssh.SSHServerProcess[bytes]) -> None:
        marker = process.command.split("ddconsole-")[1].split(" ")[0]
        process.stdout.write(f"\nddconsole-{marker}\nhalf".encode())
        process.exit_with_signal("KILL")

    script.handler = killed
    done = await host.run(["true"])
    assert (done.status, done.stdout) == (128 + signal.SIGKILL, "half")
