"""What a boot shows while its log is silent, in words: what looks like a hang has signs of life beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ddconsole.core.events import BootProgressed

SILENT_S: Final = 10.0
"""Seconds without a line before its age is shown."""

REPEAT_S: Final = 60.0
"""Where nothing can be redrawn, a silent stretch is told about so often."""


def clock_text(seconds: float) -> str:
    """`0:21`, `6:12`, `1:02:03`."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"


def boot_note(body: BootProgressed) -> str:
    """`no line for 0:42 of 15:00 · 310.2 GB read, 850 MB/s · GPU +41.2 GiB · usually 6:12 · waits for TP3`."""
    parts = [fetched] if (fetched := _fetched(body)) else []
    if body.silent_s >= SILENT_S:
        limit = "" if body.stall_s is None else f" of {clock_text(body.stall_s)}"
        parts.append(f"no line for {clock_text(body.silent_s)}{limit}")
    if body.doing is not None and body.download is None:
        parts.append(body.doing)
    if body.bytes_read:
        speed = f", {body.read_per_s / 1e6:.0f} MB/s" if body.read_per_s else ""
        read = f"{body.bytes_read / 1e9:.1f} GB" if body.bytes_read >= 1e9 else f"{body.bytes_read / 1e6:.0f} MB"
        parts.append(f"{read} read{speed}")
    if body.gpu_grown_mib:
        parts.append(f"GPU {body.gpu_grown_mib / 1024:+.1f} GiB")
    if body.phase_estimate_s:
        parts.append(f"usually {clock_text(body.phase_estimate_s)}")
    if body.waits_for and body.silent_s >= SILENT_S:
        parts.append(f"waits for {' '.join(body.waits_for)}")
    if body.limit_s is not None and body.silent_s >= SILENT_S:
        parts.append(f"given up at {clock_text(body.limit_s)}")
    return " · ".join(parts)


def _fetched(body: BootProgressed) -> str:
    """`downloading 3/64 files, 118.2 of 590.0 GB`."""
    if body.download is None:
        return ""
    files, done, total = (body.download.get(name) for name in ("files", "bytes", "bytes_total"))
    parts = [] if files is None else [f"{files}/{body.download.get('files_total') or '?'} files"]
    if done:
        parts.append(f"{done / 1e9:.1f}{'' if total is None else f' of {total / 1e9:.1f}'} GB")
    return f"downloading {', '.join(parts)}".rstrip()


@dataclass(slots=True)
class Silence:
    """Says when a silent stretch is to be told where nothing is redrawn: after SILENT_S, then every REPEAT_S."""

    _told_at: float | None = None

    def is_due(self, body: BootProgressed) -> bool:
        """Whether this moment of the boot is to be told."""
        if body.silent_s < SILENT_S:
            self._told_at = None
            return False
        if self._told_at is not None and body.elapsed_s - self._told_at < REPEAT_S:
            return False
        self._told_at = body.elapsed_s
        return True
