"""What the host itself says of an engine's end: its kernel's OOM killer, systemd of a unit, and a full disk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ddconsole.engines.launch.logs import manager_notes
from ddconsole.engines.launch.record import run_dir
from ddconsole.engines.launch.scripts import PLAIN, PRELUDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.errors import Failure
    from ddconsole.core.ports import Host, Launched

NOTES: Final = 6
"""Lines that are taken of each."""

DISK_FULL: Final = "disk-full"
"""Cause of what a full disk on the host ended or forbade; preflight and an engine's log name it so too."""

NO_SPACE: Final = "No space left on device"
"""The system's own words for it."""

ROOM_BYTES: Final = 65536
"""With less there is no launch, and no log worth reading."""

_DISK: Final = "disk\t"

_ROOM: Final = r"""
full() {
  probe=$1/room.$$
  said=$(dd if=/dev/zero of="$probe" bs="$2" count=1 2>&1 >/dev/null)
  rm -f "$probe"
  case $said in *"No space left on device"*) printf 'disk\tNo space left on device: %s\n' "$1" ;; esac
}
"""
"""Whether $2 bytes can still be written in folder $1; a shell's own printf does not say why it could not."""

_KERNEL: Final = r"""
since=$(($1 / $(getconf CLK_TCK 2>/dev/null || echo 100))) boot=$2
[ "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" = "$boot" ] || exit 0
# both print seconds since the boot in brackets; a login that may read neither sees nothing
{ dmesg 2>/dev/null || journalctl --quiet --dmesg --no-pager --output=short-monotonic 2>/dev/null; } |
  awk -v since="$since" '/[Oo]ut of memory: Killed process [0-9]/ {
    at = $0; sub(/^\[ */, "", at); if (at + 0 >= since) print }' | tail -n "$3"
full "$4" "$5"
exit 0
"""
"""Arguments: start ticks and boot id of the engine, how many lines; its run's folder, and how much should fit there.

Processes that the kernel killed since then, and a line `disk` where the disk is full.
"""


async def death_notes(host: Host, launched: Launched) -> tuple[str, ...]:
    """Lines for the evidence of a death, each with who says it. Empty where the host tells nothing.

    Raises:
        UnreachableError: the connection is lost.
    """
    place = (str(launched.start_ticks), launched.boot_id, str(NOTES), run_dir(launched), str(ROOM_BYTES))
    done = await host.run(["sh", "-c", PLAIN + _ROOM + _KERNEL, "sh", *place], timeout=20)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    kernel = [f"kernel: {line}" for line in lines if not line.startswith(_DISK)]
    disk = _full(lines)
    ends = [f"systemd: {line}" for line in await manager_notes(host, launched, NOTES) if "Started " not in line]
    return (*kernel, *ends, *disk)


async def named_by_disk(host: Host, failure: Failure, state_dir: str) -> Failure:
    """A failure on the host, named by its full disk when that is what its words say, or what a look finds now.

    Raises:
        UnreachableError: the connection is lost.
    """
    full: tuple[str, ...] = ()
    if not any(NO_SPACE in text for text in (failure.what, *failure.evidence)):
        script = PLAIN + PRELUDE + _ROOM + 'full "$(expand "$1")" "$2"'
        full = _full((await host.run(["sh", "-c", script, "sh", state_dir, str(ROOM_BYTES)])).stdout.splitlines())
        if not full:
            return failure
    advice = f"Free space on the host, where launcher.state_dir is ({state_dir}); then retry."
    return replace(failure, cause=DISK_FULL, evidence=(*failure.evidence, *full), advice=advice)


def _full(lines: Sequence[str]) -> tuple[str, ...]:
    """What `full` said, as evidence."""
    return tuple(f"host: {line.removeprefix(_DISK)}" for line in lines if line.startswith(_DISK))
