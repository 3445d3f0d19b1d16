"""The sandbox: whatever runs in it ends in time, is told by its own verdict, and leaves nothing behind.

Every kind of isolation that this machine allows is put through the same; what only namespaces can hold is asked of
bubblewrap and of our own namespaces alone.
"""

import asyncio
import contextlib
import functools
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ddconsole.adapters import sandbox as sandbox_module
from ddconsole.adapters.sandbox import OUTPUT_BYTES, LocalSandbox, end_strays, open_sandbox
from ddconsole.adapters.sandbox import cage as sandbox_cages
from ddconsole.adapters.sandbox.cage import Cage, cages, interpreter, open_to_all
from ddconsole.core.errors import DdconsoleError
from ddconsole.core.ports import Sandbox

KINDS = ("bubblewrap", "namespace", "rlimits")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@functools.cache
def opened(kind: str) -> LocalSandbox | DdconsoleError:
    """The sandbox of a kind, found out once; it holds nothing between runs."""
    try:
        return asyncio.run(open_sandbox(kind))
    except DdconsoleError as error:
        return error


def held_by(kind: str) -> LocalSandbox:
    found = opened(kind)
    if isinstance(found, DdconsoleError):
        pytest.skip(f"{kind} does not hold here: {'; '.join(found.evidence)}")
    return found


@pytest.fixture(params=KINDS, scope="session")
def sandbox(request: pytest.FixtureRequest) -> LocalSandbox:
    return held_by(request.param)


@pytest.fixture(params=("bubblewrap", "namespace"), scope="session")
def isolated(request: pytest.FixtureRequest) -> LocalSandbox:
    return held_by(request.param)


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


async def test_runs_and_tells(sandbox: LocalSandbox) -> None:
    """Output, errors and time; nothing of this process's environment, an empty standard input."""
    checked: Sandbox = sandbox
    source = "import os, sys\nprint(sys.stdin.read() == '', *os.environ)\nprint('err', file=sys.stderr)"
    result = await checked.run_python(source)
    assert (result.verdict, result.stderr) == ("ok", "err\n")
    empty, *names = result.stdout.split()
    assert empty == "True"
    assert set(names) - {"PWD", "LC_CTYPE"} == {"DDCONSOLE_SANDBOX", "HOME", "LANG", "PATH"}
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ("raise SystemExit(3)", "error"),
        ("1 / 0", "error"),
        ("not python", "error"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signalled"),
        ("import sys; sys.exit(0)", "ok"),
        ("input()", "error"),
        ("bytearray(10 * 2**30)", "memory"),
        ("x = []\nwhile True: x.append(bytearray(10**6))", "memory"),
        ("import tempfile; tempfile.TemporaryFile().truncate(10 * 2**30)", "files"),
        ("def f(): f()\nf()", "error"),
    ],
)
async def test_each_end_has_its_verdict(sandbox: LocalSandbox, source: str, verdict: str) -> None:
    """Errors, memory, a ten-gigabyte file and endless recursion, without a trace outside."""
    assert (await sandbox.run_python(source, wall_s=20.0, memory_mb=128)).verdict == verdict


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "import time\ntime.sleep(60)",
        "import signal, time\nfor s in (15, 2, 14): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    ],
)
async def test_endless_code_is_ended_from_outside(sandbox: LocalSandbox, source: str) -> None:
    """Busy, asleep, deaf to TERM, or in a thread that never ends."""
    async with within(5.0):
        assert (await sandbox.run_python(source, wall_s=0.5)).verdict == "timeout"


async def test_output_flood_is_cut_while_it_is_read(sandbox: LocalSandbox) -> None:
    """Neither the memory nor the time is used up."""
    async with within(4.0):
        result = await sandbox.run_python("while True: print('x' * 10**6)", wall_s=8.0)
    assert result.verdict == "output"
    assert len(result.stdout) <= OUTPUT_BYTES


@linux
@pytest.mark.parametrize(
    ("leaves", "verdict"),
    [
        ("os._exit(0)", "children"),
        ("time.sleep(60)", "timeout"),
        ("os.kill(os.getppid(), 9); time.sleep(60)", "parent"),
    ],
)
async def test_no_child_is_left(sandbox: LocalSandbox, leaves: str, verdict: str, mark: str) -> None:
    """A child in a session of its own, holding the pipes open, ends with its parent: by exit, timeout, or treason."""
    source = (
        f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nprint('x', flush=True)\n{leaves}"
    )
    async with within(8.0):
        result = await sandbox.run_python(source, wall_s=0.7 if verdict == "timeout" else 7.0)
    assert result.verdict == verdict
    await gone(mark)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """The token of this test's runs: other tests, and other people, run theirs at the same time."""
    token = uuid.uuid4().hex
    monkeypatch.setattr(sandbox_module, "secrets", SimpleNamespace(token_hex=lambda _: token))
    return token


def marked_processes(mark: str) -> set[int]:
    """Processes of this test's runs."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if f"DDCONSOLE_SANDBOX={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.add(int(name))
    return found


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition that nothing signals, ten seconds at most."""
    async with asyncio.timeout(10.0):
        while not holds():  # noqa: ASYNC110  # a process of another program cannot set an event here
            await asyncio.sleep(0.02)


async def gone(mark: str) -> None:
    """No process of this test's runs is left."""
    await until(lambda: not marked_processes(mark))


@linux
async def test_cancelling_ends_the_run(sandbox: LocalSandbox, mark: str) -> None:
    """A pass that is cancelled leaves nothing running."""
    task = asyncio.create_task(sandbox.run_python("import time\ntime.sleep(60)", wall_s=60.0))
    await until(lambda: bool(marked_processes(mark)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(mark)


async def test_killing_its_parent_harms_nobody(sandbox: LocalSandbox) -> None:
    """The console and the next run go on."""
    result = await sandbox.run_python(
        "import os\nos.kill(-1, 9) if os.getpid() < 100 else None\nos.kill(os.getppid(), 9)\ninput()", wall_s=8.0
    )
    assert result.verdict == "parent"
    assert (await sandbox.run_python("print('next')")).stdout == "next\n"


async def test_next_run_finds_a_clean_place(isolated: LocalSandbox) -> None:
    """Files of one run are not seen by the next, nor in this machine's own folder."""
    await isolated.run_python("open('/tmp/ddconsole-left-behind', 'w').write('x')")
    result = await isolated.run_python("import os\nprint(os.listdir('/tmp'))")
    assert result.stdout == "[]\n"
    assert "ddconsole-left-behind" not in os.listdir("/tmp")


async def test_no_network(isolated: LocalSandbox) -> None:
    """Not even a service on this machine's loopback can be reached."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        source = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2)\nprint('reached')"
        result = await isolated.run_python(source, wall_s=5.0)
    assert (result.verdict, result.stdout) == ("network", "")


async def test_no_home_and_nothing_to_write(isolated: LocalSandbox, tmp_path: Path) -> None:
    """Homes and temporary files of this machine are out of sight, the system is read-only, `rm -rf ~` hits nothing."""
    secret = tmp_path / "secret"
    secret.write_text("key")
    source = f"""
import os, shutil
shutil.rmtree(os.path.expanduser("~"), ignore_errors=True)
print(os.path.exists({str(secret)!r}))
for folder in ("/", "/usr", "/etc", "/var", {str(Path(__file__).parent)!r}):
    try:
        open(os.path.join(folder, "ddconsole-probe"), "w")
        print("wrote", folder)
    except OSError:
        pass
"""
    result = await isolated.run_python(source)
    assert (result.verdict, result.stdout) == ("ok", "False\n")
    assert secret.read_text() == "key"


async def test_runs_as_an_ordinary_user(isolated: LocalSandbox) -> None:
    """Never as root, whoever the console is, and without a way back."""
    source = "import os\nprint(os.getuid() != 0)\ntry: os.setuid(0); print('back')\nexcept OSError: print('no')"
    assert (await isolated.run_python(source)).stdout == "True\nno\n"


async def test_runs_overlap(sandbox: LocalSandbox) -> None:
    """Two at once, each with its own output."""
    one, two = await asyncio.gather(sandbox.run_python("print(1)"), sandbox.run_python("print(2)"))
    assert (one.stdout, two.stdout) == ("1\n", "2\n")


async def test_event_loop_stays_free(sandbox: LocalSandbox) -> None:
    """A run of half a second does not hold the loop."""
    late = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late.append(time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    await sandbox.run_python("while True: pass", wall_s=0.5)
    ticking.cancel()
    assert len(late) > 5


async def test_what_does_not_hold_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bubblewrap that fails, one that is missing, and one that holds nothing: the next way is taken."""
    broken = Cage("bubblewrap", lambda argv: ["/bin/sh", "-c", "echo no namespaces >&2; exit 1"])
    missing = Cage("bubblewrap", lambda argv: ["/nowhere/bwrap", *argv])
    naked = Cage("namespace", lambda argv: argv)
    last = Cage("rlimits", lambda argv: argv)
    monkeypatch.setattr(sandbox_module, "cages", lambda: iter([broken, missing, naked, last]))
    assert (await open_sandbox()).isolation == "rlimits"
    with pytest.raises(DdconsoleError) as caught:
        await open_sandbox("bubblewrap")
    assert caught.value.evidence[0] == "bubblewrap: no namespaces"
    assert "/nowhere/bwrap" in caught.value.evidence[1]


def test_without_bubblewrap_the_other_ways_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need no installed tool."""
    monkeypatch.setattr(sandbox_cages.shutil, "which", lambda name: None)
    assert {cage.isolation for cage in cages()} <= {"namespace", "rlimits"}


@linux
def test_strays_are_found_by_their_environment() -> None:
    """A process that left its group and whose reaper died is ended; one of another run is not."""
    mine, other = (
        subprocess.Popen(
            [interpreter(), "-I", "-S", "-c", "import time; time.sleep(60)"],
            env={"DDCONSOLE_SANDBOX": token},
            start_new_session=True,
        )
        for token in ("abc", "abcd")
    )
    try:
        end_strays("abc")
        assert mine.wait(10) == -9
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


ORDINARY = """
import asyncio
from ddconsole.adapters.sandbox import open_sandbox
async def main():
    sandbox = await open_sandbox()
    ran = await sandbox.run_python("import os; print(os.getuid())")
    print(sandbox.isolation, ran.verdict)
asyncio.run(main())
"""


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user, which only root can")
@pytest.mark.skipif(not open_to_all(interpreter()), reason="an ordinary user cannot start this interpreter")
def test_an_ordinary_user_has_a_sandbox_too(tmp_path: Path) -> None:
    """As root all of this runs as root; here the console itself is somebody else."""
    done = subprocess.run(
        [sys.executable, "-c", ORDINARY], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, check=False,
    )  # fmt: skip
    assert done.stdout.endswith(" ok\n"), done.stderr
