"""The host's state folder is wiped under a living engine (/tmp, say): it is still known, ended, and proved gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import Launched, LaunchPlan
from ddconsole.engines.launch.lease import HostLease
from ddconsole.engines.launch.process import ProcessLauncher

ENGINE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
time.sleep(600)
"""


def text_of(path: str) -> str:
    """A small file."""
    return Path(path).read_text()


async def child_in(log: str) -> int:
    """The child's pid, once the engine has told it."""
    for _ in range(500):
        if "child" in text_of(log) and text_of(log).endswith("\n"):
            return int(text_of(log).split()[1])
        await asyncio.sleep(0.02)
    raise AssertionError("the engine told no child")


@pytest.fixture
async def wiped(tmp_path: Path) -> AsyncIterator[tuple[ProcessLauncher, LocalHost, Launched, int]]:
    """An engine with a child, whose folders are gone; and the child's pid."""
    host, launcher = LocalHost(), ProcessLauncher(str(tmp_path / "state"), grace_s=1)
    launched = await launcher.launch(host, LaunchPlan((sys.executable, "-c", ENGINE), port=30000), "E1-1")
    child = await child_in(launched.log_path)
    shutil.rmtree(tmp_path / "state")
    yield launcher, host, launched, child
    await launcher.stop(host, launched)


def lives(pid: int) -> bool:
    """A process, and no zombie."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


Wiped = tuple[ProcessLauncher, LocalHost, Launched, int]


async def test_it_is_known_alive_and_ended_with_all_its_children(wiped: Wiped) -> None:
    """The store has its pid, start time and boot; the folder is not needed for it."""
    launcher, host, launched, child = wiped
    assert (await launcher.liveness(host, launched)).alive
    proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert not lives(launched.pid)
    assert not lives(child)
    assert (await launcher.liveness(host, launched)).alive is False


async def test_its_log_is_an_empty_stream_and_no_error(wiped: Wiped) -> None:
    """The follower asks again later; silence of the log then has its limit like every other."""
    launcher, host, launched, _ = wiped
    stream = await launcher.follow(host, launched, 0)
    async with asyncio.timeout(10):
        assert [chunk async for chunk in stream.chunks()] == []
    await stream.close()


async def test_nothing_is_found_by_its_name_and_the_next_launch_works(wiped: Wiped, tmp_path: Path) -> None:
    """Whatever was wiped is made anew."""
    launcher, host, _, _ = wiped
    assert await launcher.find(host, "E1-1") is None
    again = await launcher.launch(host, LaunchPlan((sys.executable, "-c", ENGINE), port=30001), "E2-1")
    try:
        assert (await launcher.liveness(host, again)).alive
        assert os.listdir(tmp_path / "state" / "runs") == ["E2-1"]
    finally:
        await launcher.stop(host, again)


async def test_a_lease_that_was_wiped_is_taken_anew(tmp_path: Path) -> None:
    """The holder's next beat writes it again; meanwhile another may have come first, and the holder is told."""
    host, state = LocalHost(), tmp_path / "state"
    ours = HostLease(str(state), "a" * 32, "ann@laptop")
    await ours.take(host)
    shutil.rmtree(state)
    await ours.take(host)
    assert (state / "lease").exists()
