"""Several answers to each task: asked in rounds with seeds, graded one by one, scored without bias."""

from typing import Any

import pytest
from fakes.sse_server import PlainDialect, Request, answering, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.sandbox import LocalSandbox
from ddconsole.core.experiment import Workload
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Prompt, SandboxResult
from ddconsole.core.profile import CodingPass
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect
from ddconsole.passes.base import PassContext
from ddconsole.passes.coding import CodingMeasure, score
from ddconsole.passes.grade import TaskVerdict, grade
from ddconsole.passes.prompts import Task

ADD = Task("add", "Write add.", "add", "assert add(1, 2) == 3\nassert add(0, 0) == 0")
NEG = Task("neg", "Write neg.", "neg", "assert neg(1) == -1")


def context(url: str, **changes: Any) -> PassContext:
    fields: dict[str, Any] = {
        "base_url": url,
        "dialect": PlainDialect(),
        "workload": Workload(temperature=0.7),
        "clock": SystemClock(),
        "on_request": lambda *_: None,
    }
    return PassContext(**fields | changes)


async def test_rounds_of_samples(sandbox: LocalSandbox) -> None:
    """Each task once before any twice; one answer of three is wrong: pass@1 is the mean over tasks of c/n."""
    asked: list[str] = []

    def reply(request: Request) -> str:
        name = "add" if "add" in request.body["prompt"] else "neg"
        asked.append(name)
        wrong = name == "add" and asked.count("add") == 3  # the warm-up is the first
        body = "def add(a, b): return a + b + 1" if wrong else "def add(a, b): return a + b"
        return f"```python\n{body if name == 'add' else 'def neg(a): return -a'}\n```"

    plan = CodingPass(samples=3, allow_no_isolation=True)
    async with serving(answering(reply)) as server:
        result = await CodingMeasure(plan, (ADD, NEG), sandbox).run(context(server.url))
    summary = result.summary
    assert asked[1:] == ["add", "neg"] * 3
    assert (summary["passed"], summary["total"], summary["samples"]) == (5, 6, 3)
    assert summary["pass_at_1"] == pytest.approx((2 / 3 + 1) / 2)
    failed = [task for task in summary["tasks"] if task["verdict"] == "failed"]
    assert [(task["id"], task["failures"][0].split(":")[0]) for task in failed] == [("add", "assert add(1, 2) == 3")]
    assert summary["by_prompt"].keys() == {"add", "neg"}
    assert [record.text for record in result.records].count("```python\ndef add(a, b): return a + b + 1\n```") == 1


def test_unbalanced_samples_are_weighed_by_task() -> None:
    """4 of 4 and 0 of 1 are 0.5, not 0.8; what was not scored is left out."""
    verdicts = [TaskVerdict("a", "passed")] * 4 + [TaskVerdict("b", "failed"), TaskVerdict("b", "not-scored")]
    found = score(verdicts)
    assert (found["passed"], found["total"], found["pass_at_1"], found["not_scored"]) == (4, 5, 0.5, 1)
    assert score([TaskVerdict("a", "not-scored")])["pass_at_1"] is None


async def test_seeds_differ_by_sample_and_not_by_config() -> None:
    """The first round has seed 1, the second 2; a single sample leaves the seed to the engine."""
    seen: list[Prompt] = []

    class Spy(PlainDialect):
        def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> Any:
            seen.append(prompt)
            return super().request(prompt, workload, ignore_eos=ignore_eos)

    for samples in (2, 1):
        async with serving(answering(lambda _: "none")) as server:
            plan = CodingPass(samples=samples)
            await CodingMeasure(plan, (ADD, NEG), None).run(context(server.url, dialect=Spy()))
    measured = [prompt for prompt in seen if not prompt.id.startswith("warm-up")]
    assert [(prompt.id, prompt.seed) for prompt in measured] == [
        ("add", 1), ("neg", 1), ("add", 2), ("neg", 2), ("add", None), ("neg", None),
    ]  # fmt: skip


def test_seeds_reach_the_engine() -> None:
    """By SGLang's own name in /generate, by OpenAI's in chat; nothing is sent where there is none."""
    seeded, plain = Prompt("a", "x", 8, 7), Prompt("a", "x", 8)
    assert NativeDialect().request(seeded, Workload()).body["sampling_params"]["sampling_seed"] == 7
    assert ChatDialect().request(seeded, Workload()).body["seed"] == 7
    assert "sampling_seed" not in NativeDialect().request(plain, Workload()).body["sampling_params"]
    assert "seed" not in ChatDialect().request(plain, Workload()).body


@pytest.mark.parametrize(("temperature", "samples", "noted"), [(0.0, 2, True), (0.7, 2, False), (0.0, 1, False)])
async def test_samples_of_a_greedy_workload_are_noted(temperature: float, samples: int, noted: bool) -> None:
    """They repeat one answer, so their spread says nothing."""
    async with serving(answering(lambda _: "none")) as server:
        measure = CodingMeasure(CodingPass(samples=samples), (ADD,), None)
        summary = (await measure.run(context(server.url, workload=Workload(temperature=temperature)))).summary
    assert any(finding["code"] == "greedy-samples" for finding in summary["findings"]) is noted


async def test_an_early_end_leaves_what_was_answered(sandbox: LocalSandbox) -> None:
    """Three of six asked: they are graded, the rest is counted as not asked, and the texts have no common digest."""
    async with serving(answering(lambda _: "```python\ndef add(a, b): return a + b\n```")) as server:
        plan = CodingPass(samples=6, allow_no_isolation=True)
        enough = context(server.url, enough=lambda records, total: len(records) >= 3 and total == 6)
        summary = (await CodingMeasure(plan, (ADD,), sandbox).run(enough)).summary
    assert (summary["requests"], summary["passed"], summary["total"], summary["not_asked"]) == (3, 3, 3, 3)
    assert summary["text_sha256"] is None


async def test_limits_of_grading_come_from_the_profile() -> None:
    """Wall time and memory."""
    limits: list[tuple[float, int]] = []

    class Asked:
        isolation = "bubblewrap"

        async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
            limits.append((wall_s, memory_mb))
            return SandboxResult("timeout")

    async with serving(answering(lambda _: "```python\ndef add(a, b): return a + b\n```")) as server:
        plan = CodingPass(grade_wall_s=3.5, grade_memory_mb=256)
        await CodingMeasure(plan, (ADD,), Asked()).run(context(server.url))
    assert limits == [(3.5, 256)]


async def test_a_preamble_stands_in_front_of_every_answer(sandbox: LocalSandbox) -> None:
    """What the task gives need not be repeated, and may be."""
    task = Task("root", "…", "root", "assert root(9) == 3", preamble="import math\nZERO = 0")
    for body in ("def root(x): return math.isqrt(x) + ZERO", "import math\ndef root(x): return math.isqrt(x)"):
        answer = RequestRecord("root", text=f"```python\n{body}\n```", completion_tokens=1)
        assert (await grade(sandbox, task, answer)).verdict == "passed"
