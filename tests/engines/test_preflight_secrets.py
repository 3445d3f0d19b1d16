"""What the profile gives the engine as environment reaches the questions of a preflight, and never a command line."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.engines.sglang.preflight import preflight

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.profile import Profile

VALUE = "hf_nobody-may-read-this in ps; `touch owned` $(touch owned) 'x'"

needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are read from /proc")


def command_lines() -> list[bytes]:
    """Of every process on this machine, as `ps` shows them."""
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((folder / "cmdline").read_bytes())
        except OSError:
            continue  # it has ended meanwhile
    return lines


def engine_that_waits(home: Path) -> Path:
    """A program whose `--help` notes its token, says that it runs, and ends when it is let go."""
    os.mkfifo(home / "running")
    os.mkfifo(home / "go on")
    path = home / "slow-engine"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] || exit 0\nprintf \'%s\' "$HF_TOKEN" >{home}/token\n'
        f"echo up >{home}/running\nread -r _ <'{home}/go on'\necho '  --port PORT'\n"
    )
    path.chmod(0o755)
    return path


@needs_proc
async def test_no_command_line_shows_the_engines_environment_and_its_help_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_profile: Callable[..., Profile]
) -> None:
    """While a slow `--help` runs, which takes SGLang 10 to 20 seconds, every process of the machine is looked at."""
    monkeypatch.setenv("HOME", str(tmp_path))
    engine = engine_that_waits(tmp_path)
    profile = make_profile({"command": [str(engine)], "env": {"HF_TOKEN": VALUE, "A": "1"}})
    host = LocalHost()
    asked = asyncio.create_task(preflight(profile, host, Config(Algorithm.OFF), 1))
    try:
        await asyncio.wait_for(asyncio.to_thread((tmp_path / "running").read_text), 20)
        seen = command_lines()
        assert any(os.fsencode(engine) in line for line in seen), "the question runs"
        assert [line for line in seen if b"nobody-may-read-this" in line] == []
        await asyncio.to_thread((tmp_path / "go on").write_text, "now\n")
        found = await asyncio.wait_for(asked, 20)
    finally:
        asked.cancel()
        await host.close()
    assert (tmp_path / "token").read_text() == VALUE
    assert not (tmp_path / "owned").exists()
    assert any(one.name == "flags" and one.text.startswith("1 ") for one in found.checked)


async def test_caches_that_the_environment_moves_are_looked_at_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_profile: Callable[..., Profile]
) -> None:
    """Every question runs under it: here HF_HOME says where the model is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    snapshot = tmp_path / "a disk" / "hub" / "models--some--name" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"x" * 10)
    env = {"HF_HOME": str(tmp_path / "a disk"), "HF_HUB_CACHE": ""}
    host = LocalHost()
    profile = make_profile({"command": [sys.executable], "model": "some/name", "env": env})
    try:
        found = await preflight(profile, host, Config(Algorithm.OFF), 1)
    finally:
        await host.close()
    (target,) = (one.text for one in found.checked if one.name == "target")
    assert "10 bytes" in target
