"""What a number was made with: everything that somebody else would need to make it again.

The recipe grows with the attempt, and the store keeps it beside the result:

    ddconsole, profile_digest       the program, and the profile's revision as the hash of its file
    effective, suite, plan          the effective config; the suite and what its passes were
    workload, limits, seeds         prompts, temperature and thinking; objectives; every seed that was used
    command, env, secret_env        how the engine was started, secrets masked; secret variables by their names alone
    boot, engine_version            which start it was, and what the engine calls itself
    proved, unproved                what of the identity was proved
    host_facts                      what preflight found: `cards` (driver_version, clocks.sm, clocks.mem, clocks.max.sm,
                                    idle then), `drafter` (config_sha256), kernel, topology; and from the run
                                    `pcie_under_load` and `sm_clock_under_load` (low_mhz, high_mhz of each busy card)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ddconsole.core.masking import MASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.experiment import Workload
    from ddconsole.core.ports import LaunchPlan
    from ddconsole.core.profile import Profile

_SECRET_NAME = re.compile(r"(?i)(^|_)(key|token|secret|password|passwd|credentials?)(_|$)")
_SECRET_VALUE = re.compile(r"\b(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})|://[^/\s:@]+:[^/\s@]+@")

RESAMPLING_SEED = 0
"""Seed of every bootstrap: two reports of one store say the same."""

FIRST_SAMPLE_SEED = 1
"""Seed of the first of several samples of a task; every config's n-th sample of a task has the same one."""


def launch_recipe(plan: LaunchPlan) -> dict[str, Any]:
    """How the engine is started. The environment is the plan's own, without values that look secret."""
    return {"command": plan.shown, "env": shown_env(plan.env), "secret_env": sorted(plan.secret_env)}


def measuring_recipe(profile: Profile, suite: str, workload: Workload) -> dict[str, Any]:
    """What is measured and by which rules."""
    samples = getattr(profile.passes, suite).coding
    drawn = samples.samples if samples is not None else 1
    return {
        "plan": getattr(profile.passes, suite).model_dump(mode="json", exclude_none=True)
        | {"time_box_s": profile.passes.box_s(suite)},
        "workload": workload.to_json(),
        "limits": profile.limits_of(suite).model_dump(mode="json"),
        "seeds": {
            "resampling": RESAMPLING_SEED,
            "samples": [FIRST_SAMPLE_SEED + number for number in range(drawn)] if drawn > 1 else [],
        },
    }


def shown_env(env: Mapping[str, str]) -> dict[str, str]:
    """An environment with what looks secret masked, by a variable's name or by its value."""
    return {
        name: MASK if value and (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value)) else value
        for name, value in sorted(env.items())
    }
