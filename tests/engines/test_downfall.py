"""What a death took down with it, asked of a real host: this one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.ports import Launched
from ddconsole.core.retries import HOST_REBOOTED, SERVICE_VANISHED
from ddconsole.engines.launch.downfall import downfall

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

pytestmark = pytest.mark.skipif(not BOOT_ID.exists(), reason="no /proc here")


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    run = tmp_path / "runs" / "x"
    run.mkdir(parents=True)
    boot = BOOT_ID.read_text().strip()
    return Launched("process", 2**22 + 1, 2**22 + 1, 1, boot, "token", f"{run}/engine.log", str(tmp_path), 30000)


async def test_an_engine_that_only_died_took_nothing_down(launched: Launched) -> None:
    """The same boot, and no unit."""
    assert await downfall(LocalHost(), launched) is None


async def test_another_boot_id_means_that_the_host_went_down(launched: Launched) -> None:
    """Both ids are the evidence."""
    failure = await downfall(LocalHost(), replace(launched, boot_id="0000-before"))
    assert failure is not None
    assert failure.cause == HOST_REBOOTED
    assert "0000-before" in failure.evidence[0]


async def test_a_launch_whose_boot_is_not_known_is_not_judged_by_it(launched: Launched) -> None:
    """macOS has no boot id."""
    assert await downfall(LocalHost(), replace(launched, boot_id="-")) is None


@pytest.mark.parametrize("ended", [True, False])
async def test_a_unit_counts_as_vanished_only_without_a_recorded_end(launched: Launched, ended: bool) -> None:
    """systemd's own word on the end, in the file `exit`, makes it a plain death."""
    unit = replace(launched, unit="ddconsole-nothing-of-that-name.service", scope="user", launcher="systemd")
    if ended:
        (Path(unit.log_path).parent / "exit").write_text("143\n")
    failure = await downfall(LocalHost(), unit)
    assert (failure is None) == ended
    assert ended or (failure is not None and failure.cause == SERVICE_VANISHED)
