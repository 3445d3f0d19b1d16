"""A coding pass whose answers nothing can hold is refused before an engine is paid for, unless the profile consents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.scripted import PROFILE, Script, ScriptedPass, make_bench
from runner.world import tree

from ddconsole.core import events
from ddconsole.core.experiment import Origin
from ddconsole.core.ports import SandboxResult
from ddconsole.core.profile import Profile
from ddconsole.core.queue import Add, Draft, Place, Remove
from ddconsole.passes.coding import CodingMeasure
from ddconsole.runner.console import Console


class LimitsAlone:
    """The sandbox of a machine without bubblewrap and namespaces."""

    isolation = "rlimits"

    async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
        """No answer comes here: the scripted engine serves none."""
        raise AssertionError("an answer was run")


async def limits_alone() -> LimitsAlone:
    return LimitsAlone()


async def drained(folder: Path, *, allowed: bool) -> tuple[Script, list[events.ExperimentFinished], int]:
    """One experiment with the coding pass alone, over the runner with its real plan of passes."""
    coding = {"allow_no_isolation": "true" if allowed else "false"}
    suites = {"quick": {"coding": coding}, "confirm": {"coding": coding}}
    profile = PROFILE.model_copy(update={"passes": Profile.model_fields["passes"].annotation.model_validate(suites)})
    script = Script()
    bench = replace(make_bench(folder, script), profile=profile, open_sandbox=limits_alone)
    console = Console(bench, lambda text, queue: Remove((text,)), patient=False)
    seen: list[events.Event] = []
    console.feed.subscribe(seen.append)
    await console.open(telemetry=False)
    try:
        await console.edit(Add((Draft(tree(), passes=("coding",)),), Origin(), Place()))
        await console.begin(waits=False, resume=False)
        await console.drain()
    finally:
        await console.close(keep_engine=False)
    finished = [event.body for event in seen if isinstance(event.body, events.ExperimentFinished)]
    return script, finished, len(script.launches)


async def test_refused_before_the_launch_with_the_key_that_allows_it(tmp_path: Path) -> None:
    """No engine is started, and the advice names what to write into the profile."""
    script, finished, launched = await drained(tmp_path, allowed=False)
    assert launched == 0
    assert not script.living
    assert [body.outcome for body in finished] == ["failed"]
    failure = finished[0].failure
    assert failure is not None
    assert failure["cause"] == "not-measurable"
    assert "no isolation" in failure["what"]
    assert "allow_no_isolation: true" in failure["advice"]


async def test_with_the_key_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same machine, the same experiment: the engine is launched, and the pass is run on it."""
    scripted = ScriptedPass("coding")
    monkeypatch.setattr(CodingMeasure, "run", lambda self, context: scripted.run(context))
    _, finished, launched = await drained(tmp_path, allowed=True)
    assert (launched, scripted.runs) == (1, 1)
    assert [body.outcome for body in finished] == ["passed"]
