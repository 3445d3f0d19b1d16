"""One answer, graded by the hidden tests of its task in the sandbox."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ddconsole.passes.extract import extract_answer

if TYPE_CHECKING:
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import Sandbox, SandboxResult
    from ddconsole.passes.extract import Extracted
    from ddconsole.passes.prompts import Task

WALL_S = 10.0
"""Seconds that the tests of one task may take."""

MEMORY_MB = 512
"""Address space of each process in the sandbox."""

ENDED = ("timeout", "output", "memory", "processes")
"""Verdicts of the sandbox that stand whatever the tests had said until then: it ended the run."""

NAMED = ("network", "home", "files", "parent", "children", "signalled")
"""Verdicts that say why the tests did not come to their end."""

LOADER = """import sys, types
for name, text in {modules!r}:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
"""
"""Makes a program of modules that are not installed where it runs."""


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """How one task went.

    Attributes:
        verdict: passed, failed, error, timeout, memory, output, processes, truncated, no-answer, not-scored; where
            the tests did not come to their end, also what the sandbox says of that: network, home, files, parent,
            children, signalled.
        detail: what failed, in a line.
        rule: how the code was found in the answer.
        scored: it counts in the rate; a request that failed and tests that are broken do not.
    """

    id: str
    verdict: str
    detail: str = ""
    tests_passed: int = 0
    tests_total: int = 0
    failures: tuple[str, ...] = ()
    rule: str = ""
    seconds: float = 0.0

    @property
    def scored(self) -> bool:
        """It is part of the rate."""
        return self.verdict != "not-scored"

    def to_json(self) -> dict[str, Any]:
        """An item of the coding summary's `tasks`."""
        return {
            "id": self.id,
            "verdict": self.verdict,
            "detail": self.detail,
            "tests_passed": self.tests_passed,
            "tests_total": self.tests_total,
            "failures": list(self.failures),
            "rule": self.rule,
            "grading_s": round(self.seconds, 3),
        }


async def grade(
    sandbox: Sandbox, task: Task, record: RequestRecord, *, wall_s: float = WALL_S, memory_mb: int = MEMORY_MB
) -> TaskVerdict:
    """Extract the code of a request's answer and run the task's tests on it, behind what the task gives it."""
    if not record.ok:
        return TaskVerdict(task.id, "not-scored", f"the request failed: {record.error}"[:300])
    found = extract_answer(record.text, task.entry_point, record.finish_reason)
    if found.code is None:
        cut = found.cut or record.finish_reason == "length"
        return TaskVerdict(task.id, "truncated" if cut else "no-answer", found.rule, rule=found.rule)
    secret = secrets.token_hex(16)
    program = jury_program(task, f"{task.preamble}\n{found.code}" if task.preamble else found.code, secret)
    result = await sandbox.run_python(program, wall_s=wall_s, memory_mb=memory_mb)
    return _verdict(task, found, result, secret)


def jury_program(task: Task, code: str, secret: str) -> str:
    """The program that the sandbox runs: the jury, told the tests, the answer and its secret."""
    case = {"answer": code, "tests": task.tests, "entry_point": task.entry_point}
    modules = ("crossing", "jury")
    call = f"sys.modules['ddconsole.passes.jury'].hold({case!r}, {secret!r}, {_witness_program()!r})\n"
    return _loader(modules) + call


@cache
def _witness_program() -> str:
    return _loader(("crossing", "witness")) + "sys.modules['ddconsole.passes.witness'].main()\n"


@cache
def _loader(names: tuple[str, ...]) -> str:
    folder = resources.files("ddconsole.passes")
    sources = [(f"ddconsole.passes.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in names]
    return LOADER.format(modules=[("ddconsole", ""), ("ddconsole.passes", ""), *sources])


def _verdict(task: Task, found: Extracted, result: SandboxResult, secret: str) -> TaskVerdict:
    """What the sandbox and the jury say together."""

    def told(verdict: str, detail: str, **counts: Any) -> TaskVerdict:
        if found.cut and verdict in ("failed", "error", *NAMED):
            verdict, detail = "truncated", f"cut by max_tokens: {detail}"
        return TaskVerdict(task.id, verdict, detail[:300], rule=found.rule, seconds=result.seconds, **counts)

    if result.verdict in ENDED:
        return told(result.verdict, f"the sandbox ended it: {result.verdict}")
    if result.verdict == "no-isolation":
        return told("not-scored", "no isolation")
    report = _report(result.stdout, secret)
    if report is None:
        verdict = result.verdict if result.verdict in NAMED else "error"
        return told(verdict, f"the tests did not come to their end: {_last_line(result.stderr)}")
    counts = {
        "tests_passed": report["passed"],
        "tests_total": report["total"],
        "failures": tuple(report["failures"]),
    }
    if report.get("grader") or not report["total"]:
        return told("not-scored", report.get("grader") or "the task has no tests", **counts)
    if report.get("memory"):
        return told("memory", "the answer ran out of memory", **counts)
    if report["error"]:
        return told("error", report["error"], **counts)
    if report["passed"] == report["total"]:
        return told("passed", "", **counts)
    return told("failed", report["failures"][0] if report["failures"] else "", **counts)


def _report(stdout: str, secret: str) -> dict[str, Any] | None:
    """The jury's report: behind its secret, on the last line; None where it never came."""
    last = stdout.rstrip("\n").rpartition("\n")[2]
    if not last.startswith(secret):
        return None
    report = json.loads(last.removeprefix(secret))
    return report if isinstance(report, dict) else None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
