"""The coding pass: tasks with hidden tests, asked one at a time and graded when all are answered."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ddconsole.core.ports import Prompt
from ddconsole.core.quality import Level, QualityFinding
from ddconsole.core.recipe import FIRST_SAMPLE_SEED
from ddconsole.core.stats import pass_at_k
from ddconsole.passes.base import PassResult, Progress, pass_summary
from ddconsole.passes.crosscheck import CrossCheck
from ddconsole.passes.grade import grade
from ddconsole.passes.level import ONE, clock_findings, flushed, measure_level
from ddconsole.passes.load import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Sandbox
    from ddconsole.core.profile import CodingPass
    from ddconsole.passes.base import PassContext
    from ddconsole.passes.grade import TaskVerdict
    from ddconsole.passes.prompts import Task

NO_ISOLATION = "no isolation"
"""Why nothing was graded on a machine without bubblewrap and namespaces."""

_GREEDY_SAMPLES = QualityFinding(
    Level.NOTE, "greedy-samples", "samples at temperature 0 repeat the greedy answer: pass@1 sees no spread"
)


class CodingMeasure:
    """Every task at concurrency 1, as often as the plan wants samples: these requests give the verdict its τ and tok/s.

    All tasks are asked once before any is asked again, so that an early end leaves whole rounds. Grading comes after
    the last request: it takes no CPU from the tree build of an engine on this machine and is outside of every measured
    time.

    Args:
        suite: what the tasks are, as results are kept under; the plan's word for it by default.
    """

    name = "coding"

    def __init__(
        self, plan: CodingPass, tasks: Sequence[Task], sandbox: Sandbox | None, suite: str | None = None
    ) -> None:
        self._plan = plan
        self._suite = suite or plan.suite
        self._tasks = tuple(tasks) * plan.samples
        self._sandbox = sandbox

    @property
    def total(self) -> int:
        """One request a task and sample."""
        return len(self._tasks)

    async def run(self, context: PassContext) -> PassResult:
        """Warm up, ask every task, then grade."""
        progress = Progress(context, self.total)
        prompts = [self._prompt(number, task) for number, task in enumerate(self._tasks)]
        warm_error = await warm_up(context, prompts[:1], 1)
        emptied = await flushed(context)
        check = await CrossCheck.begin(context)
        level = await measure_level(context, ONE, prompts, progress, emptied=emptied)
        records = level.records
        cross_check = await check.end(records)
        summary = pass_summary(records, [level]) | {
            "suite": self._suite,
            "max_tokens": self._plan.max_tokens,
            "samples": self._plan.samples,
            "not_asked": self.total - len(records),
            "warmup_error": warm_error,
            "cache_flushed": emptied,
            "dialect": context.dialect.name,
            "cross_check": cross_check,
            "text_sha256": text_digest(records) if len(records) == self.total else None,
        }
        if self._plan.samples > 1 and context.workload.temperature == 0:
            summary["findings"].append(_GREEDY_SAMPLES.to_json())
        summary["findings"] += [finding.to_json() for finding in (*check.findings, *clock_findings([level]))]
        summary |= await self._graded(records)
        return PassResult(self.name, summary, records)

    def refusal(self) -> str | None:
        """Why nothing may be graded here, or None."""
        if self._sandbox is None:
            return "no sandbox"
        if self._sandbox.isolation == "rlimits" and not self._plan.allow_no_isolation:
            return NO_ISOLATION
        return None

    def _prompt(self, number: int, task: Task) -> Prompt:
        """Samples of a task share its id, so that they pair, and differ in their seed."""
        seed = (
            None if self._plan.samples == 1 else FIRST_SAMPLE_SEED + number // (len(self._tasks) // self._plan.samples)
        )
        return Prompt(task.id, task.prompt, self._plan.max_tokens, seed)

    async def _graded(self, records: Sequence[RequestRecord]) -> dict[str, Any]:
        """passed and total count what could be scored; both are None when nothing was graded."""
        refusal = self.refusal()
        if refusal is not None or self._sandbox is None:
            return {"passed": None, "total": None, "graded": False, "why": refusal, "isolation": None, "tasks": []}
        plan, sandbox = self._plan, self._sandbox
        asked = zip(self._tasks, records, strict=False)  # at concurrency 1 they end in the order they were asked
        verdicts = [
            await grade(sandbox, task, record, wall_s=plan.grade_wall_s, memory_mb=plan.grade_memory_mb)
            for task, record in asked
        ]
        return score(verdicts) | {"graded": True, "why": None, "isolation": self._sandbox.isolation}


def score(verdicts: Sequence[TaskVerdict]) -> dict[str, Any]:
    """What verdicts come to. `passed` and `total` count answers; `pass_at_1` is the mean over tasks of c/n."""
    scored = [verdict for verdict in verdicts if verdict.scored]
    return {
        "passed": sum(verdict.verdict == "passed" for verdict in scored),
        "total": len(scored),
        "pass_at_1": pass_at_1(scored),
        "truncated": sum(verdict.verdict == "truncated" for verdict in scored),
        "not_scored": len(verdicts) - len(scored),
        "tasks": [verdict.to_json() for verdict in verdicts],
    }


def pass_at_1(scored: Sequence[TaskVerdict]) -> float | None:
    """The mean over tasks of the unbiased estimate of pass@1 from each task's samples; None without a scored answer."""
    answers: dict[str, list[bool]] = {}
    for verdict in scored:
        answers.setdefault(verdict.id, []).append(verdict.verdict == "passed")
    shares = [pass_at_k(len(passed), sum(passed)) for passed in answers.values()]
    return round(sum(shares) / len(shares), 6) if shares else None


def text_digest(records: Sequence[RequestRecord]) -> str | None:
    """SHA-256 over the answers in task order, as a JSON list; None where one is missing. Equal texts, equal digest."""
    if not all(record.ok for record in records):
        return None
    texts = json.dumps([record.text for record in records], ensure_ascii=False)
    return hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()
