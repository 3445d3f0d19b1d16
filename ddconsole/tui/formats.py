"""Numbers as people read them: pure. What is unknown is a dash, never a zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

DASH = "–"
"""What stands for a value that is not known."""

FULL, HALF, EMPTY = "━", "╸", "─"
"""A bar's cells: heavy where it is done, thin where it is not, so that it can be read without colour."""

LEVELS = "▁▂▃▄▅▆▇"
"""Heights of a sparkline; the full block is left out, so that rows under each other stay apart."""

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def span(seconds: float | None) -> str:
    """A measured time: `9s`, `6:12`, `1:02:33`."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    whole = max(0, round(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    minutes, rest = divmod(whole, MINUTE)
    if whole < HOUR:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // MINUTE}:{minutes % MINUTE:02d}:{rest:02d}"


def about(seconds: float | None) -> str:
    """An estimate, no finer than it deserves: `45 s`, `9 min`, `1 h 20 min`, `2 d 3 h`."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    if seconds < 1.5 * MINUTE:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / MINUTE)
    if minutes < MINUTE:
        return f"{minutes} min"
    hours, rest = divmod(minutes, MINUTE)
    if hours < 24:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def about_short(seconds: float | None) -> str:
    """The same in at most six cells: `45 s`, `9 min`, `1h20m`, `2d 3h`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 59.5 * MINUTE:
        return about(seconds)
    hours, rest = divmod(round(seconds / MINUTE), MINUTE)
    if hours < 100:
        return f"{hours}h{rest:02d}m"
    return f"{hours // 24}d{hours % 24:2d}h" if hours < 24 * 100 else f"{hours // 24}d"


def time_of_day(at: datetime | None, zone: tzinfo | None = None) -> str:
    """`14:41` in `zone`, or in the console's own where it is None."""
    return DASH if at is None else at.astimezone(zone).strftime("%H:%M")


def number(value: float | None, digits: int = 0) -> str:
    """A number with a fixed count of decimals."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """`92%`, of a value that is a percentage already."""
    return DASH if value is None or not math.isfinite(value) else f"{value:.0f}%"


def share(part: float | None, whole: float | None) -> float | None:
    """part / whole within 0 to 1, None where either is unknown or the whole is nothing."""
    if part is None or not whole:
        return None
    return min(max(part / whole, 0.0), 1.0)


def delta(percent_change: float | None, interval: float | None) -> str:
    """A change with the half width of its interval: `+12.4 ±3.1%`."""
    if percent_change is None:
        return DASH
    if interval is None:
        return f"{percent_change:+.1f}%"
    return f"{percent_change:+.1f} ±{interval:.1f}%"


def rate(bytes_per_s: float | None) -> str:
    """`1.2 GB/s`, in powers of ten."""
    return DASH if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def size(count: float | None) -> str:
    """Bytes in powers of ten: `612 GB`."""
    if count is None:
        return DASH
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{value:.0f} {unit}" if unit in ("B", "kB") or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def bar(fraction: float | None, width: int) -> tuple[str, str]:
    """A bar as (filled, empty), together exactly `width` cells, in steps of half a cell.

    An unknown fraction is all empty, and only what is complete fills the last cell.
    """
    width = max(width, 0)
    full, half = divmod(int(min(max(fraction or 0.0, 0.0), 1.0) * width * 2), 2)
    filled = FULL * full + HALF * half
    return filled, EMPTY * (width - len(filled))


def spark(values: Sequence[float | None], width: int, top: float = 100.0) -> str:
    """The last `width` values as heights under `top`; a gap where one is unknown, blank before the first."""
    shown = list(values)[-width:] if width > 0 else []
    return "".join(_level(value, top) for value in shown).rjust(max(width, 0))


def _level(value: float | None, top: float) -> str:
    if value is None or top <= 0:
        return " "
    return LEVELS[min(max(int(value / top * (len(LEVELS) - 1) + 0.5), 0), len(LEVELS) - 1)]
