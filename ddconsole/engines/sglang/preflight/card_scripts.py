"""The two scripts that ask nvidia-smi: cards and the processes on them; links between cards and their instances.

They run beside each other: without persistence mode each call may take seconds. The limits keep a stuck driver from
holding the preflight for longer.
"""

from __future__ import annotations

from typing import Final

from ddconsole.engines.launch.scripts import PLAIN, PRELUDE
from ddconsole.engines.sglang.preflight.sections import SECTION

CARD_FIELDS: Final = (
    "index",
    "uuid",
    "name",
    "compute_cap",
    "driver_version",
    "memory.total",
    "memory.used",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "mig.mode.current",
    "persistence_mode",
    "power.limit",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
)
"""What is asked of every card; a driver that does not know one of them is asked again without it."""

NVIDIA_SMI_S: Final = 25
"""Seconds for one call of nvidia-smi."""

_START: Final = (
    PLAIN
    + SECTION
    + PRELUDE
    + r"""
if ! command -v nvidia-smi >/dev/null 2>&1; then section missing; section end; exit; fi
"""
)

CARDS: Final = (
    _START
    + r"""
section cards
within @S@ nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits 2>&1 | say
section apps
within @S@ nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits 2>&1 |
  while IFS=, read -r pid uuid memory; do
    case $pid in "" | *[!0-9]*) printf 'text\t%s\n' "$pid"; continue ;; esac
    user=$(stat -c %U "/proc/$pid" 2>/dev/null || ps -o user= -p "$pid" 2>/dev/null || echo "?")
    command=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-80)
    set -- $(stat_of "$pid")
    # an engine's rank has written its name over its own environment; the root of its session has the token
    ours=no
    for one in "$pid" "${4:-0}"; do
      if grep -q -F DDCONSOLE_ATTEMPT= "/proc/$one/environ" 2>/dev/null; then ours=yes; fi
    done
    printf 'app\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$pid" "$uuid" "$memory" "$user" "${4:-0}" "$ours" "$command"
  done | say
section end
""".replace("@S@", str(NVIDIA_SMI_S))
)
"""Argument: the fields of the card query, with commas."""

LINKS: Final = (
    _START
    + r"""
section list; within @S@ nvidia-smi -L 2>&1 | say
section matrix; within @S@ nvidia-smi topo -m 2>&1 | say
section peers; within @S@ nvidia-smi topo -p2p r 2>&1 | say
section end
""".replace("@S@", str(NVIDIA_SMI_S))
)
"""No arguments."""
