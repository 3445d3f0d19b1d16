"""What the screen and the command line are told of a boot, twice a second at most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.events import BootProgressed
from ddconsole.runner.patience import doing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.profile import Profile
    from ddconsole.core.progress import BootProgress, Download, Phase, ShardBar
    from ddconsole.runner.activity import Activity
    from ddconsole.runner.follow import LogFollower


def bar_json(bar: ShardBar | None) -> dict[str, Any] | None:
    """A bar as events carry it."""
    if bar is None:
        return None
    eta = None if bar.eta_s is None else round(bar.eta_s, 1)
    return {"done": bar.done, "total": bar.total, "eta_s": eta}


def download_json(download: Download | None) -> dict[str, int | None] | None:
    """A download as events carry it."""
    if download is None:
        return None
    return {
        "bytes": download.done_bytes,
        "bytes_total": download.total_bytes,
        "files": download.done_files,
        "files_total": download.total_files,
    }


@dataclass(slots=True)
class ProgressTeller:
    """Puts together what the log, the host and this host's earlier boots say.

    Attributes:
        expected_s: seconds from launch to ready, by history or profile.
        phase_s: seconds of each phase in earlier boots here.
        began: when the launch was, monotonic.
    """

    profile: Profile
    follower: LogFollower
    activity: Activity
    expected_s: float
    phase_s: Mapping[str, float]
    began: float
    _phase: Phase | None = None
    _entered: float = field(default=0.0)

    def body(self, now: float) -> BootProgressed:
        """The event as of `now`."""
        progress = self.follower.tracker.progress
        if progress.phase is not self._phase:
            self._phase, self._entered = progress.phase, now
        name, elapsed, silent = progress.phase.value, now - self.began, now - self.follower.spoke_at
        per_s = self.activity.per_s
        return BootProgressed(
            phase=name,
            target=bar_json(progress.target),
            draft=bar_json(progress.draft),
            graphs=bar_json(progress.graphs),
            elapsed_s=round(elapsed, 1),
            eta_s=round(self._eta(progress, elapsed), 1),
            silent_s=round(silent, 1),
            stall_s=self.profile.stall_s(name),
            bytes_read=self.activity.read,
            read_per_s=None if per_s is None else round(per_s),
            gpu_mib=self.activity.gpu_mib(),
            gpu_grown_mib=self.activity.grown_mib,
            phase_s=round(now - self._entered, 1),
            phase_estimate_s=self.phase_s.get(name),
            waits_for=list(progress.waits_for),
            download=download_json(progress.download),
            limit_s=self.profile.boot_limit_s,
            doing=doing(progress, silent, self.activity),
        )

    def _eta(self, progress: BootProgress, elapsed: float) -> float:
        """Seconds to ready: this host's history less what has passed, never below what the bar itself says."""
        remaining = max(self.expected_s - elapsed, 0.0)
        bar = progress.target.eta_s if progress.target is not None else None
        return max(remaining, bar or 0.0)
