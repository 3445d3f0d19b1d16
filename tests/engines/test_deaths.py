"""What the host's kernel says of an engine's end, with a dmesg that is told what to say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import Launched
from ddconsole.engines.launch.deaths import death_notes

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
pytestmark = pytest.mark.skipif(not BOOT_ID.exists(), reason="the GPU host has /proc")

KILLED = "[{at:>12.6f}] Out of memory: Killed process 7310 (python) total-vm:9kB, anon-rss:8kB"
OTHER = "[{at:>12.6f}] NVRM: Xid (PCI:0000:c1:00): 79, pid=4821, GPU has fallen off the bus."
STARTED_S = 100


def launched(boot_id: str | None = None) -> Launched:
    """An engine that was started 100 seconds after the boot."""
    ticks = STARTED_S * os.sysconf("SC_CLK_TCK")
    here = BOOT_ID.read_text().strip()
    return Launched("process", 4, 4, ticks, boot_id or here, "token", "/x/engine.log", "/x", 1)


def program(folder: Path, name: str, text: str) -> None:
    """A program of that name on the PATH."""
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


async def notes(of: Launched) -> tuple[str, ...]:
    """What this machine says."""
    host = LocalHost()
    try:
        return await death_notes(host, of)
    finally:
        await host.close()


async def test_only_kills_since_the_engines_start_are_its_own(path: Path) -> None:
    """One of an hour before was another's; other lines of the kernel are none."""
    lines = [KILLED.format(at=42.5), KILLED.format(at=100.25), OTHER.format(at=140.0)]
    program(path, "dmesg", "#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    assert await notes(launched()) == (f"kernel: {lines[1]}",)
    assert await notes(launched("another-boot")) == ()


async def test_where_dmesg_may_not_be_read_the_journal_may(path: Path) -> None:
    """Seconds since the boot are in its lines too."""
    program(path, "dmesg", "#!/bin/sh\necho dmesg: read kernel buffer failed: Operation not permitted >&2\nexit 1\n")
    line = KILLED.format(at=140.0).replace("] Out", "] ct200 kernel: Out")
    program(path, "journalctl", f"#!/bin/sh\ncat <<'END'\n{line}\nEND\n")
    assert await notes(launched()) == (f"kernel: {line}",)


async def test_a_host_that_tells_nothing_has_no_notes(path: Path) -> None:
    """Neither of the two, or no rights."""
    for name in ("dmesg", "journalctl"):
        program(path, name, "#!/bin/sh\necho no >&2\nexit 1\n")
    assert await notes(launched()) == ()
