"""The old server answers: a new engine whose port is held is a failure that says by whom and since when.

Real processes: a stale server that answers as the engine asked for would, and an "engine" that prints the log of one
that could not bind and yet calls itself ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.local import LocalConnector, LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.ports import AttemptKey, Launched, LaunchPlan
from ddconsole.core.profile import Profile
from ddconsole.core.progress import BootFacts
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.sglang.engine import SglangEngine
from ddconsole.runner.boot import Boot
from ddconsole.runner.follow import LogFollower
from ddconsole.runner.phases import AttemptFailed, PhaseLog
from ddconsole.runner.port_holder import began_at, names_port, port_held
from ddconsole.runner.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.events import Body

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the GPU host has /proc")

DATA = Path(__file__).parent.parent / "engines" / "data"
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)

STALE = """
import http.server, json, sys

class Old(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[1].encode() if "server_info" in self.path else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Old)
print(server.server_port, flush=True)
server.serve_forever()
"""

FALSE_READY = """
import os, sys, time
sys.stdout.buffer.write(open(sys.argv[1], "rb").read().replace(b"30000", sys.argv[2].encode()))
sys.stdout.flush()
if sys.argv[3] == "lingers":
    time.sleep(600)
os._exit(137)
"""


class Journal:
    """Remembers what it is given."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []

    def show(self, body: Body, key: AttemptKey | None = None) -> None:
        self.bodies.append(body)

    post = show
    tell = show

    async def emit(self, body: Body, key: AttemptKey | None = None, also: Any = None) -> None:
        self.bodies.append(body)

    def gpu_mib(self) -> int | None:
        return None


@asynccontextmanager
async def stale_server() -> AsyncIterator[tuple[int, int]]:
    """(pid, port) of a server that tells the very arguments that are asked for."""
    info = json.dumps(json.loads((DATA / "server_info.json").read_text()))
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", STALE, info, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process.pid, int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def boot_over(port: int, manner: str) -> Failure:
    """How the boot of an engine ends whose port is held."""
    profile = Profile.model_validate(
        {"schema": "1", "host": "local", "engine": {"command": ["x"], "model": "M", "drafter": "D", "port": str(port)}}
    )
    clock, launcher, journal = SystemClock(), ProcessLauncher("~/state", grace_s=1), Journal()
    sink: Any = journal
    session = Session(LocalConnector(), sink, clock)
    engine = SglangEngine(profile, {})
    log = str(DATA / "fail-port-held-false-ready.log")
    argv = (sys.executable, "-c", FALSE_READY, log, str(port), manner)
    host = await session.host()
    launched = await launcher.launch(host, LaunchPlan(argv, port=port), "E1-1")
    bench: Any = SimpleNamespace(profile=profile, clock=clock, launcher=launcher, engine=engine)
    follower = LogFollower(session, launcher, launched, engine.tracker(), sink, clock)
    follower.start()
    key = AttemptKey("p", "E1", 1)
    boot = Boot(bench, session, sink, PhaseLog(sink, clock, key), key, launched, follower, 1.0)
    try:
        with pytest.raises(AttemptFailed) as failed:
            await asyncio.wait_for(boot.until_ready(TREE), 20)
        assert follower.tracker.progress.fired_up
        return failed.value.failure
    finally:
        await follower.close()
        await launcher.stop(host, launched)
        await session.close()


@pytest.mark.parametrize("manner", ["lingers", "dies"])
async def test_a_stale_server_with_equal_arguments_is_never_taken_for_the_new_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: str
) -> None:
    """The new log says "fired up", the old server says ready and tells the same arguments: failed all the same."""
    monkeypatch.setenv("HOME", str(tmp_path))
    async with stale_server() as (pid, port):
        failure = await boot_over(port, manner)
    assert failure.cause == "port-held"
    found = re.match(rf"port {port} was held by pid {pid} \(.*\) since (\S+ \S+) UTC$", failure.what)
    assert found is not None, failure.what
    since = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - since) < timedelta(minutes=2)
    assert "error while attempting to bind" in failure.evidence[0]
    assert f"pid {pid}" in failure.evidence[1]
    assert "End that server" in failure.advice


async def test_when_a_process_began_is_read_from_the_host() -> None:
    """To about a second; a process that is gone began never."""
    host = LocalHost()
    try:
        began = await began_at(host, os.getpid())
        assert began is not None
        assert timedelta(0) < datetime.now(UTC) - began < timedelta(days=2)
        assert await began_at(host, 2**22 + 1) is None
    finally:
        await host.close()


async def test_a_holder_that_is_gone_is_told_as_gone() -> None:
    """Nobody listens any more, and the log still shows why the engine never served."""
    line = "[2026-11-18 14:10:18] ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 1): in use"
    host = LocalHost()
    try:
        launched = Launched("process", 42, 42, 1, "b", "t", "/l", "/s", 1)
        failure = await port_held(host, launched, BootFacts(bind_failed=line))
    finally:
        await host.close()
    assert failure.what == "port 1 was held by a process that is gone by now"
    assert failure.evidence == (line,)


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("error while attempting to bind on address ('127.0.0.1', 30000): address already in use", True),
        ("error while attempting to bind on address ('127.0.0.1', 300001): address already in use", False),
        ("nccl_port 28000: address already in use", False),
        (None, False),
    ],
)
def test_an_internal_port_is_not_the_one_that_serves(line: str | None, ours: bool) -> None:
    """A bind that failed elsewhere is another failure."""
    assert names_port(line, 30000) is ours
