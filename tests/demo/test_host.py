"""The demo host: an ordinary ssh client's view, and its life as a process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ddconsole.adapters.ssh import SshConnector, SshTarget
from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.demo import connector
from ddconsole.demo.connector import ensure_demo_host
from ddconsole.demo.host_engines import end_engines, engine_is_kept
from ddconsole.demo.host_state import DemoHostInfo, StateDir, login, login_command
from ddconsole.demo.nvidia_smi_cards import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed")


def wait_until(holds: Callable[[], object], what: str, seconds: float = 10.0) -> None:
    """Poll a condition."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    """A state folder whose host is ended with the test."""
    state = StateDir(tmp_path / "demo")
    yield state
    info = state.read_info()
    if info is not None and state.is_served():
        os.kill(info.pid, signal.SIGTERM)
    wait_until(lambda: not state.is_served(), "the host did not end")


@pytest.fixture
def info(state: StateDir) -> DemoHostInfo:
    """A running host."""
    return ensure_demo_host(state.path)


def ssh(info: DemoHostInfo, *words: str, flags: tuple[str, ...] = (), typed: str = "") -> str:
    """What an ordinary OpenSSH client prints."""
    program, *rest = login_command(info)
    command = [program, "-F", "none", "-o", "BatchMode=yes", *flags, *rest, *words]
    answer = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=20, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@needs_ssh
def test_an_ordinary_client_sees_eight_cards(info: DemoHostInfo) -> None:
    """`ssh … nvidia-smi`, with nothing but what the host tells about itself."""
    assert ssh(info, "nvidia-smi", "-L").count("NVIDIA RTX PRO 6000 Blackwell Max-Q") == 8
    assert "MiB / 97887MiB" in ssh(info, "nvidia-smi")


@needs_ssh
def test_commands_run_in_the_demo_home(info: DemoHostInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Home and folder are the demo's, its programs come first, and our own places are not in sight."""
    seen = dict(line.split("=", 1) for line in ssh(info, "cd; pwd >&2; env").splitlines())
    assert seen["HOME"] == seen["DDCONSOLE_DEMO_HOME"] == info.home
    assert seen["PATH"].startswith(f"{info.home}/bin:")
    assert "DDCONSOLE_HOME" not in seen
    assert ssh(info, "pwd").strip() == info.home


@needs_ssh
def test_a_terminal_is_a_terminal(info: DemoHostInfo) -> None:
    """An interactive login: a shell that is talked to, of the size that was asked for."""
    said = ssh(info, flags=("-tt",), typed="tty; nvidia-smi -L | head -1\nexit\n")
    assert "/dev/" in said
    assert "GPU 0: NVIDIA RTX PRO 6000" in said


@needs_ssh
def test_the_exit_status_is_the_commands(info: DemoHostInfo) -> None:
    """Also of a signal."""
    program, *rest = login_command(info)
    codes = [
        subprocess.run([program, "-F", "none", *rest, words], check=False, capture_output=True).returncode
        for words in ("exit 7", "no-such-program")
    ]
    assert codes == [7, 127]


def test_models_are_laid_out_as_real_ones(info: DemoHostInfo) -> None:
    """64 shards that the index names and that are there; a drafter that says what it was trained for."""
    target, drafter = (Path(info.home) / "models" / name for name in ("Toy-K2.6", "Toy-K2.6-DFlash"))
    index = json.loads((target / "model.safetensors.index.json").read_text())
    shards = sorted(set(index["weight_map"].values()))
    assert (len(shards), shards[0]) == (64, "model-00001-of-00064.safetensors")
    assert all((target / shard).is_file() for shard in shards)
    assert json.loads((drafter / "config.json").read_text())["dflash_config"]["block_size"] == 8
    assert (target / "config.json").is_file()


def test_keys_and_state_are_private(info: DemoHostInfo, state: StateDir) -> None:
    """Whoever has the key may run commands as this user."""
    files = (state.info, state.host_key, state.client_key, state.known_hosts)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700


def test_a_second_console_finds_the_same_host(info: DemoHostInfo, state: StateDir) -> None:
    """Nothing is started twice."""
    assert ensure_demo_host(state.path) == info


def test_two_consoles_at_once_get_one_host(state: StateDir) -> None:
    """The one waits for the other's host."""
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: ensure_demo_host(state.path), range(3)))
    assert len(set(found)) == 1


async def test_it_ends_by_itself_after_the_last_connection(state: StateDir) -> None:
    """Not while somebody is connected, and its state file goes first."""
    info = await asyncio.to_thread(ensure_demo_host, state.path, linger_s=0.2)
    first, second = [await SshConnector(SshTarget(**login(info))).connect() for _ in range(2)]
    await first.close()
    assert (await second.run(["sh", "-c", "sleep 0.5; echo here"])).stdout == "here\n"
    await second.close()
    await asyncio.to_thread(wait_until, lambda: not state.is_served(), "the host lingers")
    assert not state.info.exists()


async def test_a_new_host_keeps_keys_and_home(state: StateDir) -> None:
    """What a restarted console finds is what it left."""
    before = await asyncio.to_thread(ensure_demo_host, state.path, linger_s=0.1)
    host = await SshConnector(SshTarget(**login(before))).connect()
    await host.run(["touch", "left-behind"])
    await host.close()
    await asyncio.to_thread(wait_until, lambda: not state.is_served(), "the host lingers")
    after = await asyncio.to_thread(ensure_demo_host, state.path)
    assert after.pid != before.pid
    assert after.host_key_public == before.host_key_public
    assert (Path(after.home) / "left-behind").exists()


async def test_the_loading_speed_comes_with_the_client(info: DemoHostInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that runs already obeys the console that connects, not the one that started it."""
    monkeypatch.setenv("DDCONSOLE_DEMO_SPEED", "20")
    host = await SshConnector(SshTarget(**login(info))).connect()
    assert (await host.run(["sh", "-c", "echo $DDCONSOLE_DEMO_SPEED"])).stdout == "20\n"
    await host.close()


async def test_only_the_key_opens_it(info: DemoHostInfo, tmp_path: Path) -> None:
    """Being on the same machine is not enough."""
    import asyncssh

    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "other"))
    with pytest.raises(UnreachableError, match="does not accept"):
        await SshConnector(SshTarget(**(login(info) | {"client_keys": (str(tmp_path / "other"),)}))).connect()


async def test_it_forwards_to_loopback_and_nowhere_else(info: DemoHostInfo) -> None:
    """It must not be a way into somebody's network."""
    import asyncssh

    host = await SshConnector(SshTarget(**login(info))).connect()
    forward = await host.forward(info.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
    assert (await reader.readline()).startswith(b"SSH-2.0-")
    writer.close()
    await writer.wait_closed()
    await forward.close()
    await host.close()
    options = {"client_keys": [info.client_key_path], "known_hosts": info.known_hosts_path, "config": None}
    async with asyncssh.connect("127.0.0.1", info.port, username="demo", agent_path=None, **options) as connection:
        with pytest.raises(asyncssh.ChannelOpenError) as caught:
            await connection.open_connection("192.0.2.1", 80)
    assert caught.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_a_command_goes_on_without_its_connection_in_a_session_of_its_own(info: DemoHostInfo) -> None:
    """As on a real host, and as an engine has to."""
    host = await SshConnector(SshTarget(**login(info))).connect()
    launch = "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $!"
    pid = int((await host.run(["sh", "-c", launch])).stdout)
    await host.close()
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


def fake_engine(home: Path) -> subprocess.Popen[bytes]:
    """A process that looks like a toy engine by its command line, and its state file."""
    code = "import time; time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-c", code, "ddconsole.demo.engine"], start_new_session=True)
    state = {"pid": process.pid, "ranks": [process.pid, os.getpid()], "memory_mib": [1, 1]}
    (home / "run").mkdir(parents=True, exist_ok=True)
    (home / "run" / f"engine-{process.pid}.json").write_text(json.dumps(state))
    return process


def test_a_host_whose_folder_was_taken_over_leaves_it_alone(tmp_path: Path) -> None:
    """The folder is deleted and made anew by another host: the old one ends without a trace in it."""
    state = StateDir(tmp_path / "state")
    old = ensure_demo_host(state.path, linger_s=60)
    shutil.rmtree(state.path)
    new = ensure_demo_host(state.path, linger_s=60)
    engine = fake_engine(Path(new.home))
    os.kill(old.pid, signal.SIGTERM)
    wait_until(lambda: not is_alive(old.pid), "the old host ended")
    assert engine.poll() is None
    assert state.read_info() == new
    os.kill(new.pid, signal.SIGTERM)
    wait_until(lambda: engine.poll() is not None, "the new host took its engine with it")


def test_engines_that_nobody_kept_end_with_the_host(tmp_path: Path) -> None:
    """But a process that is not the engine's is left alone, whatever the file says: here, this very test."""
    process = fake_engine(tmp_path)
    end_engines(tmp_path)
    assert process.wait(5) == -signal.SIGTERM


def test_a_state_file_of_something_else_ends_nothing(tmp_path: Path) -> None:
    """The process id may belong to somebody else by now."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "engine-1.json").write_text(json.dumps({"pid": os.getpid(), "ranks": [os.getpid()]}))
    end_engines(tmp_path)


def test_an_engine_is_kept_by_a_mark_of_its_own_as_long_as_it_runs(tmp_path: Path) -> None:
    """The mark of another run keeps nothing; a dead engine is not kept."""
    process = fake_engine(tmp_path)
    for name, pid in (("other", 1), ("own", process.pid)):
        run = tmp_path / ".ddconsole" / "runs" / name
        run.mkdir(parents=True)
        (run / "pid").write_text(f"{pid} 4711 boot-id\n")
    (tmp_path / ".ddconsole" / "runs" / "other" / "kept").touch()
    assert not engine_is_kept(tmp_path)
    (tmp_path / ".ddconsole" / "runs" / "own" / "kept").touch()
    assert engine_is_kept(tmp_path)
    process.kill()
    process.wait()
    assert not engine_is_kept(tmp_path)


def test_a_host_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence is the end of its log."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no module named ddconsole' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(connector.sys, "executable", str(broken))
    with pytest.raises(UnreachableError, match="could not be started") as caught:
        ensure_demo_host(tmp_path / "demo")
    assert caught.value.evidence == ("exit status 1", "no module named ddconsole")


def test_the_foreground_command_tells_how_to_log_in_and_ends_cleanly(tmp_path: Path) -> None:
    """SIGTERM ends it with status 0; the printed line works."""
    words = [sys.executable, "-c", "from ddconsole.cli.demo_host import demo_host; demo_host()"]
    process = subprocess.Popen([*words, "--state-dir", str(tmp_path / "demo")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        lines = [process.stdout.readline() for _ in range(3)]
        assert "listening on 127.0.0.1:" in lines[0]
        assert "ssh -p " in lines[1]
        if shutil.which("ssh"):
            command = lines[1].split(":", 1)[1].strip()
            answer = subprocess.run(
                [*command.split(), "nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True
            )
            assert answer.stdout.count("GPU ") == 8
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert not (tmp_path / "demo" / "demo-host.json").exists()


def test_a_second_foreground_host_is_refused(info: DemoHostInfo, state: StateDir) -> None:
    """With the port of the one that runs, and the exit code of a refusal."""
    from ddconsole.cli.demo_host import demo_host

    result = CliRunner().invoke(demo_host, ["--state-dir", str(state.path)], standalone_mode=False)
    assert result.return_value == 3
    assert str(info.port) in result.stderr


async def test_a_shell_that_hangs_is_ended_by_the_timeout(info: DemoHostInfo) -> None:
    """The demo host behaves as sshd does."""
    host = await SshConnector(SshTarget(**login(info)), name="demo").connect()
    with pytest.raises(HostError, match="on demo and was ended"):
        await host.run(["sleep", "301"], timeout=0.2)
    await host.close()
