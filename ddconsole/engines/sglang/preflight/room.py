"""Free disk and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.engines.sglang.preflight.sections import gib, rows, shown, whole

if TYPE_CHECKING:
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "room"
MIB: Final = 1024**2

STATE_WARN, STATE_BLOCK = 1024 * MIB, 50 * MIB
"""Disk of the state folder: logs are small, but a full disk loses them."""

TMP_WARN: Final = 1024 * MIB
"""Disk of /tmp: compilers and PyTorch's inductor work there."""

SHM_WARN: Final = 1024 * MIB
"""/dev/shm: NCCL and the schedulers share memory there; a container's default is 64 MiB."""

MEMORY_WARN: Final = 16 * 1024 * MIB
"""Free memory with which eight ranks still load: each keeps a shard or more in flight."""

NAMES: Final = {"state": "logs", "tmp": "/tmp", "shm": "/dev/shm", "model": "model disk"}


def check_room(found: Sections, report: Report) -> None:
    """Free space where the launch writes, and free memory."""
    free: dict[str, int] = {}
    for name, kib, total, folder in rows(found.get("room", []), "room", 4):
        amount = whole(kib)
        if amount is None:
            continue
        free[name] = amount * 1024
        report.see(TOPIC, NAMES.get(name, name), f"{gib(amount * 1024)} free of {_total(total)} in {shown(folder, 80)}")
        _check_disk(name, amount * 1024, folder, report)
    memory = memory_of(found)
    report.facts["room"] = {"disk_free_bytes": free, "memory_bytes": memory}
    available, total_memory = memory.get("MemAvailable"), memory.get("MemTotal")
    if available is not None and total_memory is not None:
        report.see(TOPIC, "memory", f"{gib(available)} free of {gib(total_memory)}")
        if available < MEMORY_WARN and available < total_memory // 2:
            report.warn("memory-low", f"{gib(available)} of memory are free",
                        "the kernel's OOM killer ends a rank that loads; free memory first")  # fmt: skip


def _total(kib: str) -> str:
    total = whole(kib)
    return "?" if total is None else gib(total * 1024)


def _check_disk(name: str, free: int, folder: str, report: Report) -> None:
    where = shown(folder, 80)
    if name == "state" and free < STATE_BLOCK:
        report.block("disk-full", f"{gib(free)} free where the host keeps logs ({where})", "free space there")
    elif name == "state" and free < STATE_WARN:
        report.warn("disk-low", f"{gib(free)} free where the host keeps logs ({where})", "free space there")
    elif name == "tmp" and free < TMP_WARN:
        report.warn("tmp-low", f"{gib(free)} free in /tmp", "compiling kernels fails when it is full; free space there")
    elif name == "shm" and free < SHM_WARN:
        report.warn("shm-small", f"{gib(free)} free in /dev/shm",
                    "NCCL between eight ranks needs more; start the container with a larger --shm-size")  # fmt: skip


def memory_of(found: Sections) -> dict[str, int]:
    """/proc/meminfo in bytes, by its names."""
    words = (line.replace(":", " ").split() for line in found.get("memory", []))
    return {word[0]: int(word[1]) * 1024 for word in words if len(word) >= 2 and whole(word[1]) is not None}
