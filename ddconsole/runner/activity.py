"""Signs of life while the log is silent: bytes that the engine's processes read, and the cards' memory growing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.ports import Clock, Host, Launched
    from ddconsole.runner.session import Session

LOOK_EVERY_S: Final = 5.0
"""How often the host is asked, in one command."""

RATE_OVER_S: Final = 30.0
"""The reading speed is taken over about so long: shards come in bursts."""

_IO = r"""
[ -r /proc/self/io ] || exit 0
cat /proc/[0-9]*/stat 2>/dev/null | awk -v sid="$1" '
  { pid = $1; sub(/^.*\) /, ""); if ($4 == sid) print "/proc/" pid "/io" }' |
  xargs -r cat 2>/dev/null |
  awk '/^read_bytes:/ { disk += $2 } /^rchar:/ { calls += $2 }
       END { if (NR) printf "%.0f %.0f\n", disk, calls }'
"""
"""Sums over all processes of session $1: bytes fetched from storage, and bytes that read() returned."""


async def bytes_read(host: Host, launched: Launched) -> int | None:
    """Bytes that the processes of a launch have read; None where the host does not tell.

    The larger of two counters: `read_bytes` (storage, page faults of mapped files among it) misses what the page
    cache held, and `rchar` (read calls) misses mapped files.
    """
    done = await host.run(["sh", "-c", _IO, "sh", str(launched.pid)], timeout=15)
    counts = [int(word) for word in done.stdout.split() if word.isdecimal()]
    return max(counts) if counts else None


@dataclass(slots=True)
class Activity:
    """Asks for signs of life every few seconds. A process that ends takes its count with it, so the sum never falls.

    Attributes:
        gpu_mib: reads the memory in use on all cards from the newest sample; None while there is none.
    """

    session: Session
    launched: Launched
    clock: Clock
    gpu_mib: Callable[[], int | None]
    read: int | None = None
    _seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=int(RATE_OVER_S / LOOK_EVERY_S) + 1))
    _looked_at: float | None = None
    _gpu_before: int | None = None

    def __post_init__(self) -> None:
        self._gpu_before = self.gpu_mib()

    async def look(self) -> None:
        """Ask, if it is time."""
        now = self.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        try:
            host = await self.session.host()
            read = await bytes_read(host, self.launched)
        except (HostError, UnreachableError):
            return  # a sign of life that is missing is no sign of death
        if read is not None:
            self.read = max(read, self.read or 0)
            self._seen.append((self.clock.monotonic(), self.read))

    @property
    def per_s(self) -> float | None:
        """Bytes a second, lately."""
        if len(self._seen) < 2:
            return None
        (start, low), (end, high) = self._seen[0], self._seen[-1]
        return (high - low) / (end - start) if end > start else None

    @property
    def grown_mib(self) -> int | None:
        """GPU memory that was taken since the launch, on all cards together."""
        now = self.gpu_mib()
        if self._gpu_before is None:
            self._gpu_before = now  # telemetry came later than the launch
        return None if now is None or self._gpu_before is None else now - self._gpu_before

    def words(self) -> str:
        """For the evidence of a stall."""
        read = "bytes read: not known" if self.read is None else f"{self.read / 1e9:.1f} GB read"
        if self.per_s is not None:
            read += f", {self.per_s / 1e6:.0f} MB/s lately"
        grown = self.grown_mib
        return read if grown is None else f"{read}; GPU memory {grown / 1024:+.1f} GiB since the launch"
