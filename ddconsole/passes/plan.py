"""Which passes an experiment runs, from the profile's suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.errors import UsageError
from ddconsole.core.levels import Objectives
from ddconsole.core.profile import CodingPass, QualityPass, Suite, ThroughputPass
from ddconsole.passes.coding import CodingMeasure
from ddconsole.passes.prompts import load_suite
from ddconsole.passes.quality import MAX_TOKENS, QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure
from ddconsole.passes.workload import prompts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Sandbox
    from ddconsole.core.profile import Profile
    from ddconsole.core.quality import Control
    from ddconsole.passes.base import MeasuringPass

PASS_NAMES = ("coding", "throughput", "quality")
"""The passes there are, in the order in which a suite runs them."""


def build_passes(
    profile: Profile,
    suite_name: str,
    names: Sequence[str],
    sandbox: Sandbox | None,
    control: Control | None = None,
) -> list[MeasuringPass]:
    """The passes of `names`, in that order, as big as the profile's suite makes them.

    A pass that the suite does not have is run in its default size.

    Args:
        suite_name: `quick` or `confirm`.
        sandbox: grades the coding answers; None leaves them ungraded.
        control: the chain's answers, which the quality pass compares with.

    Raises:
        UsageError: a pass, suite, prompt set or file that does not exist or cannot be read.
    """
    suite = getattr(profile.passes, suite_name, None)
    if not isinstance(suite, Suite):
        raise UsageError(f"no suite {suite_name!r}", evidence=("suites: quick, confirm",))
    return [_build(profile, suite, name, sandbox, control) for name in names]


def _build(
    profile: Profile, suite: Suite, name: str, sandbox: Sandbox | None, control: Control | None
) -> MeasuringPass:
    if name == "coding":
        coding = suite.coding or CodingPass()
        return CodingMeasure(coding, load_suite(coding.suite), sandbox)
    if name == "throughput":
        plan = suite.throughput or ThroughputPass()
        return ThroughputMeasure(plan, prompts_of(profile.workload, plan.max_tokens), objectives(profile))
    if name == "quality":
        return QualityMeasure(suite.quality or QualityPass(), prompts_of(profile.workload, MAX_TOKENS), control)
    raise UsageError(f"no pass {name!r}", evidence=(f"passes: {', '.join(PASS_NAMES)}",))


def objectives(profile: Profile) -> Objectives:
    """The profile's limits, in seconds."""

    def seconds(milliseconds: float | None) -> float | None:
        return None if milliseconds is None else milliseconds / 1000

    return Objectives(seconds(profile.limits.ttft_ms), seconds(profile.limits.tpot_ms))
