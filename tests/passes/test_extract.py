"""Which part of an answer is the code, and by which rule."""

import pytest

from ddconsole.passes.extract import extract_answer

DEF = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"


def fence(code: str, info: str = "python", mark: str = "```") -> str:
    return f"{mark}{info}\n{code}{mark}\n"


CASES: dict[str, tuple[str, str]] = {
    "one block": (f"Here:\n\n{fence(DEF)}\nDone.", "last python block with the entry point"),
    "think tags with a draft": (
        f"<think>maybe\n{fence(WRONG)}hm</think>\n{fence(DEF)}",
        "last python block with the entry point",
    ),
    "only the closing tag": (f"maybe\n{fence(WRONG)}</think>\n{fence(DEF)}", "last python block with the entry point"),
    "draft, tests, final": (
        fence(WRONG) + fence("assert add(1, 2) == 3\n") + fence(DEF),
        "last python block with the entry point",
    ),
    "tests after the final": (fence(DEF) + fence("assert add(1, 2) == 3\n"), "last python block with the entry point"),
    "bash and output after it": (
        fence(DEF) + fence("python add.py\n", "bash") + fence("3\n", "text"),
        "last python block with the entry point",
    ),
    "another language name": (fence(DEF, "cython"), "last block with the entry point"),
    "no language": (fence(DEF, ""), "last python block with the entry point"),
    "Python3 and attributes": (
        fence(DEF, "Python3 title=add.py") + fence("x\n", "{.text}"),
        "last python block with the entry point",
    ),
    "tildes": (fence(DEF, "py", "~~~"), "last python block with the entry point"),
    "four back-ticks around three": (
        fence("x = '''\n```\n'''\n" + DEF, "python", "````"),
        "last python block with the entry point",
    ),
    "indented in a list": (
        "1. So:\n\n   ```python\n   def add(a, b):\n       return a + b\n   ```\n",
        "last python block with the entry point",
    ),
    "CRLF": (fence(DEF).replace("\n", "\r\n"), "last python block with the entry point"),
    "missing closing fence": (f"```python\n{DEF}", "last python block with the entry point"),
    "a class as the entry point": (fence("class add:\n    pass\n"), "last python block with the entry point"),
    "no fence at all": (DEF, "whole text"),
    "prose around code without a fence": (f"Sure, here it is.\n\n{DEF}\nThis adds two numbers.", "code in prose"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_found(name: str) -> None:
    """The code defines the entry point, runs, and adds."""
    text, rule = CASES[name]
    found = extract_answer(text, "add", "stop")
    assert found.rule == rule
    assert not found.cut
    space: dict[str, object] = {}
    exec(found.code or "", space)
    made = space["add"]
    assert isinstance(made, type) or made(2, 3) == 5  # type: ignore[operator]


def test_a_fence_inside_a_docstring_does_not_end_the_block() -> None:
    """Docstrings of answers hold examples in fences."""
    code = 'def add(a, b):\n    """Add.\n\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    assert extract_answer(fence(code), "add").code == code


@pytest.mark.parametrize(
    ("text", "finish", "rule", "cut"),
    [
        ("<think>so we\n```python\ndef add(", "length", "reasoning never ended", True),
        ("<think>so we", "stop", "reasoning never ended", False),
        ("", "stop", "empty answer", False),
        ("  \n", "length", "empty answer", True),
        ("<think>x</think>\n", "stop", "empty answer", False),
        ("I cannot do that.", "stop", "no code", False),
        (fence("ls\n", "bash"), "stop", "no code", False),
    ],
)
def test_no_answer(text: str, finish: str, rule: str, cut: bool) -> None:
    """Why there is nothing to run, and whether max_tokens is to blame."""
    found = extract_answer(text, "add", finish)
    assert (found.code, found.rule, found.cut) == (None, rule, cut)


def test_cut_inside_the_block_is_told() -> None:
    """The block never closed and max_tokens ended the answer; a closed one before it counts as whole."""
    assert extract_answer("```python\ndef add(a, b):\n    ret", "add", "length").cut
    assert not extract_answer(fence(DEF) + "And then", "add", "length").cut
