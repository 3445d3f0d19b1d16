"""What the toy engine does to its cards, told to the simulated nvidia-smi by a small file.

The file is `$DDCONSOLE_DEMO_HOME/run/engine-<pid>.json`, replaced as a whole at every change and at most five times a
second. Without that variable nothing is written.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

TOTAL_GB = 94.9
"""Memory that one card offers to the engine, in GiB."""
CONTEXT_GB = 0.6
"""What a process takes of a card before it has loaded anything."""
EVERY_S = 0.2
IDLE_W, LOADING_W, FULL_W = 62, 105, 415
"""Power of a card, in watts: at rest, while weights are copied to it, and computing all the time."""


class CardState:
    """Memory, utilization and power of the engine's cards."""

    def __init__(self, ranks: list[int], home: str | None) -> None:
        """`ranks` are the schedulers' pids; `home` the demo host's home folder, or None."""
        self.avail_gb = TOTAL_GB - CONTEXT_GB
        self._ranks = ranks
        self._path = Path(home, "run", f"engine-{os.getpid()}.json") if home else None
        self._utilization = 0.0
        self._watts = float(IDLE_W)
        self._written_at = -EVERY_S
        self._written = ""
        self._computed_s = 0.0
        self._since = time.monotonic()

    def loading(self, avail_gb: float) -> None:
        """Weights arrive: memory shrinks to `avail_gb` GiB free on each card."""
        self.avail_gb = avail_gb
        self._show(6.0, LOADING_W)

    def idle(self, avail_gb: float | None = None) -> None:
        """Nothing computes."""
        self.avail_gb = self.avail_gb if avail_gb is None else avail_gb
        self._show(0.0, IDLE_W)

    def capturing(self, avail_gb: float) -> None:
        """Graphs are captured: short kernels."""
        self.avail_gb = avail_gb
        self._show(35.0, (IDLE_W + FULL_W) / 2)

    def computed(self, seconds: float) -> None:
        """The model computed for `seconds`; `tick` turns it into utilization."""
        self._computed_s += seconds

    def tick(self) -> None:
        """Take stock of the time since the last tick."""
        now = time.monotonic()
        share = min(self._computed_s / max(now - self._since, 1e-6), 1.0)
        self._computed_s, self._since = 0.0, now
        self._show(94.0 * share, IDLE_W + (FULL_W - IDLE_W) * share)

    def remove(self) -> None:
        """The engine ends."""
        if self._path:
            self._path.unlink(missing_ok=True)

    def _show(self, utilization: float, watts: float) -> None:
        self._utilization, self._watts = utilization, watts
        now = time.monotonic()
        if self._path and now - self._written_at >= EVERY_S:
            self._write(self._path, now)

    def _write(self, path: Path, now: float) -> None:
        text = json.dumps(self.to_json())
        if text == self._written:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
        self._written, self._written_at = text, now

    def to_json(self) -> dict[str, object]:
        """The file's content. Cards differ a little, as real ones do."""
        used = (TOTAL_GB - self.avail_gb) * 1024
        count = len(self._ranks)
        busy = self._utilization > 0
        return {
            "pid": os.getpid(),
            "ranks": self._ranks,
            "memory_mib": [round(used) + 10 * (rank % 4) for rank in range(count)],
            "utilization": [round(self._utilization) - (rank % 3 if busy else 0) for rank in range(count)],
            "power_w": [round(self._watts) + 3 * (rank * 5 % 8) for rank in range(count)],
        }
