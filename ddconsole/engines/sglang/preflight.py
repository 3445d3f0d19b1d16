"""What can be known on the host before paying for a launch: seconds, no GPU work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.errors import HostError
from ddconsole.core.ports import Finding
from ddconsole.engines.launch.ports import listeners
from ddconsole.engines.launch.scripts import PLAIN, PRELUDE
from ddconsole.engines.sglang.rules import check_config

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.config import Config
    from ddconsole.core.ports import Host
    from ddconsole.core.profile import Profile


FREE_WARN_MIB: Final = 1024
FREE_BLOCK_MIB: Final = 50
"""Disk space of the state folder: logs are small, but a full disk loses them."""

CHECK_TIMEOUT_S: Final = 20.0

_COMMAND = 'cd "$HOME" && command -v "$1" >/dev/null 2>&1 && echo found; :'

_CONFIG = r"""
cd "$HOME" || exit 1
hub=${HF_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub}
for file in "$1/config.json" "$hub/models--$2/snapshots/"*/config.json; do
  if [ -f "$file" ]; then head -c 200000 "$file"; exit; fi
done
"""
"""A model's config.json: $1 is its path, $2 its name in the Hugging Face cache."""

_APPS = r"""
if ! command -v nvidia-smi >/dev/null 2>&1; then echo missing; exit; fi
nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits 2>&1 |
  while IFS=, read -r pid uuid memory; do
    case $pid in "" | *[!0-9]*) printf 'text\t%s\n' "$pid"; continue ;; esac
    user=$(stat -c %U "/proc/$pid" 2>/dev/null || ps -o user= -p "$pid" 2>/dev/null || echo "?")
    printf 'app\t%s\t%s\t%s\t%s\t%s\n' "$pid" "$uuid" "$memory" "$user" \
      "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-80)"
  done
"""

_DISK = r"""
dir=$(expand "$1")
while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
df -Pk "$dir" | awk 'NR == 2 { print $4 }'
"""


async def preflight(profile: Profile, host: Host, config: Config, port: int) -> tuple[Finding, ...]:
    """All findings, what blocks first.

    Raises:
        UnreachableError: the connection is lost.
    """
    found: list[Finding] = []
    trained: int | None = None
    if config.block_size is not None:
        trained = await trained_block_size(profile, host)
    found += check_config(profile, config, trained)
    checks = (
        check_command(profile, host),
        check_port(host, port),
        check_gpus(host),
        check_disk(profile.launcher.state_dir, host),
    )
    for check in checks:
        found += [finding async for finding in _guarded(check)]
    order = {"block": 0, "warn": 1, "note": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.level]))


async def _guarded(check: AsyncIterator[Finding]) -> AsyncIterator[Finding]:
    """A check that the host could not carry out is a warning, not the end of the preflight."""
    try:
        async for finding in check:
            yield finding
    except HostError as exc:
        yield Finding("warn", "check-failed", exc.what, exc.advice)


async def trained_block_size(profile: Profile, host: Host) -> int | None:
    """As the profile says, or `dflash_config.block_size` and then `block_size` of the drafter's config.json."""
    asked = profile.engine.trained_block_size
    if asked != "auto":
        return asked
    drafter = profile.engine.drafter
    if drafter is None:
        return None
    try:
        done = await host.run(
            ["sh", "-c", _CONFIG, "sh", drafter, drafter.replace("/", "--")], timeout=CHECK_TIMEOUT_S
        )  # fmt: skip
    except HostError:
        return None
    return block_size_in(done.stdout)


def block_size_in(text: str) -> int | None:
    """The block size in a drafter's config.json, where SGLang looks for it."""
    try:
        config: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(config, dict):
        return None
    inner = config.get("dflash_config")
    places = (inner.get("block_size") if isinstance(inner, dict) else None, config.get("block_size"))
    return next((value for value in places if isinstance(value, int) and value > 0), None)


async def check_command(profile: Profile, host: Host) -> AsyncIterator[Finding]:
    """The program of engine.command is on the PATH of a login without a terminal."""
    program = profile.engine.command[0]
    done = await host.run(["sh", "-c", _COMMAND, "sh", program], timeout=CHECK_TIMEOUT_S)
    if "found" not in done.stdout:
        yield Finding("block", "no-command", f"{program} is not on the host's PATH",
                      "give its full path in engine.command of the profile")  # fmt: skip


async def check_port(host: Host, port: int) -> AsyncIterator[Finding]:
    """SGLang checks its HTTP port only after loading all weights, so a held port costs the whole boot."""
    for one in await listeners(host, port):
        yield Finding("block", "port-held", f"port {port} is held by {one.words()}",
                      "end it, or set another engine.port (auto takes a free one)")  # fmt: skip


async def check_gpus(host: Host) -> AsyncIterator[Finding]:
    """Processes that hold GPU memory and are not ours: shown, never touched."""
    done = await host.run(["sh", "-c", PLAIN + _APPS, "sh"], timeout=CHECK_TIMEOUT_S)
    if done.stdout.strip() == "missing":
        yield Finding("note", "no-nvidia-smi", "the host has no nvidia-smi: no telemetry, no look at foreign processes")
        return
    held: dict[str, list[tuple[str, str, str]]] = {}
    for line in done.stdout.splitlines():
        mark, *cells = line.split("\t")
        if mark == "app" and len(cells) == 5:
            pid, _, memory, user, command = (cell.strip() for cell in cells)
            held.setdefault(pid, []).append((memory, user, command))
        elif mark == "text" and len(cells) == 1 and "no running" not in cells[0].lower():
            yield Finding("warn", "nvidia-smi", f"nvidia-smi says: {cells[0].strip()[:200]}")
    for pid, cards in held.items():
        yield Finding("warn", "gpu-busy", _holder(pid, cards), "it is left alone; free the cards if they are needed")


def _holder(pid: str, cards: list[tuple[str, str, str]]) -> str:
    """`pid 9911 (alice, python x) holds 61,200 MiB on 1 card`."""
    known = [int(memory) for memory, _, _ in cards if memory.isdigit()]
    amount = f"{sum(known):,} MiB" if known else "memory"
    _, user, command = cards[0]
    who = ", ".join(filter(None, (user, command)))
    return f"pid {pid} ({who}) holds {amount} on {len(cards)} card{'s' if len(cards) > 1 else ''}"


async def check_disk(state_dir: str, host: Host) -> AsyncIterator[Finding]:
    """Room for logs and records in the state folder."""
    done = await host.run(["sh", "-c", PLAIN + PRELUDE + _DISK, "sh", state_dir], timeout=CHECK_TIMEOUT_S)
    word = done.stdout.strip()
    if word.isdigit() and int(word) // 1024 < FREE_WARN_MIB:
        free = int(word) // 1024
        level = "block" if free < FREE_BLOCK_MIB else "warn"
        yield Finding(level, "disk", f"{free:,} MiB free where the host keeps logs ({state_dir})", "free space there")
