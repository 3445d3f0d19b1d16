"""The coding pass: tasks with hidden tests, asked one at a time and graded when all are answered."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ddconsole.core.levels import summarise_level
from ddconsole.core.ports import Prompt
from ddconsole.passes.base import PassResult, Progress, pass_summary
from ddconsole.passes.grade import TaskVerdict, grade
from ddconsole.passes.load import LoadWatch, closed_loop, warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Sandbox
    from ddconsole.core.profile import CodingPass
    from ddconsole.passes.base import PassContext
    from ddconsole.passes.prompts import Task

NO_ISOLATION = "no isolation"
"""Why nothing was graded on a machine without bubblewrap and namespaces."""


class CodingMeasure:
    """Every task once, at concurrency 1: these requests give the verdict its τ and its tok/s.

    Grading comes after the last request, so that it takes no CPU from the tree build of an engine on this machine and
    is outside of every measured time.
    """

    name = "coding"

    def __init__(self, plan: CodingPass, tasks: Sequence[Task], sandbox: Sandbox | None) -> None:
        self._plan = plan
        self._tasks = tuple(tasks)
        self._sandbox = sandbox

    @property
    def total(self) -> int:
        """One request a task."""
        return len(self._tasks)

    async def run(self, context: PassContext) -> PassResult:
        """Warm up, ask every task, then grade."""
        progress = Progress(context, self.total)
        prompts = [Prompt(task.id, task.prompt, self._plan.max_tokens) for task in self._tasks]
        warm_error = await warm_up(context, prompts[:1], 1)
        watch = LoadWatch()
        async with watch.watching():
            records, wall_s = await closed_loop(context, prompts, 1, progress.add)
        level = summarise_level(records, wall_s, 1, load=watch.result())
        summary = pass_summary(records, [level]) | {
            "suite": self._plan.suite,
            "max_tokens": self._plan.max_tokens,
            "warmup_error": warm_error,
            "text_sha256": text_digest(records),
        }
        summary |= await self._graded(records)
        return PassResult(self.name, summary, tuple(records))

    def refusal(self) -> str | None:
        """Why nothing may be graded here, or None."""
        if self._sandbox is None:
            return "no sandbox"
        if self._sandbox.isolation == "rlimits" and not self._plan.allow_no_isolation:
            return NO_ISOLATION
        return None

    async def _graded(self, records: Sequence[RequestRecord]) -> dict[str, Any]:
        """passed and total count what could be scored; both are None when nothing was graded."""
        refusal = self.refusal()
        if refusal is not None or self._sandbox is None:
            return {"passed": None, "total": None, "graded": False, "why": refusal, "isolation": None, "tasks": []}
        verdicts = [await grade(self._sandbox, *pair) for pair in zip(self._tasks, records, strict=True)]
        return _score(verdicts) | {"graded": True, "why": None, "isolation": self._sandbox.isolation}


def _score(verdicts: Sequence[TaskVerdict]) -> dict[str, Any]:
    """The counts; truncated answers are in the total and told apart."""
    scored = [verdict for verdict in verdicts if verdict.scored]
    return {
        "passed": sum(verdict.verdict == "passed" for verdict in scored),
        "total": len(scored),
        "truncated": sum(verdict.verdict == "truncated" for verdict in scored),
        "not_scored": len(verdicts) - len(scored),
        "tasks": [verdict.to_json() for verdict in verdicts],
    }


def text_digest(records: Sequence[RequestRecord]) -> str | None:
    """SHA-256 over the answers in task order, as a JSON list; None where one is missing. Equal texts, equal digest."""
    if not all(record.ok for record in records):
        return None
    texts = json.dumps([record.text for record in records], ensure_ascii=False)
    return hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()
