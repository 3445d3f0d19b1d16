"""What launches leave on the host is bounded: the newest run folders stay, with their logs; older ones are removed.

A folder whose engine still lives is never touched, kept ones included, nor is anything that is no run folder of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.engines.launch.record import NAME
from ddconsole.engines.launch.scripts import PLAIN, PRELUDE

if TYPE_CHECKING:
    from ddconsole.core.ports import Host

RUNS_KEPT: Final = 100
"""Ended runs whose folders stay on the host."""

KILOBYTES_KEPT: Final = 4 * 1024 * 1024
"""Of all their folders together, newest first; one alone may be larger."""

_PRUNE: Final = (
    PLAIN
    + PRELUDE
    + r"""
cd "$(expand "$1")/runs" 2>/dev/null || exit 0
ls -t | {
  count=0 total=0
  while read -r name; do
    case $name in -* | .* | *[!A-Za-z0-9._-]*) continue ;; esac
    if [ ! -f "$name/launch" ] || [ -L "$name" ]; then continue; fi
    pid=
    if [ -s "$name/pid" ]; then read -r pid ticks boot <"$name/pid"; fi
    if [ -n "$pid" ] && alive "$pid" "$ticks" "$boot"; then continue; fi
    size=$(du -sk "$name" 2>/dev/null | cut -f1)
    count=$((count + 1)) total=$((total + ${size:-0}))
    if [ "$count" -eq 1 ]; then continue; fi
    if [ "$count" -le "$2" ] && [ "$total" -le "$3" ]; then continue; fi
    total=$((total - ${size:-0}))
    rm -rf "./$name" && printf 'removed\t%s\n' "$name"
  done
}
"""
)
"""Arguments: state folder, how many runs, how many kilobytes."""


async def prune_runs(
    host: Host, state_dir: str, *, runs: int = RUNS_KEPT, kilobytes: int = KILOBYTES_KEPT
) -> tuple[str, ...]:
    """Remove the oldest ended runs of `state_dir` beyond the bounds; their names.

    Raises:
        HostError, UnreachableError: the host could not be asked.
    """
    done = await host.run(["sh", "-c", _PRUNE, "sh", state_dir, str(runs), str(kilobytes)], timeout=60)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return tuple(row[1] for row in rows if row[0] == "removed" and len(row) == 2 and NAME.fullmatch(row[1]))
