"""What holds for every pass alike: the clock, the client's own cost, and the engine's counters beside ours."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.sse_server import PlainDialect, answering, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.ports import Prompt, ServerCounts
from ddconsole.core.profile import CodingPass, QualityPass, ThroughputPass
from ddconsole.passes.base import MeasuringPass, PassContext
from ddconsole.passes.coding import CodingMeasure
from ddconsole.passes.helpers import CpuOfHelpers
from ddconsole.passes.prompts import Task
from ddconsole.passes.quality import QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure

PROMPTS = (Prompt("p0", "question 0", 32), Prompt("p1", "question 1", 32))
NAMES = ("coding", "throughput", "quality")


@pytest.fixture
def measure(request: pytest.FixtureRequest) -> MeasuringPass:
    """The pass of that name, with two prompts and a warm-up of one."""
    built: dict[str, Callable[[], MeasuringPass]] = {
        "coding": lambda: CodingMeasure(
            CodingPass(), [Task(one.id, one.text, "f", "assert f") for one in PROMPTS], sandbox=None
        ),
        "throughput": lambda: ThroughputMeasure(ThroughputPass(requests=2), PROMPTS, Objectives()),
        "quality": lambda: QualityMeasure(QualityPass(), PROMPTS),
    }
    return built[request.param]()


async def summary_of(measure: MeasuringPass, **told: Any) -> dict[str, Any]:
    """Its summary, on a server that answers in eight words."""
    async with serving(answering(lambda request: f"the answer to {request.body['id']} is a green tree")) as server:
        fields: dict[str, Any] = {"clock": SystemClock(), "on_request": lambda *_: None}
        context = PassContext(base_url=server.url, dialect=PlainDialect(), workload=Workload(), **fields | told)
        return (await measure.run(context)).summary


class JumpingClock(SystemClock):
    """Its wall clock moves an hour forward at each look; durations do not."""

    def __init__(self) -> None:
        self._hours = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 12, 2, tzinfo=UTC) + timedelta(hours=next(self._hours))


@pytest.mark.parametrize("measure", NAMES, indirect=True)
async def test_a_suspend_in_the_middle_marks_the_result(measure: MeasuringPass) -> None:
    """With the level's figures unmoved."""
    summary = await summary_of(measure, clock=JumpingClock())
    assert [one["text"] for one in summary["findings"] if one["code"] == "clock-jump"] == [
        "this machine slept, or its clock was set, during c=1"
    ]
    assert summary["levels"][0]["clock_jump_s"] == pytest.approx(3600, abs=5)
    assert 0 <= summary["levels"][0]["wall_s"] < 5


@pytest.mark.parametrize("measure", NAMES, indirect=True)
async def test_the_client_watches_itself_and_knows_its_round_trip(measure: MeasuringPass) -> None:
    """Its share of a core is known, and what a TTFT holds of the tunnel stands with the level."""
    (level,) = (await summary_of(measure, round_trip_s=0.0123))["levels"]
    assert level["client_cpu_share"] > 0
    assert (level["round_trip_ms"], level["label"]) == (12.3, "c=1")


@pytest.mark.parametrize(("theirs", "warned"), [(1.0, False), (1.5, True)])
@pytest.mark.parametrize("measure", NAMES, indirect=True)
async def test_the_engines_counters_stand_beside_every_pass(
    measure: MeasuringPass, theirs: float, warned: bool
) -> None:
    """Read behind the warm-up; a disagreement is a finding of the pass."""
    readings: list[int] = []

    async def counts() -> ServerCounts:
        readings.append(1)
        return ServerCounts(tokens=1000.0 + (theirs * 8 * measure.total if len(readings) > 1 else 0.0))

    summary = await summary_of(measure, counts=counts)
    (check,) = summary["cross_check"]
    assert (check["ours"], check["agrees"]) == (8 * measure.total, not warned)
    assert any(finding["code"] == "cross-check" for finding in summary["findings"]) is warned


@pytest.mark.parametrize("measure", NAMES, indirect=True)
async def test_every_pass_warms_up_and_says_what_became_of_it(measure: MeasuringPass) -> None:
    """And what it did to the cache, once behind the warm-up."""
    seen: list[str] = []

    async def flush() -> bool:
        seen.append("flush")
        return True

    summary = await summary_of(measure, flush=flush, on_request=lambda record, *_: seen.append(record.prompt_id))
    assert seen[:2] == ["flush", "p0"]
    assert (summary["warmup_error"], summary["cache_flushed"]) == (None, True)


WORK = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\nsys.stdin.read()"


@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="no such /proc")
def test_processes_below_this_one_are_counted_by_their_name() -> None:
    """Also those that a guard has started; others, such as the demo's engine, are not."""
    shell = ["sh", "-c", '"$0" -c "$1"; exit', sys.executable, WORK]
    name = Path(sys.executable).name[:15]
    ours, others = CpuOfHelpers(name=name), CpuOfHelpers(name="ssh")
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        used, other = ours.since(), others.since()
        child.stdin.close()
    assert 0.25 <= used < 5
    assert other == 0
