"""The passes against a scripted server: what they ask, what they tell, and how they bear failures."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.sse_server import HEAD, PlainDialect, Request, Server, answering, events, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.sandbox import LocalSandbox
from ddconsole.core.errors import UsageError
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Prompt, SandboxResult, ServerCounts
from ddconsole.core.profile import CodingPass, Profile, QualityPass, ThroughputPass
from ddconsole.core.quality import Control
from ddconsole.core.tally import work_of
from ddconsole.passes.base import PassContext
from ddconsole.passes.coding import CodingMeasure
from ddconsole.passes.plan import build_passes, planned_work
from ddconsole.passes.prompts import Task
from ddconsole.passes.quality import QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure
from ddconsole.passes.workload import suite_key

Send = Callable[[bytes], Awaitable[None]]
PROMPTS = tuple(Prompt(f"p{index}", f"question {index}", 32) for index in range(3))
TASKS = (
    Task("add", "Write add.", "add", "assert add(1, 2) == 3"),
    Task("neg", "Write neg.", "neg", "assert neg(1) == -1"),
)
ANSWERS = {"Write add.": "def add(a, b): return a + b", "Write neg.": "def neg(a): return a"}


def words(request: Request) -> str:
    """Eight words that differ by prompt."""
    return f"the answer to {request.body['prompt']} is a tree"


def code(request: Request) -> str:
    """The scripted answer of a coding task."""
    return f"```python\n{ANSWERS[request.body['prompt'].removeprefix('(warm-up) ')]}\n```"


def context(server: Server, heard: list[tuple[RequestRecord, int, int]] | None = None, **changes: Any) -> PassContext:
    fields: dict[str, Any] = {
        "base_url": server.url,
        "dialect": PlainDialect(),
        "workload": Workload(),
        "clock": SystemClock(),
        "on_request": lambda *told: None if heard is None else heard.append(told),
    }
    return PassContext(**fields | changes)


async def test_throughput_levels() -> None:
    """Warm-up first, in each level's width and uncounted; then each level over the same prompts, cycled."""
    plan = ThroughputPass(concurrency=[1, 2], requests=4, max_tokens=32, warmup=1)
    measure = ThroughputMeasure(plan, PROMPTS, Objectives(ttft_s=60))
    heard: list[tuple[RequestRecord, int, int]] = []
    async with serving(answering(words)) as server:
        result = await measure.run(context(server, heard))
    asked = [request.body["id"] for request in server.requests]
    assert asked[:3] == ["warm-up:p0", "warm-up:p0", "warm-up:p1"]
    assert asked[3:7] == ["p0", "p1", "p2", "p0"]
    assert sorted(asked[7:]) == ["p0", "p0", "p1", "p2"]
    assert [told[1:] for told in heard] == [(n, 8) for n in range(1, 9)]
    assert [told[0] for told in heard] == list(result.records)
    one, two = result.summary["levels"]
    assert (one["concurrency"], one["requests"], two["concurrency"]) == (1, 4, 2)
    assert (one["completion_tokens"], one["verify_steps"], one["tau"]) == (32, 8, 4.0)
    assert one["goodput_per_s"] == pytest.approx(one["requests_per_s"])
    assert result.summary["by_prompt"].keys() == {"p0", "p1", "p2"}
    assert (result.summary["failed"], result.summary["warmup_error"], measure.total) == (0, None, 8)
    json.dumps(result.summary, allow_nan=False)


async def test_concurrency_is_held() -> None:
    """Exactly as many requests as the level says are in flight: a reply waits until all of them are there."""
    gates = [asyncio.Event()]

    async def reply(request: Request, send: Send) -> None:
        if server.open_now == 3:
            gates[0].set()
        await gates[0].wait()
        await answering(words)(request, send)

    plan = ThroughputPass(concurrency=[3], requests=9, max_tokens=32, warmup=0)
    async with serving(reply) as server:
        result = await ThroughputMeasure(plan, PROMPTS, Objectives()).run(context(server))
    assert server.most_open == 3
    assert result.summary["levels"][0]["requests"] == 9


async def test_warm_up_does_not_share_a_prefix() -> None:
    """A measured prompt must not be in the cache because of its own warm-up."""
    plan = ThroughputPass(concurrency=[1], requests=1, max_tokens=32, warmup=1)
    async with serving(answering(words)) as server:
        await ThroughputMeasure(plan, PROMPTS, Objectives()).run(context(server))
    warm_up, measured = (request.body["prompt"] for request in server.requests)
    assert warm_up[0] != measured[0]


async def test_cache_is_flushed_before_each_level() -> None:
    """And a refusal is kept with the result."""
    flushed: list[int] = []

    async def flush() -> bool:
        flushed.append(len(server.requests))
        return len(flushed) == 1

    plan = ThroughputPass(concurrency=[1, 2], requests=3, max_tokens=32, warmup=1)
    async with serving(answering(words)) as server:
        result = await ThroughputMeasure(plan, PROMPTS, Objectives()).run(context(server, flush=flush))
    assert flushed == [3, 6]
    assert result.summary["cache_flushed"] is False


async def test_failed_requests_are_told_and_not_averaged() -> None:
    """One prompt always fails: the pass goes on, and its summary says how often and why."""

    async def reply(request: Request, send: Send) -> None:
        if request.body["id"] == "p1":
            await send(HEAD + events({"t": "x", "n": 1}, {"error": "boom"}))
        else:
            await answering(words)(request, send)

    plan = ThroughputPass(concurrency=[1], requests=6, max_tokens=32, warmup=0)
    async with serving(reply) as server:
        result = await ThroughputMeasure(plan, PROMPTS, Objectives()).run(context(server))
    level = result.summary["levels"][0]
    assert (result.summary["failed"], level["failed"], level["tau_n"]) == (2, 2, 4)
    assert result.summary["errors"] == [{"text": "stream-error: boom", "count": 2}]
    assert level["completion_tokens"] == 4 * 8


async def test_coding_pass(sandbox: LocalSandbox) -> None:
    """Asked one at a time in task order, graded, and the wrong answer named."""
    plan = CodingPass(max_tokens=99, allow_no_isolation=True)
    async with serving(answering(code)) as server:
        result = await CodingMeasure(plan, TASKS, sandbox).run(context(server))
    summary = result.summary
    assert [request.body["id"] for request in server.requests] == ["warm-up:add", "add", "neg"]
    assert [request.body["max"] for request in server.requests] == [99, 99, 99]
    assert server.most_open == 1
    assert (summary["passed"], summary["total"], summary["graded"]) == (1, 2, True)
    assert [task["verdict"] for task in summary["tasks"]] == ["passed", "failed"]
    assert summary["levels"][0]["concurrency"] == 1
    assert summary["isolation"] == sandbox.isolation
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize(("theirs", "warned"), [(1.0, False), (1.5, True)])
async def test_coding_stands_beside_the_engines_counters(sandbox: LocalSandbox, theirs: float, warned: bool) -> None:
    """Read behind the warm-up and before the grading; a disagreement is a finding of the pass."""
    read_after: list[int] = []
    tokens = {request: len(answer.split(" ")) for request, answer in ANSWERS.items()}
    made = sum(tokens.values())

    async def counts() -> ServerCounts:
        read_after.append(len(server.requests))
        return ServerCounts(tokens=1000.0 + (theirs * made if len(read_after) > 1 else 0.0))

    plan = CodingPass(max_tokens=99, allow_no_isolation=True)
    async with serving(answering(lambda request: ANSWERS[request.body["prompt"].split(") ")[-1]])) as server:
        summary = (await CodingMeasure(plan, TASKS, sandbox).run(context(server, counts=counts))).summary
    assert read_after == [1, 3]
    (check,) = summary["cross_check"]
    assert (check["ours"], check["theirs"], check["agrees"]) == (made, theirs * made, not warned)
    assert any(finding["code"] == "cross-check" for finding in summary["findings"]) is warned
    assert summary["dialect"] == "plain"


async def test_digest_is_that_of_the_texts(sandbox: LocalSandbox) -> None:
    """Equal answers, equal digest; another answer, another one."""
    plan = CodingPass(max_tokens=99, allow_no_isolation=True)
    digests = []
    for text in (code, code, words):
        async with serving(answering(text)) as server:
            digests.append((await CodingMeasure(plan, TASKS, sandbox).run(context(server))).summary["text_sha256"])
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 64


class Limits:
    """A sandbox that only limits, and that must not be used."""

    isolation = "rlimits"

    def __init__(self) -> None:
        self.runs = 0

    async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
        self.runs += 1
        return SandboxResult("error")


@pytest.mark.parametrize(("allowed", "graded"), [(False, False), (True, True)])
async def test_no_isolation_is_refused_unless_allowed(allowed: bool, graded: bool) -> None:
    """Answers are asked for and measured all the same; nothing of them is run."""
    limits = Limits()
    plan = CodingPass(allow_no_isolation=allowed)
    async with serving(answering(code)) as server:
        summary = (await CodingMeasure(plan, TASKS, limits).run(context(server))).summary
    assert summary["graded"] is graded
    assert limits.runs == (2 if graded else 0)
    assert summary["why"] == (None if graded else "no isolation")
    assert summary["levels"][0]["completion_tokens"] > 0


async def test_quality_pass_asks_twice_and_sees_loops() -> None:
    """Every prompt twice, divergence from itself, and alarms in the summary."""
    turn = iter(range(100))

    def reply(request: Request) -> str:
        return "again " * 100 if request.body["id"] == "p0" else f"answer {next(turn)} to {request.body['id']}"

    measure = QualityMeasure(QualityPass(min_tau=3.0), PROMPTS, Control("E1", {"p1": "answer 0 to p1", "p2": "else"}))
    async with serving(answering(reply)) as server:
        summary = (await measure.run(context(server))).summary
    assert [request.body["id"] for request in server.requests] == ["warm-up:p0", *["p0", "p1", "p2"] * 2]
    assert (summary["self_divergence"], summary["control"]) == ({"differing": 2, "of": 3}, "E1")
    assert summary["min_tau"] == 3.0
    assert {finding["code"] for finding in summary["findings"]} == {"garbage", "diverged"}


def profile(**changes: Any) -> Profile:
    engine = {"command": ["x"], "model": "m"}
    return Profile.model_validate({"schema": 1, "host": "demo", "engine": engine} | changes)


def test_plan_follows_suite_and_names() -> None:
    """The order asked for, the sizes of the suite, defaults for what the suite lacks."""
    quick = {"throughput": {"concurrency": [1, 4], "requests": 6}}
    built = build_passes(profile(passes={"quick": quick}), "quick", ["throughput", "coding", "quality"], None)
    assert [measure.name for measure in built] == ["throughput", "coding", "quality"]
    assert [measure.total for measure in built] == [12, 5, 16]


@pytest.mark.parametrize("names", [["coding", "throughput"], ["throughput", "quality"], ["quality"]])
async def test_the_work_is_known_before_it_is_measured(names: list[str], sandbox: LocalSandbox) -> None:
    """What a new attempt looks for among the results is what its own result will say."""
    passes = {"quick": {"throughput": {"max_tokens": 24, "requests": 2}, "coding": {"max_tokens": 40}}}
    asked = profile(passes=passes)
    async with serving(answering(lambda _: "one two three")) as server:
        built = build_passes(asked, "quick", names, sandbox)
        summaries = {measure.name: [(await measure.run(context(server))).summary] for measure in built}
    assert work_of(summaries) == planned_work(asked, "quick", names)
    assert planned_work(asked, "quick", names) is not None


def test_no_work_without_a_request_at_concurrency_1() -> None:
    """Such a result has no figure that could be ranked."""
    assert (
        planned_work(profile(passes={"quick": {"throughput": {"concurrency": [4]}}}), "quick", ["throughput"]) is None
    )
    assert work_of({}) is None


def test_a_users_own_tasks_are_their_content(tmp_path: Path) -> None:
    """As prompts are: a changed line makes another work."""
    file = tmp_path / "mine.jsonl"
    keys = []
    for number in (1, 2):
        file.write_text(f'{{"id": "t", "prompt": "p", "entry_point": "f", "tests": "assert f() == {number}"}}\n')
        keys.append(suite_key(str(file)))
    assert keys[0] != keys[1]
    assert all(key.startswith(f"{file}#") for key in keys)
    assert suite_key("small") == "small"


@pytest.mark.parametrize(
    ("suite", "names", "workload"),
    [("quick", ["codng"], "code"), ("slow", ["coding"], "code"), ("quick", ["throughput"], "nowhere.jsonl")],
)
def test_plan_refuses_what_does_not_exist(suite: str, names: list[str], workload: str) -> None:
    """A pass, a suite and a prompt set."""
    with pytest.raises(UsageError):
        build_passes(profile(workload={"prompts": workload}), suite, names, None)
