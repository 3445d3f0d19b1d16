"""`.ci/run` installs what these tests look for, so that on a plain Debian they run instead of skipping in silence."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from realhost.box import NEEDED

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
TOOLS = ("unshare", "setpriv")


def run_in_a_machine_with(folder: Path, *tools: str) -> list[str]:
    """Run a copy of the script where PATH has only `tools`; returns what it called of apt-get and make."""
    (folder / ".ci").mkdir()
    script = folder / ".ci" / "run"
    shutil.copy(SCRIPT, script)
    bin_ = folder / "bin"
    bin_.mkdir()
    (bin_ / "dirname").symlink_to(shutil.which("dirname") or "/usr/bin/dirname")
    for name, text in {"id": "echo 0", "apt-get": f'echo "apt-get $*" >>{folder}/called',
                       "make": f'echo "make $*" >>{folder}/called', **dict.fromkeys(tools, ":")}.items():  # fmt: skip
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    bash = shutil.which("bash") or "/bin/bash"
    subprocess.run([bash, str(script)], env={"PATH": str(bin_)}, check=True, capture_output=True, timeout=20)
    return (folder / "called").read_text().splitlines()


@pytest.mark.parametrize("path", NEEDED)
def test_every_file_that_is_needed_is_looked_for(path: str) -> None:
    """By the path that the tests themselves look at."""
    assert f"[ -x {path} ] ||" in SCRIPT.read_text()


def test_what_is_missing_is_installed_at_once_and_the_suite_goes_on(tmp_path: Path) -> None:
    """On a machine that has none of the tools."""
    update, install, *rest = run_in_a_machine_with(tmp_path)
    assert update == "apt-get update -qq"
    assert {"openssh-client", "bubblewrap", "fish", "util-linux"} <= set(install.split())
    assert rest[:2] == ["make check", "make test"]


def test_where_all_is_there_nothing_is_installed(tmp_path: Path) -> None:
    """No look at a package registry, no second to wait."""
    if not all(Path(path).exists() for path in NEEDED):
        pytest.skip("this machine lacks a part of a systemd")
    called = run_in_a_machine_with(tmp_path, "sshd", "ssh", "fish", "tcsh", "zsh", "bwrap", *TOOLS)
    assert called[:2] == ["make check", "make test"]
    assert all(line.startswith("make ") for line in called)
