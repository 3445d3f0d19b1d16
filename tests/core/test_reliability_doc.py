"""docs/reliability.md is true as far as this can be checked: every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`")


def named() -> list[tuple[str, str | None]]:
    """(file, test or None) of every name, a bare `::test` being of the file named before it."""
    found: list[tuple[str, str | None]] = []
    for path, test in _NAMED.findall(TEXT):
        if path or test:
            found.append((path or found[-1][0], test or None))
    return found


def functions_of(path: str) -> set[str]:
    """Names of the test functions in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_document_names_tests() -> None:
    """The pattern finds them: nothing is checked by a pattern that finds nothing."""
    assert len(named()) > 80
    assert ("tests/runner/test_tries.py", None) in named()


@pytest.mark.parametrize(("path", "test"), sorted(set(named()), key=str), ids=lambda part: str(part))
def test_every_named_test_exists(path: str, test: str | None) -> None:
    """The file, and the test in it."""
    assert (ROOT / path).is_file()
    assert test is None or test in functions_of(path)


def test_every_row_names_a_test_or_a_program() -> None:
    """A promise without a test is no promise."""
    rows = [
        line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "| fault"))
    ]
    assert len(rows) > 50
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_make_target_that_it_names_exists() -> None:
    """`make faults`, `make fuzz`, `make soak`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make (\w+)", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
