"""An engine's log on the host: its file, or the journal where the engine writes there or the file is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.engines.launch.record import run_dir
from ddconsole.engines.launch.scripts import PLAIN

if TYPE_CHECKING:
    from ddconsole.core.ports import ByteStream, Host, Launched

_JOURNAL: Final = r"""
log=$1 amount=$2 run=$3
journal() { exec journalctl --quiet --output=cat --no-pager "$@" "_SYSTEMD_INVOCATION_ID=$(cat "$run/invocation")"; }
written_there() { [ ! -f "$log" ] && [ -s "$run/invocation" ]; }
"""
"""What the unit's processes wrote, by the invocation: systemd's own lines about the unit have another field."""

_FOLLOW: Final = r"""
skip() {
  dd bs=4096 count=$(($1 / 4096)) iflag=fullblock of=/dev/null 2>/dev/null
  dd bs=1 count=$(($1 % 4096)) of=/dev/null 2>/dev/null
}
if written_there; then journal --lines=all --follow | { skip "$amount"; exec cat; }; exit; fi
exec tail -c "+$((amount + 1))" -f "$log"
"""
"""Arguments: log file, offset in bytes, run folder."""

_LAST: Final = r"""
if written_there; then journal --lines="$amount"; fi
exec tail -n "$amount" "$log"
"""
"""Arguments: log file, how many lines, run folder."""


_NOTES: Final = r"""
[ -s "$run/invocation" ] || exit 0
id=$(cat "$run/invocation")
set -- "INVOCATION_ID=$id" + "USER_INVOCATION_ID=$id"
exec journalctl --quiet --output=cat --no-pager --lines="$amount" "$@" 2>/dev/null
"""
"""Arguments as for _LAST. What a system's manager and a user's say of the same unit have fields of different names."""


async def follow_log(host: Host, launched: Launched, offset: int) -> ByteStream:
    """The log's bytes from `offset` on, as they are written."""
    place = (launched.log_path, str(offset), run_dir(launched))
    return await host.stream(["sh", "-c", PLAIN + _JOURNAL + _FOLLOW, "sh", *place])


async def last_lines(host: Host, launched: Launched, lines: int) -> str:
    """The log's last lines; empty when there is no log any more."""
    place = (launched.log_path, str(lines), run_dir(launched))
    return (await host.run(["sh", "-c", PLAIN + _JOURNAL + _LAST, "sh", *place])).stdout


async def manager_notes(host: Host, launched: Launched, lines: int) -> tuple[str, ...]:
    """What systemd itself said last of the engine's unit: how it ended, and by the OOM killer if so.

    Empty for an engine that is no unit, and for a login that may not read the journal.
    """
    if launched.unit is None:
        return ()
    place = (launched.log_path, str(lines), run_dir(launched))
    done = await host.run(["sh", "-c", PLAIN + _JOURNAL + _NOTES, "sh", *place])
    return tuple(line for line in done.stdout.splitlines() if line.strip())
