"""What makes a first boot slow and a later one fast: the page cache with the weights, and compiled kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.engines.sglang.preflight.room import memory_of
from ddconsole.engines.sglang.preflight.sections import gib, rows, whole

if TYPE_CHECKING:
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections
    from ddconsole.engines.sglang.preflight.weights import Weights

TOPIC = "loading"
WARM: Final = 0.9
"""Share of the weights in the page cache from which a load hardly reads the disk."""

SMALLEST: Final = 1024**3
"""Bytes of weights below which the page cache makes no difference that anybody would see."""

NEEDED: Final = ("triton", "flashinfer")
"""Caches that an SGLang engine of ours fills; the others belong to kernels that it may not use."""


def check_page_cache(target: Weights, found: Sections, report: Report) -> None:
    """How much of the target's weights is in memory already."""
    memory = memory_of(found)
    share, how = _share(target, found, memory.get("Cached"))
    report.facts["page_cache"] = {"share": None if share is None else round(share, 3), "by": how}
    if share is None:
        report.see(TOPIC, "page cache", f"not known ({how})")
        return
    report.see(TOPIC, "page cache", f"{share * 100:.0f} % of the weights ({how})")
    if share < WARM and target.size >= SMALLEST:
        room = memory.get("MemAvailable")
        fits = "" if room is None or room >= target.size else f"; the host's free memory, {gib(room)}, cannot hold them"
        report.note("page-cache-cold", f"{(1 - share) * 100:.0f} % of the weights have to be read from disk{fits}",
                    "this boot is slower than a warm one; its time is no measure of the config")  # fmt: skip


def _share(target: Weights, found: Sections, cached: int | None) -> tuple[float | None, str]:
    """The share of the weights in the page cache, and how that is known."""
    lines = found.get("page-cache", [])
    pairs = [(whole(resident), whole(size)) for resident, size in rows(lines, "file", 2)]
    sizes = [(resident, size) for resident, size in pairs if resident is not None and size]
    if sizes:
        share = sum(resident for resident, _ in sizes) / sum(size for _, size in sizes)
        return min(share, 1.0), f"fincore, {len(sizes)} of {len(target.shards)} files"
    if cached is None or not target.size:
        return None, "no weights here" if not target.size else "neither fincore nor /proc/meminfo"
    why = "the files belong to another user" if "not-ours" in lines else "no fincore"
    return min(cached / target.size, 1.0), f"at most, by the size of the whole page cache; {why}"


def check_jit(found: Sections, report: Report) -> None:
    """Kernels compiled by earlier boots: without them the first requests compile, for minutes."""
    caches = {name: state for name, state, _ in rows(found.get("jit", []), "cache", 3)}
    if not caches:
        return
    report.facts["jit_caches"] = caches
    report.see(TOPIC, "kernel caches", ", ".join(f"{name} {state}" for name, state in caches.items()))
    cold = [name for name in NEEDED if caches.get(name) in ("absent", "empty")]
    if cold:
        report.note("jit-cold", f"no compiled kernels of {' and '.join(cold)} yet",
                    "the first boot compiles them: its time and its first requests are no measure")  # fmt: skip
