"""Cards that share the host's memory (GB10, Jetson): nvidia-smi has no number for it, and the host's own stands in.

Only for chips that are known to have no memory of their own. A card with its own may tell none for another reason (it
is lost, split by MIG, or hidden by a container), and the host's memory would be a wrong number there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ddconsole.core.gpu import GpuSample

SOURCE: Final = "/proc/meminfo"
"""Where the numbers come from; it is shown beside them."""

MEMINFO: Final = ("cat", SOURCE)
"""The argv that reads them."""

_INTEGRATED: Final = re.compile(r"\b(?:GB10|Thor|Orin|Xavier|Tegra)\b")
_LINE: Final = re.compile(r"^(MemTotal|MemAvailable):\s{0,40}([0-9]{1,15}) kB$", re.ASCII | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HostMemory:
    """MiB; used is what is not available."""

    total_mib: int
    used_mib: int


def host_memory(total_kib: int | None, available_kib: int | None) -> HostMemory | None:
    """Of MemTotal and MemAvailable; None where either is missing or they contradict each other."""
    if total_kib is None or available_kib is None or not 0 <= available_kib <= total_kib or total_kib < 1024:
        return None
    return HostMemory(total_kib // 1024, (total_kib - available_kib) // 1024)


def parse_meminfo(text: str) -> HostMemory | None:
    """What /proc/meminfo says, or None. Never raises."""
    found = {name: int(number) for name, number in _LINE.findall(text)}
    return host_memory(found.get("MemTotal"), found.get("MemAvailable"))


def is_integrated(name: str | None) -> bool:
    """Whether a card of this name has no memory of its own."""
    return name is not None and _INTEGRATED.search(name) is not None


def shares_host_memory(sample: GpuSample) -> bool:
    """Whether a card's memory is the host's: such a chip, whole and answering, that tells no number of its own."""
    untold = sample.memory_used_mib is None and sample.memory_total_mib is None
    return untold and sample.lost is None and sample.mig is not True and is_integrated(sample.name)


def with_host_memory(sample: GpuSample, memory: HostMemory | None) -> GpuSample:
    """The sample with the host's memory where that is the card's, and whence it comes; else as it is."""
    if memory is None or not shares_host_memory(sample):
        return sample
    return replace(sample, memory_used_mib=memory.used_mib, memory_total_mib=memory.total_mib, memory_source=SOURCE)
