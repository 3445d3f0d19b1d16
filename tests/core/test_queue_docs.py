"""docs/queue.md says what is so: every example of the language is read, and every refusal has its column and reason."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.queues import NOW, TREE, applied, begun, context

from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Failed, Origin
from ddconsole.core.queue import Add, Draft, Queue, Refusal, apply
from ddconsole.core.spec import VERBS, SpecContext, SpecRefusal, parse

TEXT = (Path(__file__).parents[2] / "docs" / "queue.md").read_text(encoding="utf-8")


def examples(kind: str) -> list[tuple[str, str]]:
    """Lines of the fenced blocks of a kind, each with its comment."""
    blocks = re.findall(rf"```{kind}\n(.*?)```", TEXT, flags=re.DOTALL)
    lines = [line.partition("  #") if "  #" in line else line.partition(" #") for line in "".join(blocks).splitlines()]
    return [(line.strip(), comment.strip()) for line, _, comment in lines]


@pytest.fixture
def told() -> SpecContext:
    """The queue that the examples speak of."""
    queue = applied(
        Queue(next_experiment=12, next_sweep=3),
        Add((Draft(replace(TREE, budget=40)), Draft(replace(TREE, budget=44))), Origin()),
        Add((Draft(TREE), Draft(replace(TREE, budget=16))), Origin(), as_sweep=True),
        Add((Draft(replace(TREE, budget=20)), Draft(replace(TREE, budget=24))), Origin()),
    )
    failed = replace(queue.items[0], state=Failed(1, Failure("gpu-oom", "it did not fit")))
    return context(begun(replace(queue, items=(failed, *queue.items[1:])), "E14"))


def test_the_document_has_examples_of_every_verb() -> None:
    """A verb that is not shown is not found."""
    assert {line.split()[0] for line, _ in examples("spec")} == set(VERBS)


@pytest.mark.parametrize("line", [line for line, _ in examples("spec")])
def test_every_example_is_read_and_allowed(line: str, told: SpecContext) -> None:
    """Against the queue that the document describes."""
    found = parse(line, told)
    assert not isinstance(found, SpecRefusal), found
    done = apply(told.queue, found.edit, now=NOW)
    if isinstance(done, Refusal):  # what they take back stands one line above, and each line is read by itself
        assert (line, done.code) in (("release E16", "no-change"), ("redo", "nothing-to-redo"))


@pytest.mark.parametrize(("line", "comment"), examples("refused"))
def test_every_refusal_has_the_column_and_the_reason_that_the_document_says(
    line: str, comment: str, told: SpecContext
) -> None:
    """So that the words in the document are the words on the screen."""
    found = parse(line, told)
    assert isinstance(found, SpecRefusal)
    column, _, reason = comment.removeprefix("column ").partition(": ")
    assert (found.column, reason in found.reason) == (int(column), True), found
