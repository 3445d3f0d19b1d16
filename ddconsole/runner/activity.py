"""Signs of life while the log is silent: bytes that the engine's processes read and write, and GPU memory growing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

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
       /^write_bytes:/ { stored += $2 } /^wchar:/ { written += $2 }
       END { if (NR) printf "%.0f %.0f %.0f %.0f\n", disk, calls, stored, written }'
"""
"""Sums over all processes of session $1: bytes fetched from storage, bytes that read() returned, and the same of
what was written."""

GROWN_BYTES: Final = 16_000_000
"""So much has to be written for it to be a sign of life: a log and caches of compiled kernels write less in a hang."""

GROWS_FOR_S: Final = 30.0
"""Files that grew so lately still grow, as far as words go."""


class Io(NamedTuple):
    """Bytes that the processes of a launch have read and written; None for what the host does not tell."""

    read: int
    written: int | None


async def io_of(host: Host, launched: Launched) -> Io | None:
    """What the processes of a launch have read and written; None where the host does not tell.

    Each is the larger of two counters: `read_bytes` (storage, page faults of mapped files among it) misses what the
    page cache held, and `rchar` (read calls) misses mapped files. What comes over the network is in neither for sure,
    but a download ends in files.
    """
    done = await host.run(["sh", "-c", _IO, "sh", str(launched.pid)], timeout=15)
    counts = [int(word) for word in done.stdout.split() if word.isdecimal()]
    return Io(max(counts[:2]), max(counts[2:4], default=None)) if counts else None


@dataclass(slots=True)
class Activity:
    """Asks for signs of life every few seconds. A process that ends takes its count with it, so the sum never falls.

    Attributes:
        gpu_mib: reads the memory in use on all cards from the newest sample; None while there is none.
        read, written: bytes so far; None while the host has not told.
        grew_at: when it was last seen that files had grown by GROWN_BYTES, monotonic.
    """

    session: Session
    launched: Launched
    clock: Clock
    gpu_mib: Callable[[], int | None]
    read: int | None = None
    written: int | None = None
    grew_at: float | None = None
    _seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=int(RATE_OVER_S / LOOK_EVERY_S) + 1))
    _looked_at: float | None = None
    _gpu_before: int | None = None
    _written_before: int | None = None

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
            io = await io_of(host, self.launched)
        except (HostError, UnreachableError):
            return  # a sign of life that is missing is no sign of death
        if io is not None:
            self.read = max(io.read, self.read or 0)
            self._seen.append((self.clock.monotonic(), self.read))
            if io.written is not None:
                self._wrote(io.written)

    def _wrote(self, written: int) -> None:
        self.written = max(written, self.written or 0)
        if self._written_before is None:
            self._written_before = self.written
        elif self.written - self._written_before >= GROWN_BYTES:
            self._written_before, self.grew_at = self.written, self.clock.monotonic()

    @property
    def grows(self) -> bool:
        """Whether files have grown lately."""
        return self.grew_at is not None and self.clock.monotonic() - self.grew_at <= GROWS_FOR_S

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
        if self.written is not None:
            read += f"; {self.written / 1e9:.1f} GB written"
        grown = self.grown_mib
        return read if grown is None else f"{read}; GPU memory {grown / 1024:+.1f} GiB since the launch"
