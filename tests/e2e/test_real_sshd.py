"""A whole run through OpenSSH's own sshd, its line cut while the weights load and again in a pass."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fakes.command import Cli, wait_for
from real_engines.sshd import WHERE, Sshd
from real_engines.world import Run

from ddconsole.demo.home import command_environment, prepare_home

pytestmark = [
    pytest.mark.xdist_group("lines"),
    pytest.mark.skipif(
        shutil.which("sshd", path=WHERE) is None, reason="OpenSSH's sshd is not installed (Debian: openssh-server)"
    ),
]

ALIAS = "toyhost"
SPEC = "add b=8 B=12 K=6 W=2048 passes=throughput"


class ToyHost:
    """A home for the command, and another one that is the host's: there stand the toy engine and its models."""

    def __init__(self, folder: Path) -> None:
        self.cli = Cli(folder / "mine")
        self.run: Run | None = None
        self.home = folder / "host"
        self.cli.home.mkdir()
        prepare_home(self.home)
        env = command_environment(self.home) | {"DDCONSOLE_DEMO_SPEED": "4"}
        self.sshd = Sshd(self.cli.home, ALIAS, env)
        self.cli.env["PATH"] = f"{self.sshd.programs}:{self.cli.env['PATH']}"
        self.cli.profile(SPEC, scale=0.3)
        profile = self.cli.home / "dd" / "config" / "profiles" / "e2e.yaml"
        text = profile.read_text().replace("host: demo", f"host: {ALIAS}")
        profile.write_text(text.replace("models/", f"{self.home}/models/"))

    def start(self) -> Run:
        """The queue, in a process of its own."""
        self.run = Run(self.cli, "e2e", "--accept-new")
        return self.run

    def end(self) -> None:
        """End whatever a failed test has left: the run, the engine, the connections."""
        if self.run is not None:
            self.run.kill()
        if self.engines() and alive(self):
            self.cli.run("engine", "e2e", "stop")
        self.sshd.stop()

    def cut(self, run: Run) -> None:
        """Cut the line, and wait until it stands again."""
        assert self.sshd.cut(), "there was no connection to cut"
        run.until("the cut is seen", seconds=60, kind="connection", state="lost")
        run.until("the line stands again", seconds=60, kind="connection", state="connected")

    def engines(self) -> list[Path]:
        """Folders of the launches that the host has seen."""
        return sorted(self.home.glob(".ddconsole/runs/*"))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ToyHost]:
    """A host behind a real sshd; nothing of it is left afterwards."""
    toy = ToyHost(tmp_path)
    yield toy
    toy.end()


def test_a_line_that_is_cut_in_loading_and_in_a_pass_costs_the_pass_and_nothing_else(host: ToyHost) -> None:
    """One engine, loaded once; its bar never falls back; the pass is measured again from its start; one result."""
    run = host.start()
    run.until("the weights come in", seconds=60, kind="phase", phase="load_target", state="started")
    host.cut(run)
    run.until("it is ready", seconds=90, kind="ready", kept=False)
    run.until("its first answer", seconds=60, kind="request", name="throughput")
    host.cut(run)
    run.until("it is measured again", seconds=60, kind="pass_started", name="throughput")
    assert run.end() == 0, run.said

    done = [one["target"]["done"] for one in run.of("boot_progress") if one["target"]]
    assert all(before <= after for before, after in pairwise(done)), done
    assert [one["phase"] for one in run.of("phase", phase="load_target", state="done")] == ["load_target"]
    assert any("measured again from its start" in one["text"] for one in run.of("warning"))
    (finished,) = run.of("experiment_finished")
    assert (finished["outcome"], finished["attempt"]) == ("passed", 1)
    (passed,) = run.of("pass_finished")
    assert (passed["summary"]["requests"], passed["summary"]["failed"]) == (3, 0)
    assert len(host.engines()) == 1, "it was not launched again"
    wait_for(lambda: not alive(host), what="the engine is gone")


def alive(host: ToyHost) -> bool:
    """Whether the engine's root process lives."""
    pid = (host.engines()[0] / "pid").read_text().split()[0]
    return Path(f"/proc/{pid}").exists()
