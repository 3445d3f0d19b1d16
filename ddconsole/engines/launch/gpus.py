"""GPU memory before a launch and after a stop: the proof that nothing of an engine is left on the cards."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.core.gpu_levels import LEVEL_FIELDS, not_given_back, parse_levels
from ddconsole.engines.launch.scripts import PLAIN

if TYPE_CHECKING:
    from ddconsole.core.ports import Host

BACK_S: Final = 30.0
"""Seconds in which the driver has to give an ended engine's memory back; on large hosts it takes its time."""

POLL_S: Final = 1.0
READ_S: Final = 20.0
"""nvidia-smi without its persistence daemon takes seconds for each card."""

_LEVELS: Final = (
    r"""
if ! command -v nvidia-smi >/dev/null 2>&1; then exit 0; fi
nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits | sed 's/^/card	/'
me=$(id -u)
nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits |
  while IFS=, read -r pid uuid memory; do
    case $pid in "" | *[!0-9]*) continue ;; esac
    # a pid that cannot be seen here may be ours in another namespace: only another user's is provably not
    ours=yes user=
    set -- $(ls -ldn "/proc/$pid" 2>/dev/null)
    if [ -n "$3" ]; then user=$(id -nu "$3" 2>/dev/null || echo "uid $3"); if [ "$3" != "$me" ]; then ours=no; fi; fi
    printf 'app\t%s\t%s\t%s\t%s\t%s\t%s\n' "$pid" "${uuid# }" "${memory# }" "$ours" "$user" \
      "$(tr '\0\t\n' '   ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-80)"
  done
"""
).replace("FIELDS", ",".join(LEVEL_FIELDS))


async def read_levels(host: Host) -> str:
    """The cards' memory as text for the run's record; empty where it cannot be read.

    Raises:
        UnreachableError: the connection is lost.
    """
    try:
        done = await host.run(["sh", "-c", PLAIN + _LEVELS, "sh"], timeout=READ_S)
    except HostError:
        return ""
    return done.stdout if "card\t" in done.stdout else ""


async def prove_given_back(
    host: Host, run: str, *, back_s: float = BACK_S, poll_s: float = POLL_S
) -> tuple[tuple[str, ...], int]:
    """What the cards hold more than before the launch in folder `run`, a line each, and how many cards were compared.

    Waits until it is given back, `back_s` at most. No record or no nvidia-smi proves nothing: no line, 0 cards.

    Raises:
        UnreachableError: the connection is lost.
    """
    before = parse_levels((await host.run(["cat", f"{run}/gpus"])).stdout)
    if not before.used_mib:
        return (), 0
    deadline = time.monotonic() + back_s
    while True:
        now = parse_levels(await read_levels(host))
        remains = not_given_back(before, now)
        if not remains or time.monotonic() >= deadline:
            return tuple(remains), len(before.used_mib.keys() & now.used_mib.keys())
        await asyncio.sleep(poll_s)
