"""Each way to misbehave has its own verdict, in each kind of isolation, and none of them reaches the console."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from ddconsole.adapters import sandbox as sandbox_module
from ddconsole.adapters.sandbox import LocalSandbox, open_sandbox
from ddconsole.adapters.sandbox.cage import homes
from ddconsole.core.errors import DdconsoleError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the keeper counts in /proc")

KINDS = ("bubblewrap", "namespace", "rlimits")
HOME = homes()[0]
MEMORY_MB = 192

SHARERS = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(50 * 2**20)
        for page in range(0, len(held), 4096):
            held[page] = 1
        time.sleep(60)
time.sleep(60)
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
"""

CASES = {
    "fork bomb": ("import os\nwhile True: os.fork()", "processes"),
    "fork bomb that does not give up": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "processes",
    ),
    "a program too many": (
        "import subprocess\nheld = [subprocess.Popen(['sleep', '60']) for _ in range(200)]",
        "processes",
    ),
    "endless loop": ("while True: pass", "timeout"),
    "output flood": ("while True: print('x' * 10**6)", "output"),
    "10 GiB at once": ("bytearray(10 * 2**30)", "memory"),
    "300 MB in six processes": (SHARERS, "memory"),
    "an address outside": ("import socket\nsocket.create_connection(('192.0.2.1', 80), 2)", "network"),
    "an address here": ("import socket\nsocket.create_connection(('127.0.0.1', 9), 2)", "network"),
    "a name": ("import urllib.request\nurllib.request.urlopen('http://example.org/')", "network"),
    "reading the home": (f"open({os.path.join(HOME, '.ddconsole-none', 'key')!r})", "home"),
    "killing its parent": ("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)", "parent"),
    "a child left behind": ("import os, time\nif os.fork() == 0: time.sleep(60)\nos._exit(0)", "children"),
    "a daemon left behind": (DAEMON, "children"),
    "a crash": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signalled"),
    "10 GiB file": ("import tempfile; tempfile.TemporaryFile().truncate(10 * 2**30)", "files"),
    "its own error": ("1 / 0", "error"),
    "a pipe that would block": (
        "import os, subprocess\nsubprocess.run(['true'])\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.read(r, 1)",
        "error",
    ),
    "a child that ends soon": ("import os, time\nif os.fork() == 0: time.sleep(0.02)", "ok"),
}

ENDED_IN_S = 5.0
"""The wall time of the endless loop is 1 s; the rest is for a busy machine."""


@functools.cache
def opened(kind: str) -> LocalSandbox | DdconsoleError:
    """The sandbox of a kind, found out once."""
    try:
        return asyncio.run(open_sandbox(kind))
    except DdconsoleError as error:
        return error


@pytest.fixture(params=KINDS, scope="session")
def sandbox(request: pytest.FixtureRequest) -> LocalSandbox:
    found = opened(request.param)
    if isinstance(found, DdconsoleError):
        pytest.skip(f"{request.param} does not hold here: {'; '.join(found.evidence)}")
    return found


@pytest.mark.parametrize("case", CASES)
async def test_each_kind_of_harm_has_its_own_verdict(sandbox: LocalSandbox, case: str) -> None:
    """And ends at once, and this process and the next run go on."""
    source, verdict = CASES[case]
    began = time.monotonic()
    result = await sandbox.run_python(source, wall_s=1.0 if verdict == "timeout" else 20.0, memory_mb=MEMORY_MB)
    assert (result.verdict, result.stderr[-500:] if result.verdict != verdict else "") == (verdict, "")
    assert time.monotonic() - began < ENDED_IN_S + (10.0 if verdict == "processes" else 0.0)


@pytest.mark.parametrize(
    ("attempt", "kind"),
    [
        ("import os\nos.kill(os.getppid(), 0)\nopen('/nowhere')", "OSError"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80), 2)", "OSError"),
        (f"open({os.path.join(HOME, '.ddconsole-none')!r})", "OSError"),
        ("bytearray(10 * 2**30)", "MemoryError"),
    ],
)
async def test_what_the_program_catches_is_its_own_matter(sandbox: LocalSandbox, attempt: str, kind: str) -> None:
    """A verdict names what ended a program, not what it tried."""
    source = f"try:\n    exec({attempt!r})\nexcept {kind}:\n    print('caught')"
    result = await sandbox.run_python(source, memory_mb=MEMORY_MB)
    assert (result.verdict, result.stdout) == ("ok", "caught\n")


async def test_limits_alone_refuse_what_python_asks_for() -> None:
    """A home that is there and could be read, and a service that listens: neither is reached."""
    found = opened("rlimits")
    assert isinstance(found, LocalSandbox)
    there = await found.run_python(f"import os\nprint(os.listdir({HOME!r}))")
    assert (there.verdict, there.stdout) == ("home", "")
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        source = f"import socket\ns = socket.socket()\ns.connect(('127.0.0.1', {port}))\nprint('reached')"
        result = await found.run_python(source)
    assert (result.verdict, result.stdout) == ("network", "")
    with tempfile.NamedTemporaryFile(dir="/tmp") as mine:  # pytest's own folders are closed to the sandbox's user
        mine.write(b"x")
        mine.flush()
        os.fchmod(mine.fileno(), 0o644)
        assert (await found.run_python(f"print(open({mine.name!r}).read())")).stdout == "x\n"


async def test_limits_alone_let_no_signal_out() -> None:
    """This process would end by it."""
    found = opened("rlimits")
    assert isinstance(found, LocalSandbox)
    result = await found.run_python(f"import os, signal\nos.kill({os.getpid()}, signal.SIGTERM)")
    assert result.verdict == "parent"


@pytest.mark.parametrize("home", ["/home/somebody/.ssh/id", "/root/x"])
async def test_other_homes_are_none_of_its_business_either(sandbox: LocalSandbox, home: str) -> None:
    """Whoever they belong to."""
    assert (await sandbox.run_python(f"open({home!r})")).verdict == "home"


def runs(mark: str) -> list[str]:
    """Processes of the runs with this token."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"DDCONSOLE_SANDBOX={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(name)
    return found


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.03])
async def test_a_run_that_is_given_up_while_it_starts_leaves_nothing(
    sandbox: LocalSandbox, after_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper sees that nobody hears it any more, even where the cage was not yet tied to the console."""
    mark = uuid.uuid4().hex
    monkeypatch.setattr(sandbox_module, "secrets", SimpleNamespace(token_hex=lambda _: mark))
    task = asyncio.create_task(sandbox.run_python("import time\ntime.sleep(60)", wall_s=60.0))
    await asyncio.sleep(after_s)  # the moment is what varies; no condition is awaited by it
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10.0):
        while runs(mark):  # noqa: ASYNC110  # a process of another program cannot set an event here
            await asyncio.sleep(0.02)
