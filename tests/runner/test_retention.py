"""Run folders on the host are bounded; a living engine's is never touched, and nothing that is not ours."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from fakes.scripted import Script
from runner.world import Opened, tree

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import LaunchPlan
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.launch.retention import KILOBYTES_KEPT, RUNS_KEPT, prune_runs


def run_folder(state: Path, number: int, kilobytes: int = 1) -> Path:
    """An ended run; a higher number is a newer one."""
    folder = state / "runs" / f"demo-E{number}-1-abcd"
    folder.mkdir(parents=True)
    (folder / "launch").write_text("token 30000\n")
    (folder / "pid").write_text(f"{2**22 + 1} 5 -\n")
    (folder / "exit").write_text("0\n")
    (folder / "engine.log").write_bytes(os.urandom(kilobytes * 1024))
    os.utime(folder, (1_000_000 + number, 1_000_000 + number))
    return folder


def left(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "runs").iterdir())


async def test_the_oldest_beyond_the_count_are_removed(tmp_path: Path) -> None:
    """Newest first."""
    for number in range(1, 7):
        run_folder(tmp_path, number)
    removed = await prune_runs(LocalHost(), str(tmp_path), runs=4)
    assert sorted(removed) == ["demo-E1-1-abcd", "demo-E2-1-abcd"]
    assert left(tmp_path) == [f"demo-E{number}-1-abcd" for number in range(3, 7)]
    assert await prune_runs(LocalHost(), str(tmp_path), runs=4) == ()


async def test_logs_beyond_the_size_are_removed_and_the_newest_stays_whatever_its_size(tmp_path: Path) -> None:
    """The last run's log is what somebody wants to read."""
    for number in range(1, 5):
        run_folder(tmp_path, number, kilobytes=100)
    await prune_runs(LocalHost(), str(tmp_path), kilobytes=250)
    assert left(tmp_path) == ["demo-E3-1-abcd", "demo-E4-1-abcd"]
    await prune_runs(LocalHost(), str(tmp_path), kilobytes=10)
    assert left(tmp_path) == ["demo-E4-1-abcd"]


async def test_what_is_no_ended_run_of_ours_is_left_alone(tmp_path: Path) -> None:
    """A stranger's folder, a link, odd names; and an engine that lives, however old."""
    launcher, host = ProcessLauncher(str(tmp_path), grace_s=1), LocalHost()
    plan = LaunchPlan((sys.executable, "-c", "import time; time.sleep(600)"), port=30000)
    launched = await launcher.launch(host, plan, "demo-E0-1-old")
    try:
        os.utime(tmp_path / "runs" / "demo-E0-1-old", (1, 1))
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / "launch").write_text("x")
        (tmp_path / "runs" / "link").symlink_to(tmp_path / "precious")
        (tmp_path / "runs" / "strangers").mkdir()
        (tmp_path / "runs" / "-rf $(reboot)").mkdir()
        for number in range(1, 5):
            run_folder(tmp_path, number)
        removed = await prune_runs(host, str(tmp_path), runs=0, kilobytes=0)
        assert sorted(removed) == ["demo-E1-1-abcd", "demo-E2-1-abcd", "demo-E3-1-abcd"]
        assert set(left(tmp_path)) == {"demo-E0-1-old", "link", "strangers", "-rf $(reboot)", "demo-E4-1-abcd"}
        assert (tmp_path / "precious" / "launch").exists()
        assert (await launcher.liveness(host, launched)).alive
    finally:
        await launcher.stop(host, launched)


async def test_a_host_without_any_run_has_nothing_to_remove(tmp_path: Path) -> None:
    """Nor is anything made."""
    assert await prune_runs(LocalHost(), str(tmp_path / "none")) == ()
    assert not (tmp_path / "none").exists()


async def test_every_launch_tidies_up(world: Opened) -> None:
    """A run of a week needs no start of its own for it."""
    asked: list[tuple[str, str]] = []
    async with world(Script()) as w:
        host = await w.console._session.host()
        plain = host.run

        async def run(argv: list[str], **more: object) -> object:
            if "rm -rf" in argv[2]:
                asked.append((argv[5], argv[6]))
            return await plain(argv, **more)

        host.run = run  # type: ignore[method-assign, assignment]
        await w.add(tree(12), tree(16))
        await asyncio.wait_for(w.drain(), 30)
    assert asked == [(str(RUNS_KEPT), str(KILOBYTES_KEPT))] * 2
