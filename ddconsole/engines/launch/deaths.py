"""What the host itself says of an engine's end: its kernel's OOM killer, and systemd of a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.engines.launch.logs import manager_notes
from ddconsole.engines.launch.scripts import PLAIN

if TYPE_CHECKING:
    from ddconsole.core.ports import Host, Launched

NOTES: Final = 6
"""Lines that are taken of each."""

_KERNEL: Final = r"""
since=$(($1 / $(getconf CLK_TCK 2>/dev/null || echo 100))) boot=$2
[ "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" = "$boot" ] || exit 0
# both print seconds since the boot in brackets; a login that may read neither sees nothing
{ dmesg 2>/dev/null || journalctl --quiet --dmesg --no-pager --output=short-monotonic 2>/dev/null; } |
  awk -v since="$since" '/[Oo]ut of memory: Killed process [0-9]/ {
    at = $0; sub(/^\[ */, "", at); if (at + 0 >= since) print }' | tail -n "$3"
exit 0
"""
"""Arguments: start ticks and boot id of the engine, how many lines. Processes that the kernel killed since then."""


async def death_notes(host: Host, launched: Launched) -> tuple[str, ...]:
    """Lines for the evidence of a death, each with who says it. Empty where the host tells nothing.

    Raises:
        UnreachableError: the connection is lost.
    """
    place = (str(launched.start_ticks), launched.boot_id, str(NOTES))
    done = await host.run(["sh", "-c", PLAIN + _KERNEL, "sh", *place], timeout=20)
    kernel = [f"kernel: {line}" for line in done.stdout.splitlines() if line.strip()]
    ends = [f"systemd: {line}" for line in await manager_notes(host, launched, NOTES) if "Started " not in line]
    return (*kernel, *ends)
