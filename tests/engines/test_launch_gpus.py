"""The proof by nvidia-smi, with one that is told what to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import LaunchPlan
from ddconsole.engines.launch import base
from ddconsole.engines.launch.gpus import prove_given_back, read_levels
from ddconsole.engines.launch.process import ProcessLauncher

SMI = """#!/bin/sh
echo call >>"{folder}/calls"
case $1 in
  --query-gpu=index,uuid,memory.used) cat "{folder}/cards" ;;
  --query-compute-apps=*) cat "{folder}/apps" 2>/dev/null || echo "No running processes found" ;;
  *) echo "unexpected: $*" >&2; exit 2 ;;
esac
"""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `cards` and `apps` an nvidia-smi on the PATH prints."""
    folder = tmp_path / "smi"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(SMI.format(folder=folder))
    program.chmod(0o755)
    (folder / "cards").write_text("0, GPU-a, 3\n1, GPU-b, 3\n")
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


async def test_a_stop_proves_that_memory_is_back_or_names_who_holds_it(
    smi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The level is that of before the launch, kept on the host."""
    host, launcher = LocalHost(), ProcessLauncher("~/state", grace_s=1)
    launched = await launcher.launch(host, LaunchPlan(("sleep", "600")), "E1-1")
    proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert "GPU memory is as before the launch on 2 cards" in proof.proved
    (smi / "cards").write_text("0, GPU-a, 3\n1, GPU-b, 61003\n")
    (smi / "apps").write_text(f"{1}, GPU-b, 61000\n")

    async def impatient(host: LocalHost, run: str) -> object:
        return await prove_given_back(host, run, back_s=0)

    monkeypatch.setattr(base, "prove_given_back", impatient)
    (remains,) = (await launcher.stop(host, launched)).remains
    assert remains.startswith("GPU 1: 61,000 MiB more than before the launch, held by pid 1 (")
    await host.close()


async def test_it_waits_until_the_driver_has_given_it_back(smi: Path) -> None:
    """An ended process's memory returns after a while."""
    host = LocalHost()
    run = smi / "run"
    run.mkdir()
    (run / "gpus").write_text(await read_levels(host))
    (smi / "cards").write_text("0, GPU-a, 9000\n1, GPU-b, 3\n")
    program = (smi / "nvidia-smi").read_text()
    third = f'[ "$(wc -l <"{smi}/calls")" -lt 9 ] || printf "0, GPU-a, 3\\n1, GPU-b, 3\\n" >"{smi}/cards"\n'
    (smi / "nvidia-smi").write_text(program.replace("case $1", third + "case $1"))
    assert await prove_given_back(host, str(run), back_s=10, poll_s=0.01) == ((), 2)
    assert len((smi / "calls").read_text().split()) >= 9
    await host.close()


async def test_without_nvidia_smi_nothing_is_proved_and_nothing_said(smi: Path, tmp_path: Path) -> None:
    """Neither a remainder nor a proof."""
    (smi / "nvidia-smi").unlink()
    host, launcher = LocalHost(), ProcessLauncher("~/state", grace_s=1)
    launched = await launcher.launch(host, LaunchPlan(("sleep", "600")), "E1-1")
    assert not (tmp_path / "state/runs/E1-1/gpus").exists()
    proof = await launcher.stop(host, launched)
    assert proof.remains == ()
    assert not any("GPU" in line for line in proof.proved)
    await host.close()


async def test_an_nvidia_smi_that_fails_is_no_level(smi: Path) -> None:
    """A driver mismatch prints its words where rows should be."""
    (smi / "cards").write_text("")
    host = LocalHost()
    assert await read_levels(host) == ""
    await host.close()
