"""Which passes an experiment runs, from the profile's suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.errors import UsageError
from ddconsole.core.levels import Objectives
from ddconsole.core.profile import CodingPass, QualityPass, Suite, ThroughputPass
from ddconsole.core.tally import VERDICT_PASSES, work_key
from ddconsole.passes.coding import CodingMeasure
from ddconsole.passes.prompts import load_suite
from ddconsole.passes.quality import MAX_TOKENS, QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure
from ddconsole.passes.workload import prompts_of, suite_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Sandbox
    from ddconsole.core.profile import Profile
    from ddconsole.core.quality import Control
    from ddconsole.core.tally import Work
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
    limits = objectives(profile, suite_name)
    return [_build(profile, suite, name, sandbox, control, limits) for name in names]


def _build(
    profile: Profile,
    suite: Suite,
    name: str,
    sandbox: Sandbox | None,
    control: Control | None,
    limits: Objectives,
) -> MeasuringPass:
    if name == "coding":
        coding = suite.coding or CodingPass()
        return CodingMeasure(coding, load_suite(coding.suite), sandbox, suite_key(coding.suite))
    if name == "throughput":
        plan = suite.throughput or ThroughputPass()
        return ThroughputMeasure(plan, prompts_of(profile.workload, plan.max_tokens), limits)
    if name == "quality":
        return QualityMeasure(suite.quality or QualityPass(), prompts_of(profile.workload, MAX_TOKENS), control)
    raise UsageError(f"no pass {name!r}", evidence=(f"passes: {', '.join(PASS_NAMES)}",))


def planned_work(profile: Profile, suite_name: str, names: Sequence[str]) -> Work | None:
    """What `tally.work_of` will say of these passes once they are measured; None where none asks at concurrency 1."""
    suite: Suite = getattr(profile.passes, suite_name)
    for name in VERDICT_PASSES:
        if name == "coding" and name in names:
            coding = suite.coding or CodingPass()
            return work_key(name, suite_key(coding.suite), coding.max_tokens)
        throughput = suite.throughput or ThroughputPass()
        if name == "throughput" and name in names and 1 in throughput.concurrency:
            return work_key(name, None, throughput.max_tokens, exact=throughput.exact_tokens)
        if name == "quality" and name in names:
            return work_key(name, None, MAX_TOKENS)
    return None


def objectives(profile: Profile, suite_name: str) -> Objectives:
    """The limits that hold for a suite, in seconds."""
    limits = profile.limits_of(suite_name)

    def seconds(milliseconds: float | None) -> float | None:
        return None if milliseconds is None else milliseconds / 1000

    return Objectives(seconds(limits.ttft_ms), seconds(limits.tpot_ms))
