"""The process launcher against real processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.errors import HostError
from ddconsole.core.ports import Launched, LaunchPlan
from ddconsole.engines.launch.ports import FIRST_PORT, LAST_PORT, choose_port, listeners
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.launch.record import shell_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the GPU host has /proc")

SERVER = """
import os, signal, socket, sys, time
print("started", os.environ.get("PLAIN"), os.environ.get("SECRET"), flush=True)
print("interrupts", signal.getsignal(signal.SIGINT) is signal.default_int_handler,
      signal.getsignal(signal.SIGQUIT) is signal.SIG_DFL, flush=True)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "stray" in sys.argv and os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("listening", flush=True)
time.sleep(600)
"""


@pytest.fixture
async def launch(host: LocalHost) -> AsyncIterator[Callable[..., Awaitable[Launched]]]:
    """Starts plans, and ends at the end whatever the test left."""
    launcher, started = ProcessLauncher("~/state", grace_s=1), list[Launched]()

    async def start(*argv: str, name: str = "E1-1", **fields: object) -> Launched:
        plan = LaunchPlan(argv=argv, **fields)  # type: ignore[arg-type]  # fields of LaunchPlan
        started.append(await launcher.launch(host, plan, name))
        return started[-1]

    yield start
    for launched in started:
        await launcher.stop(host, launched)


@pytest.fixture
def launcher() -> ProcessLauncher:
    """One with a short grace."""
    return ProcessLauncher("~/state", grace_s=1)


def text_of(path: str) -> str:
    """A small file."""
    return Path(path).read_text(errors="replace")


def command_lines() -> list[str]:
    """What `ps` would show of every process."""
    shown = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            shown.append(text_of(str(entry)))
    return shown


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition, at most ten seconds."""
    for _ in range(200):
        if await condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never came: {what}")


async def logged(launched: Launched, text: str) -> str:
    """The log, once it holds `text`."""

    async def there() -> bool:
        return text in text_of(launched.log_path)

    await until(there, text)
    return text_of(launched.log_path)


async def test_it_leads_its_own_session_and_is_known_by_its_start(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher, tmp_path: Path
) -> None:
    """pid = pgid = session; ticks and boot are those of /proc; it lives in the host's home."""
    launched = await launch("sleep", "600")
    fields = text_of(f"/proc/{launched.pid}/stat").rpartition(") ")[2].split()
    assert int(fields[2]) == int(fields[3]) == launched.pid == launched.pgid
    assert int(fields[19]) == launched.start_ticks
    assert launched.boot_id == text_of("/proc/sys/kernel/random/boot_id").strip()
    assert os.readlink(f"/proc/{launched.pid}/cwd") == str(tmp_path)
    assert launched.log_path == f"{tmp_path}/state/runs/E1-1/engine.log"
    assert (await launcher.liveness(host, launched)).alive
    assert Launched.from_json(launched.to_json()) == launched


async def test_a_launch_is_found_again_by_its_name(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """A console that died in launching has no record of its own; the host has one."""
    launched = await launch("sleep", "600", name="demo-E17-2", port=31234)
    assert await launcher.find(host, "demo-E17-2") == launched
    assert await launcher.find(host, "demo-E17-3") is None
    assert await launcher.find(host, "../x") is None


async def test_it_outlives_the_host_object(launch: Callable[..., Awaitable[Launched]], host: LocalHost) -> None:
    """Closing the connection ends our commands, not the engine."""
    launched = await launch("sleep", "600")
    await host.close()
    assert (await ProcessLauncher().liveness(host, launched)).alive


async def test_a_secret_reaches_the_engine_and_neither_ps_nor_a_file(
    launch: Callable[..., Awaitable[Launched]], tmp_path: Path
) -> None:
    """By a file of mode 600 that is gone once the engine runs; quotes and newlines survive."""
    secret = 'it\'s a "s3cret" $HOME `id` \\'
    launched = await launch(
        sys.executable, "-c", SERVER, "0", env={"PLAIN": "a b"}, secret_env={"SECRET": secret}
    )  # fmt: skip
    text = await logged(launched, "listening")
    assert f"started a b {secret}" in text
    run = tmp_path / "state/runs/E1-1"
    assert sorted(path.name for path in run.iterdir()) == ["engine.log", "launch", "pid"]
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert stat.S_IMODE((run / "engine.log").stat().st_mode) == 0o600
    assert not any("s3cret" in line for line in command_lines())


async def test_signals_are_as_a_login_would_have_them(launch: Callable[..., Awaitable[Launched]]) -> None:
    """A background job of a shell ignores SIGINT and SIGQUIT; SGLang ends its ranks by SIGQUIT."""
    launched = await launch(sys.executable, "-c", SERVER, "0")
    assert "interrupts True True" in await logged(launched, "listening")


@pytest.mark.parametrize(
    ("script", "status"), [("exit 3", 3), ("exit 0", 0), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
async def test_the_exit_status_is_kept(
    host: LocalHost,
    launch: Callable[..., Awaitable[Launched]],
    launcher: ProcessLauncher,
    script: str,
    status: int,
) -> None:
    """As a shell tells it, also for a process that a signal ended."""
    launched = await launch("sh", "-c", script)

    async def dead() -> bool:
        return not (await launcher.liveness(host, launched)).alive

    await until(dead, "death")
    assert (await launcher.liveness(host, launched)).exit_status == status


async def test_a_missing_command_is_status_127_with_its_words_in_the_log(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """The launch itself worked; the engine died at once."""
    launched = await launch("no-such-engine-here")
    assert "no-such-engine-here" in await logged(launched, "no-such-engine-here")

    async def dead() -> bool:
        return (await launcher.liveness(host, launched)).exit_status == 127

    await until(dead, "status 127")


async def test_a_reused_pid_is_not_our_engine(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """Another start time, or another boot: dead, and a stop touches nothing."""
    launched = await launch("sleep", "600")
    for stranger in (
        replace(launched, start_ticks=launched.start_ticks - 1, token="f" * 32),
        replace(launched, boot_id="another", token="f" * 32),
    ):
        assert not (await launcher.liveness(host, stranger)).alive
        assert (await launcher.stop(host, stranger)).remains == ()
    assert (await launcher.liveness(host, launched)).alive


async def test_the_port_is_owned_by_a_process_of_the_launch(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """By its session; before it listens nobody does."""
    port = await choose_port(host)
    launched = await launch(sys.executable, "-c", SERVER, str(port), port=port)
    await logged(launched, "listening")
    owned, words = await launcher.owns_port(host, launched)
    assert owned
    assert f"pid {launched.pid}" in words
    assert await launcher.owns_port(host, replace(launched, port=1)) == (False, "nobody listens on port 1")


async def test_a_port_held_by_a_stranger_is_told_with_pid_user_and_command(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """The old engine that answers in the new one's place."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    launched = await launch("sleep", "600", port=port)
    owned, words = await launcher.owns_port(host, launched)
    assert not owned
    assert f"pid {os.getpid()} (" in words
    assert "python" in words
    server.close()
    await server.wait_closed()
    assert await listeners(host, port) == []


async def test_a_stop_ends_all_and_proves_it(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """TERM is enough for a willing engine and its children."""
    port = await choose_port(host)
    launched = await launch("sh", "-c", f'sleep 600 & exec "$0" -c "$1" {port}', sys.executable, SERVER, port=port)
    await logged(launched, "listening")
    proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert not proof.forced
    assert not (await launcher.liveness(host, launched)).alive
    assert await listeners(host, port) == []


async def test_a_stubborn_engine_and_a_child_in_a_session_of_its_own_are_killed(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """The child left the group; its token tells it."""
    launched = await launch(sys.executable, "-c", SERVER, "0", "stubborn", "stray")
    await logged(launched, "listening")
    marked = await host.run(["sh", "-c", 'grep -l -F "$1" /proc/[0-9]*/environ 2>/dev/null; :', "sh", launched.token])
    assert len(marked.stdout.split()) == 2
    proof = await launcher.stop(host, launched)
    assert proof.forced
    assert proof.remains == ()
    assert proof.seconds >= 1
    marked = await host.run(["sh", "-c", 'grep -l -F "$1" /proc/[0-9]*/environ 2>/dev/null; :', "sh", launched.token])
    assert marked.stdout.split() == []


async def test_children_of_a_dead_root_are_ended_too(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """SGLang's schedulers go on after their root was killed."""
    launched = await launch(sys.executable, "-c", SERVER, "0", "stray")
    await logged(launched, "listening")
    os.kill(launched.pid, signal.SIGKILL)
    proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert proof.forced


async def test_the_log_is_followed_from_an_offset(
    host: LocalHost, launch: Callable[..., Awaitable[Launched]], launcher: ProcessLauncher
) -> None:
    """Nothing is lost, nothing doubled, and it goes on while the engine writes."""
    launched = await launch("sh", "-c", "printf abcdef; while [ ! -e go ]; do sleep 0.05; done; printf ghi; sleep 600")
    await logged(launched, "abcdef")
    stream = await launcher.follow(host, launched, 2)
    seen = b""
    async with asyncio.timeout(10):
        async for data in stream.chunks():
            seen += data
            if seen == b"cdef":
                (Path(launched.log_path).parents[3] / "go").touch()
            if len(seen) >= 7:
                break
    await stream.close()
    assert seen == b"cdefghi"


async def test_a_name_that_could_leave_the_folder_is_refused(host: LocalHost, launcher: ProcessLauncher) -> None:
    """Names make folders on the host."""
    with pytest.raises(HostError, match="cannot name a run"):
        await launcher.launch(host, LaunchPlan(("true",)), "../x")


async def test_a_state_folder_that_cannot_be_made_is_told(host: LocalHost, tmp_path: Path) -> None:
    """With the host's own words."""
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="could not be started") as caught:
        await ProcessLauncher("~/file/inside").launch(host, LaunchPlan(("true",)), "E1-1")
    assert any("file" in line for line in caught.value.evidence)


@pytest.mark.parametrize("name", ["A B", "1A", "A;id", ""])
def test_a_variable_has_a_variables_name(name: str) -> None:
    """It becomes a line that a shell reads."""
    with pytest.raises(HostError, match="environment variable"):
        shell_lines({name: "x"})


async def test_a_chosen_port_is_free(host: LocalHost) -> None:
    """Within its range, and nobody listens there."""
    port = await choose_port(host)
    assert FIRST_PORT <= port <= LAST_PORT
    assert await listeners(host, port) == []


@pytest.mark.parametrize("tool", ["python3", "perl"])
async def test_without_setsid_another_tool_makes_the_session(
    host: LocalHost,
    launch: Callable[..., Awaitable[Launched]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
) -> None:
    """Minimal containers and macOS have no setsid."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in (
        "sh",
        "cat",
        "mkdir",
        "rm",
        "mv",
        "sleep",
        "env",
        "awk",
        "tr",
        "sort",
        "grep",
        "date",
        "cut",
        "ls",
        tool,
    ):
        found = sys.executable if name == "python3" else shutil.which(name)
        if found is None:
            pytest.skip(f"no {name} on this machine")
        (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    launched = await launch("sleep", "600")
    assert os.getsid(launched.pid) == launched.pid
