"""What an experiment will cost: from this host's own history where there is one, else from the profile."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.experiment import Experiment
    from ddconsole.core.profile import Profile

BOOT = "boot"
"""The stretch from preflight to ready as a whole, kept beside the phases that it is made of."""


def phase_medians(history: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median seconds of each phase over earlier attempts, `history` holding seconds by phase of each."""
    seconds: dict[str, list[float]] = {}
    for run in history:
        for name, took in run.items():
            seconds.setdefault(name, []).append(took)
    return {name: median(times) for name, times in seconds.items()}


class Estimates:
    """Seconds by phase, the median of earlier attempts of this profile."""

    def __init__(self, profile: Profile, history: Sequence[dict[str, float]]) -> None:
        self._profile = profile
        self._history = history

    def boot_s(self) -> tuple[float, str]:
        """Seconds from preflight to ready, and where that comes from: `history` or `profile`."""
        boots = [run[BOOT] for run in self._history if BOOT in run]
        if boots:
            return median(boots), "history"
        return self._profile.expect.boot_s, "profile"

    def pass_s(self, name: str) -> float:
        """Seconds of one repeat of a pass."""
        times = [run[f"pass:{name}"] for run in self._history if f"pass:{name}" in run]
        return median(times) if times else self._profile.expect.pass_s

    def seconds(self, passes: Sequence[str], repeats: int, *, engine_kept: bool = False) -> float:
        """Seconds of a boot and of the passes; a kept engine costs no boot."""
        boot = 0.0 if engine_kept else self.boot_s()[0]
        return boot + repeats * sum(self.pass_s(name) for name in passes)

    def experiment_s(self, experiment: Experiment, *, engine_kept: bool = False) -> tuple[float, str]:
        """Seconds of the whole experiment, and the source of a boot's share."""
        return self.seconds(experiment.passes, experiment.repeats, engine_kept=engine_kept), self.boot_s()[1]
