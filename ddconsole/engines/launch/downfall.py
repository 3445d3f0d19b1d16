"""A death that took more down than the engine: the host was booted anew, or the engine's unit is gone from systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import Failure
from ddconsole.core.retries import HOST_REBOOTED, SERVICE_VANISHED
from ddconsole.engines.launch.manager import MANAGER
from ddconsole.engines.launch.record import run_dir
from ddconsole.engines.launch.scripts import PLAIN, PRELUDE

if TYPE_CHECKING:
    from ddconsole.core.ports import Host, Launched

_STANDS: Final = (
    PLAIN
    + PRELUDE
    + "run=$1 scope=$2 unit=$3\n"
    + MANAGER
    + r"""
printf 'boot\t%s\n' "$(boot_id)"
if [ -n "$unit" ] && [ ! -s "$run/exit" ] && ! is_ours; then echo gone; fi
"""
)
"""Arguments: run folder, scope, unit ("" for none). An end that systemd saw is in the file `exit`."""


async def downfall(host: Host, launched: Launched) -> Failure | None:
    """What a launch whose process is dead took down with it; None when only the engine itself ended.

    Raises:
        UnreachableError: the connection is lost.
    """
    place = (run_dir(launched), launched.scope or "", launched.unit or "")
    done = await host.run(["sh", "-c", _STANDS, "sh", *place])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    boots = [row[1] for row in rows if row[0] == "boot" and len(row) == 2]
    if boots and launched.boot_id not in ("", "-") and boots[0] not in ("", "-", launched.boot_id):
        return Failure(
            HOST_REBOOTED,
            "the host went down: it was booted anew",
            (f"boot {launched.boot_id} when the engine was started, boot {boots[0]} now",),
            "See `journalctl -b -1` and `dmesg` on the host for why: power, heat, a driver, or somebody's reboot.",
        )
    if ["gone"] in rows:
        return Failure(
            SERVICE_VANISHED,
            f"the engine's unit {launched.unit} is gone, and systemd recorded no end of it",
            (f"{launched.unit}: another invocation than the one that was started, or none",),
            "See `journalctl` on the host: a manager that was ended or restarted takes its units with it.",
        )
    return None
