"""Signs of life in silent stretches: what the engine's processes read, and what the cards hold."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.clock import VirtualClock

from ddconsole.adapters.local import LocalHost
from ddconsole.core.errors import UnreachableError
from ddconsole.core.ports import Completed, Launched
from ddconsole.runner.activity import GROWN_BYTES, LOOK_EVERY_S, Activity, io_of

LAUNCHED = Launched("process", 42, 42, 1, "b", "t0ken", "/l", "/s", 30000)
READER = """
import os, sys, time
if os.fork():
    os.wait()
else:
    data = open(sys.argv[1], "rb").read()
    open(sys.argv[1] + ".copy", "wb").write(data[:2_000_000])
    print("read", len(data), flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the GPU host has /proc with I/O counters")
async def test_what_children_read_and_write_is_counted(tmp_path: Path) -> None:
    """Eight schedulers load, not the root: all processes of the launch's session are added up."""
    file = tmp_path / "shard"
    file.write_bytes(os.urandom(3_000_000))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", READER, str(file), start_new_session=True,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    host = LocalHost()
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"read 3000000\n"
        io = await io_of(host, Launched("process", process.pid, process.pid, 1, "b", "t", "/l", "/s", 1))
        assert io is not None
        assert 3_000_000 <= io.read < 300_000_000
        assert io.written is not None
        assert 2_000_000 <= io.written < 100_000_000
        assert await io_of(host, Launched("process", 2**22 + 1, 1, 1, "b", "t", "/l", "/s", 1)) is None
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await host.close()


class Host:
    """Answers with the counts that the test lays down; None is a lost line."""

    def __init__(self, *counts: int | None) -> None:
        self._counts = list(counts)
        self.asked = 0

    async def run(self, argv: Any, *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        self.asked += 1
        count = self._counts.pop(0)
        if count is None:
            raise UnreachableError("cut")
        return Completed(0, f"0 {count}\n" if count else "")


class Session:
    """A session over one host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def host(self) -> Host:
        return self._host


def activity_of(host: Host, clock: VirtualClock, gpu: list[int | None]) -> Activity:
    session: Any = Session(host)
    return Activity(session, LAUNCHED, clock, lambda: gpu[-1])


async def test_the_host_is_asked_now_and_then_and_the_sum_never_falls() -> None:
    """A process that ended takes its count with it; a lost line or a host without /proc proves nothing."""
    clock = VirtualClock()
    host = Host(1_000, 6_000, None, 2_000, 0)
    activity = activity_of(host, clock, [None])
    seen = []
    for _ in range(5):
        await activity.look()
        await activity.look()
        seen.append(activity.read)
        clock.seconds += LOOK_EVERY_S
    assert seen == [1_000, 6_000, 6_000, 6_000, 6_000]
    assert host.asked == 5
    assert activity.per_s == pytest.approx(5_000 / 15)


def test_gpu_memory_is_counted_from_the_launch_on() -> None:
    """What was there before is not the engine's."""
    gpu: list[int | None] = [4_096]
    activity = activity_of(Host(), VirtualClock(), gpu)
    gpu.append(4_096 + 10_240)
    assert activity.grown_mib == 10_240
    assert activity.words() == "bytes read: not known; GPU memory +10.0 GiB since the launch"


def test_telemetry_that_comes_late_counts_from_its_first_sample() -> None:
    """Nothing is made up."""
    gpu: list[int | None] = [None]
    activity = activity_of(Host(), VirtualClock(), gpu)
    assert activity.grown_mib is None
    gpu.append(500)
    assert activity.grown_mib == 0
    gpu.append(700)
    assert activity.grown_mib == 200


class Writer(Host):
    """Answers with what was written so far; nothing was read."""

    async def run(self, argv: Any, *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        return Completed(0, f"0 0 0 {self._counts.pop(0)}\n")


async def test_files_that_grow_are_a_sign_of_life_and_a_log_is_none() -> None:
    """A download writes many megabytes; lines of a log that a hung engine still writes are kilobytes."""
    clock = VirtualClock()
    first, log, much = 5_000_000_000, 5_000_400_000, 5_000_000_000 + GROWN_BYTES
    activity = activity_of(Writer(first, log, much, much), clock, [None])
    grew = []
    for _ in range(4):
        await activity.look()
        grew.append(activity.grew_at)
        clock.seconds += LOOK_EVERY_S
    assert grew == [None, None, 1010.0, 1010.0]
    assert activity.grows
    assert "5.0 GB written" in activity.words()
    clock.seconds += 30.0
    assert not activity.grows
