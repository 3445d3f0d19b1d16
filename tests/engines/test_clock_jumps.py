"""The host's clock jumps, or is hours off: stops end in their time, the lease holds, phases are never negative."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.errors import RefusedError
from ddconsole.core.ports import LaunchPlan
from ddconsole.engines.launch.lease import HostLease
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.sglang.bootlog import BootLog

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)

pytestmark = pytest.mark.skipif(not Path("/proc/uptime").exists(), reason="no /proc here")


@pytest.fixture
def jumping_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose `date` goes back an hour each time that it is asked."""
    tools = tmp_path / "bin"
    tools.mkdir()
    date = tools / "date"
    date.write_text(
        f"#!/bin/sh\nn=$(cat {tools}/n 2>/dev/null || echo 2000000000)\nn=$((n - 3600))\necho $n | tee {tools}/n\n"
    )
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


@pytest.mark.usefixtures("jumping_clock")
async def test_a_stubborn_engine_is_killed_in_its_time(tmp_path: Path) -> None:
    """The grace is counted by the host's uptime."""
    host, launcher = LocalHost(), ProcessLauncher(str(tmp_path / "state"), grace_s=1)
    launched = await launcher.launch(host, LaunchPlan((sys.executable, "-c", STUBBORN), port=30000), "E1-1")
    async with asyncio.timeout(20):
        proof = await launcher.stop(host, launched)
    assert proof.remains == ()


@pytest.mark.usefixtures("jumping_clock")
async def test_the_lease_is_neither_lost_nor_kept_for_ever(tmp_path: Path) -> None:
    """It expires by the uptime."""
    host = LocalHost()
    ann = HostLease(str(tmp_path), "a" * 32, "ann@laptop")
    bob = HostLease(str(tmp_path), "b" * 32, "bob@desk")
    await ann.take(host)
    with pytest.raises(RefusedError, match="ann@laptop"):
        await bob.take(host)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-12-02 14:00:00", "2026-12-02 13:00:00"),
        ("2026-12-02 14:00:00", "1970-01-01 00:00:00"),
        ("2099-12-31 23:59:59", "2026-12-02 14:00:00"),
        ("2026-12-02 14:00:00", "2026-13-77 99:99:99"),
    ],
)
def test_a_log_whose_stamps_go_back_is_timed_by_the_arrival_of_its_lines(first: str, second: str) -> None:
    """Stamps are only compared with each other, never with this machine's clock."""
    log = BootLog()
    log.feed(f"[{first} TP0] Load weight begin. avail mem=94.1 GB\n".encode(), 100.0)
    log.feed(
        f"[{second} TP0] Load weight end. elapsed=361.0 s, type=X, dtype=torch.bfloat16, avail mem=20.0 GB\n"
        f"[{second} TP0] KV Cache is allocated. #tokens: 100000, K size: 4.0 GB, V size: 4.0 GB\n".encode(), 160.0,
    )  # fmt: skip
    assert all(0 <= seconds <= 60.0 for seconds in log.progress.finished.values()), log.progress.finished
