"""Children that lost their token by calling themselves by another name: a stop finds them all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import Launched, LaunchPlan
from ddconsole.engines.launch.process import ProcessLauncher

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the GPU host has /proc")

Launch = Callable[[str], Awaitable[Launched]]


@pytest.fixture
def launcher() -> ProcessLauncher:
    """One with a short grace."""
    return ProcessLauncher("~/state", grace_s=1)


@pytest.fixture
async def launch(host: LocalHost, launcher: ProcessLauncher) -> AsyncIterator[Launch]:
    """Starts a root with one child, here or away; ends at the end whatever the test left."""
    started: list[Launched] = []

    async def start(place: str) -> Launched:
        started.append(await launcher.launch(host, LaunchPlan((sys.executable, "-c", RENAMED, place)), "E1-1"))
        await until(lambda: "renamed" in Path(started[-1].log_path).read_text(), "the child")
        return started[-1]

    yield start
    for launched in started:
        await launcher.stop(host, launched)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, at most ten seconds."""
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never came: {what}")


def child_of(launched: Launched) -> str:
    """The root's only child."""
    (child,) = Path(f"/proc/{launched.pid}/task/{launched.pid}/children").read_text().split()
    return child


def environment_of(pid: str) -> str:
    """What a process was started with, as far as it has not been written over."""
    return Path(f"/proc/{pid}/environ").read_text()


def lives(pid: str) -> bool:
    """Whether a process is there, and no zombie that nobody has waited for."""
    stat_of = Path(f"/proc/{pid}/stat")
    return stat_of.exists() and stat_of.read_text().rpartition(") ")[2][0] not in "ZX"


RENAMED = """
import os, sys, time
if os.fork() == 0:
    if sys.argv[1] == "away":
        os.setsid()
    os.execve("/bin/sh", ["sh", "-c", "trap '' TERM; echo renamed; while :; do sleep 0.1; done"], {})
time.sleep(600)
"""
"""A root whose child has no environment any more, as SGLang's schedulers by setproctitle; `away`: nor its session."""


@pytest.mark.parametrize("place", ["here", "away"])
async def test_a_child_that_wrote_its_name_over_its_environment_is_ended_too(
    host: LocalHost, launch: Launch, launcher: ProcessLauncher, place: str
) -> None:
    """No token tells it: its session does, and its parent where it left that."""
    launched = await launch(place)
    child = child_of(launched)
    assert launched.token not in environment_of(child)
    proof = await launcher.stop(host, launched)
    assert proof.forced
    assert proof.remains == ()
    assert not lives(child)


async def test_a_renamed_child_outlives_its_root_and_is_ended_by_its_session(
    host: LocalHost, launch: Launch, launcher: ProcessLauncher
) -> None:
    """sglang#23627: schedulers that belong to process 1 by now, and hold the cards."""
    launched = await launch("here")
    child = child_of(launched)
    os.kill(launched.pid, signal.SIGKILL)
    await until(lambda: not lives(str(launched.pid)), "the root's end")
    assert (await launcher.stop(host, launched)).remains == ()
    assert not lives(child)
