"""Grading: right answers pass, wrong ones fail, and nothing passes without solving."""

import asyncio

import pytest
from fakes.records import record

from ddconsole.adapters.sandbox import LocalSandbox
from ddconsole.core.ports import SandboxResult
from ddconsole.passes.grade import TaskVerdict, grade
from ddconsole.passes.prompts import Task, load_suite

ADD = Task("add", "Write add.", "add", "assert add(1, 2) == 3\nassert add('a', 'b') == 'ab'\n")
LIE = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __add__(self, other): return self
    def __bool__(self): return True
    def __abs__(self): return 0
"""


async def graded(
    sandbox: LocalSandbox, code: str, task: Task = ADD, *, finish: str = "stop", wall_s: float = 10.0
) -> TaskVerdict:
    answer = record(task.id, text=f"So:\n```python\n{code}\n```\n", finish_reason=finish)
    return await grade(sandbox, task, answer, wall_s=wall_s)


async def test_right_answer_passes(sandbox: LocalSandbox) -> None:
    """With the counts, and the rule by which the code was found."""
    verdict = await graded(sandbox, "def add(a, b):\n    return a + b")
    assert (verdict.verdict, verdict.tests_passed, verdict.tests_total) == ("passed", 2, 2)
    assert verdict.rule == "last python block with the entry point"


async def test_wrong_answer_names_the_tests(sandbox: LocalSandbox) -> None:
    """Which test failed stands in the verdict; the others were run all the same."""
    verdict = await graded(
        sandbox, "def add(a, b):\n    return a + b if a else 3 if a == 1 else None\n".replace("a + b", "4")
    )
    assert (verdict.verdict, verdict.tests_passed, verdict.tests_total) == ("failed", 0, 2)
    assert verdict.failures[0].startswith("assert add(1, 2) == 3")


EQUAL = "def __eq__(self, other): return True"
CHEATS = {
    "leaves with success": "import sys\ndef add(a, b): return a + b\nsys.exit(0)",
    "leaves in the call": "import sys\ndef add(a, b): sys.exit(0)",
    "leaves at once": "import os\ndef add(a, b): os._exit(0)",
    "leaves while loading": "import os\nos._exit(0)",
    "prints a verdict": "print('ALL TESTS PASSED')\ndef add(a, b): print('passed 2/2'); return 0",
    "equals everything": LIE + "def add(a, b): return Equal()",
    "a number that equals everything": f"class N(int):\n    {EQUAL}\ndef add(a, b): return N(7)",
    "a text that equals everything": f"class S(str):\n    {EQUAL}\ndef add(a, b): return S('x')",
    "a list that equals everything": f"class L(list):\n    {EQUAL}\ndef add(a, b): return L()",
    "redefines helpers": "import builtins\nbuiltins.AssertionError = Exception\ncheck = print\ndef add(a, b): return 0",
    "kills its parent": "import os\ndef add(a, b):\n    os.kill(os.getppid(), 9)\n    return a + b",
    "closes its pipes": "import os\ndef add(a, b):\n    os.closerange(3, 60)\n    return a + b",
    "no entry point": "def sub(a, b): return a - b",
    "another kind of entry point": "add = 7",
    "does not compile": "def add(a, b) return a",
    "raises": "def add(a, b): raise RuntimeError('no')",
    "asks for input": "def add(a, b): return int(input())",
    "recurses without end": "def add(a, b): return add(a, b)",
    "raises what is no exception": "class E(BaseException): pass\ndef add(a, b): raise E('x')",
    "looks for the tests": (
        "import os\ndef add(a, b):\n"
        "    for fd in os.listdir('/proc/%d/fd' % os.getppid()):\n"
        "        open('/proc/%d/fd/%s' % (os.getppid(), fd), 'w').write('passed')\n"
        "    return 0"
    ),
}


@pytest.mark.parametrize("name", CHEATS)
async def test_passing_without_solving(sandbox: LocalSandbox, name: str) -> None:
    """None of these passes, and each is scored as a failed answer."""
    verdict = await graded(sandbox, CHEATS[name], wall_s=5.0)
    assert verdict.verdict in ({"signalled"} if name == "kills its parent" else {"failed", "error"})
    assert verdict.scored
    assert verdict.detail


async def test_printing_does_not_disturb(sandbox: LocalSandbox) -> None:
    """An answer may print, and have a main part that is not run."""
    main = "if __name__ == '__main__':\n    raise SystemExit(1)"
    code = f"print('hi')\ndef add(a, b):\n    print(a)\n    return a + b\n{main}"
    assert (await graded(sandbox, code)).verdict == "passed"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def add(a, b):\n    while True: pass", "timeout"),
        ("def add(a, b):\n    while True: print('x' * 10**5)", "output"),
        ("def add(a, b):\n    return bytearray(10**12)", "memory"),
        ("x = bytearray(10**12)\ndef add(a, b): return a + b", "memory"),
    ],
)
async def test_each_excess_has_its_own_verdict(sandbox: LocalSandbox, code: str, expected: str) -> None:
    """Time, output and memory."""
    assert (await graded(sandbox, code, wall_s=1.5)).verdict == expected


VALUES = Task(
    "values",
    "",
    "f",
    """
def raised(value):
    try:
        f(value)
    except ValueError as error:
        return str(error)

plain = (None, True, 3, 2.5, float("inf"), "é\\udc00", b"x", 1j, 10**5000)
for value in (*plain, (1, [2]), {1: (2,)}, {3}, frozenset([4]), range(3)):
    assert f(value) == value, value
    assert type(f(value)) is type(value)
assert list(f(iter([1, 2]))) == [1, 2]
assert raised("raise") == "as asked"
given = [3, 1]
table = {}
assert f(given, sort=True) is None
assert given == [1, 3]
assert f(table, sort=False) is None and table == {"k": 1}
made = f("object")
made.put(5)
assert made.got == [5] and made.last() == 5
""",
)
ECHO = """
class Thing:
    def __init__(self): self.got = []
    def put(self, x): self.got.append(x)
    def last(self): return self.got[-1]

def f(value, sort=None):
    if value == "raise": raise ValueError("as asked")
    if value == "object": return Thing()
    if sort: value.sort()
    elif sort is False: value["k"] = 1
    else: return value
"""


async def test_values_cross_unchanged(sandbox: LocalSandbox) -> None:
    """Types, exceptions, changed arguments and objects come over as in one process."""
    verdict = await graded(sandbox, ECHO, VALUES)
    assert (verdict.verdict, verdict.failures, verdict.detail) == ("passed", (), "")


@pytest.mark.parametrize(
    ("tests", "detail"),
    [
        ("", "the task has no tests"),
        ("x = add(1, 2)", "the task has no tests"),
        ("helper = missing_name\nassert add(1, 2) == 3", "NameError"),
        ("assert add(1, 2) ==", "SyntaxError"),
    ],
)
async def test_broken_tests_are_not_scored(sandbox: LocalSandbox, tests: str, detail: str) -> None:
    """No tests, or tests that fail by themselves, say nothing about the answer."""
    task = Task("add", "", "add", tests)
    verdict = await graded(sandbox, "def add(a, b):\n    return a + b", task)
    assert verdict.verdict == "not-scored"
    assert detail in verdict.detail


async def test_check_function_as_in_humaneval(sandbox: LocalSandbox) -> None:
    """`check(candidate)` is one test, its definition none."""
    task = Task("add", "", "add", "def check(candidate):\n    assert candidate(1, 2) == 3\n\ncheck(add)\n")
    right, wrong = await asyncio.gather(
        graded(sandbox, "def add(a, b): return a + b", task), graded(sandbox, "def add(a, b): return 0", task)
    )
    assert (right.verdict, right.tests_total, wrong.verdict) == ("passed", 1, "failed")


class NeverRuns:
    isolation = "bubblewrap"

    async def run_python(self, source: str, *, wall_s: float = 10.0, memory_mb: int = 512) -> SandboxResult:
        raise AssertionError("nothing is to be run")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"error": "cut: gone"}, "not-scored"),
        ({"text": "", "finish_reason": "stop"}, "no-answer"),
        ({"text": "<think>hm", "finish_reason": "length"}, "truncated"),
        ({"text": "I will now", "finish_reason": "length"}, "truncated"),
        ({"text": "Sorry, no."}, "no-answer"),
    ],
)
async def test_nothing_to_run(changes: dict[str, str], expected: str) -> None:
    """Failed requests, empty and truncated answers do not reach the sandbox."""
    assert (await grade(NeverRuns(), ADD, record("add", **changes))).verdict == expected


async def test_cut_answer_that_fails_is_truncated(sandbox: LocalSandbox) -> None:
    """An open block that was cut is not a wrong answer; if it is whole all the same it passes."""
    half = record("add", text="```python\ndef add(a, b):\n    ret", finish_reason="length")
    whole = record("add", text="```python\ndef add(a, b):\n    return a + b", finish_reason="length")
    verdicts = await asyncio.gather(grade(sandbox, ADD, half), grade(sandbox, ADD, whole))
    assert [verdict.verdict for verdict in verdicts] == ["truncated", "passed"]


async def test_references_of_the_shipped_suite_pass(sandbox: LocalSandbox) -> None:
    """And each fails when its result is changed, so the tests test something."""
    for task in load_suite("small"):
        right = await graded(sandbox, task.reference, task)
        spoilt = (
            f"{task.reference}\n_right = {task.entry_point}\ndef {task.entry_point}(*a): _right(*a); return 'spoilt'"
        )
        wrong = await graded(sandbox, spoilt, task)
        assert (task.id, right.verdict, right.failures) == (task.id, "passed", ())
        assert (task.id, wrong.verdict) == (task.id, "failed")
