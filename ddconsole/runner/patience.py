"""How long a boot is waited for: limits of silence for each phase, and one for the whole, whatever it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import Failure
from ddconsole.core.progress import Phase

if TYPE_CHECKING:
    from ddconsole.core.ports import Clock
    from ddconsole.core.profile import Profile
    from ddconsole.core.progress import BootProgress
    from ddconsole.runner.activity import Activity
    from ddconsole.runner.follow import LogFollower

LONGEST_LOOK_S: Final = 10.0
"""Between two looks not more than this counts: the rest was an outage, in which nobody could see the engine get on."""

QUIET_S: Final = 10.0
"""Seconds of silence before it is said what the engine may be doing in it."""

DOWNLOADING: Final = "downloading"
PERHAPS: Final = "downloading?, no progress reported"
"""What is said of a download with a bar, and of a silence in which files grow before any weights are loaded."""


def may_download(progress: BootProgress) -> bool:
    """Whether the engine is where it may still fetch what it has to load: before the bar of those weights."""
    match progress.phase:
        case Phase.INIT | Phase.LOAD_TARGET:
            return progress.target is None
        case Phase.LOAD_DRAFT:
            return progress.draft is None
        case _:
            return False


def doing(progress: BootProgress, silent_s: float, activity: Activity) -> str | None:
    """`downloading`, or the guess that it is; None where nothing speaks for it."""
    if progress.download is not None:
        return DOWNLOADING
    return PERHAPS if silent_s >= QUIET_S and may_download(progress) and activity.grows else None


@dataclass(slots=True)
class Patience:
    """Says when a boot has to be given up. It counts from `began`, and in the proof from `renew` on.

    Silence is broken by a word of the log; before any weights are loaded also by files that grow, since a download
    may have no bar. An echo of our own probes breaks nothing.
    """

    profile: Profile
    follower: LogFollower
    activity: Activity
    clock: Clock
    began: float = field(init=False)
    _looked_at: float = field(init=False)
    _waited_s: float = 0.0

    def __post_init__(self) -> None:
        self.began = self._looked_at = self.clock.monotonic()

    def renew(self) -> None:
        """The engine has got on in a way that its log does not show: silence counts from now."""
        self.began = self.clock.monotonic()

    def silent_s(self, progress: BootProgress) -> float:
        """Seconds without a sign of life."""
        now = self.clock.monotonic()
        silent = min(self.follower.silent_s(), now - self.began)
        if may_download(progress) and self.activity.grew_at is not None:
            silent = min(silent, now - self.activity.grew_at)
        return silent

    def exhausted(self) -> Failure | None:
        """Why the boot is given up; None to go on waiting. To be asked at each look."""
        now = self.clock.monotonic()
        self._waited_s += min(now - self._looked_at, LONGEST_LOOK_S)
        self._looked_at = now
        return self._stalled() or self._too_long()

    def _stalled(self) -> Failure | None:
        progress = self.follower.tracker.progress
        name, silent = progress.phase.value, self.silent_s(progress)
        limit = self.profile.stall_s(name)
        if silent <= limit:
            return None
        return Failure(
            "stalled",
            f"no line for {silent:.0f} s in {name} (limit {limit:.0f} s)",
            self._evidence(),
            f"Look at the whole log; raise `stalls.{name}` in the profile if this host is only slow.",
            name,
        )

    def _too_long(self) -> Failure | None:
        limit = self.profile.boot_limit_s
        if self._waited_s <= limit:
            return None
        progress = self.follower.tracker.progress
        what = doing(progress, self.follower.silent_s(), self.activity)
        return Failure(
            "boot-limit",
            f"not ready after {self._waited_s:.0f} s (limit of a whole boot {limit:.0f} s)",
            (*self._evidence(), *([what] if what else [])),
            "Look at what it still does; raise `stalls.boot` in the profile if a boot really takes so long here.",
            progress.phase.value,
        )

    def _evidence(self) -> tuple[str, ...]:
        return (*list(self.follower.recent)[-3:], self.activity.words())
