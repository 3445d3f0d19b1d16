"""Waiting experiments as YAML and back: exactly, and refused with file, line and column."""

from dataclasses import replace

import pytest
from fakes.queues import TREE, applied, begun, context, queue_of
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.adapters import queue_file
from ddconsole.core.errors import RefusedError, UsageError
from ddconsole.core.exchange import Sheet, sheet_of
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Change, Draft, Queue, by_id
from ddconsole.core.spec import Command


def written(queue: Queue) -> str:
    """The document of all that waits."""
    sheet = sheet_of(queue, (), context(queue))
    assert isinstance(sheet, Sheet)
    return queue_file.write("lab", sheet)


def read(text: str, queue: Queue) -> tuple[Command | None, int]:
    """What the document comes to."""
    return queue_file.read_command(text.encode(), "q.yaml", "lab", context(queue))


def test_what_was_written_and_not_changed_changes_nothing() -> None:
    queue = queue_of(3)
    assert read(written(queue), queue) == (None, queue.revision)


NOTES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Co", "Zl", "Zp")), min_size=1, max_size=30)


@given(NOTES)
def test_any_note_comes_back_as_it_was(note: str) -> None:
    """Numbers, dates, `on`, colons, quotes, emoji: text stays the text that was typed."""
    queue = applied(Queue(), Add((Draft(TREE, note=note), Draft(None, note=f"{note}!")), Origin()))
    assert read(written(queue), queue)[0] is None


def test_a_document_can_be_edited_as_it_says() -> None:
    queue = queue_of(2)
    text = written(queue).replace("B=16", "B=48  # more").replace("- id: E1\n", "- id: E1\n  note: 012\n  held: yes\n")
    command, seen = read(text, queue)
    assert command is not None
    after = applied(queue, command.edit)
    e1, e2 = by_id(after, "E1"), by_id(after, "E2")
    assert e1 is not None
    assert e2 is not None
    assert (e1.note, e1.state.name, e2.config and e2.config.budget) == ("012", "held", 48)
    assert seen == queue.revision


def test_a_condition_is_shown_as_a_comment_and_kept() -> None:
    queue = queue_of(2)
    queue = replace(queue, items=(queue.items[0], replace(queue.items[1], requires="E1")))
    text = written(queue)
    assert "# the next one starts only if E1 passes\n- id: E2" in text
    command, _ = read(text.replace("B=16", "B=48"), queue)
    assert command is not None
    changed = by_id(applied(queue, command.edit), "E2")
    assert changed is not None
    assert changed.requires == "E1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "q.yaml is empty"),
        ("experiments:\n  - spec: B=20\n  - spec: B=x\n", "q.yaml:3:5: column 3 of `B=x`: `x` is no value for budget"),
        ("experiments:\n  - spek: B=20\n", "q.yaml:2:5: unknown key spek"),
        ("experiments:\n  - B=20\n", "q.yaml:2:5: an entry has keys"),
        ("experiments:\n  - {spec: B=20, held: maybe}\n", "held is true or false, not 'maybe'"),
        ("experiments:\n  - {spec: [B=20]}\n", "q.yaml:2:6: spec is a text"),
        ("experiments: 3\n", "q.yaml:1:1: experiments is a list"),
        ("profile: other\nexperiments: []\n", "q.yaml:1:1: this is the queue of other, not of lab"),
        ("revision: new\n", "q.yaml:1:1: 'new' is no revision"),
        ("experiments:\n  - spec: B=20\n    spec: B=24\n", "q.yaml:3:5: the key spec is given twice, in lines 2 and 3"),
        ("experiments:\n\t- spec: B=20\n", "q.yaml:2:1: "),
        ("a: !!python/object:os.system x\n", "q.yaml:1:"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, told: str) -> None:
    """As a bad document, never as a bad profile."""
    with pytest.raises(UsageError) as caught:
        read(text, queue_of(1))
    assert told in caught.value.what
    assert caught.value.kind == "usage"


def test_what_has_started_meanwhile_refuses_the_whole_with_its_line() -> None:
    queue = queue_of(2)
    text = written(queue)
    number = text.splitlines().index("- id: E1") + 1
    with pytest.raises(RefusedError, match=rf"^q.yaml:{number}:3: E1 is running and stays as it is"):
        read(text.replace("B=16", "B=48"), begun(queue, "E1"))


def test_a_change_by_another_is_seen_as_stale_through_the_revision() -> None:
    """The document still says what stood; taking it would undo the other's edit, so its revision goes along."""
    queue = queue_of(1)
    command, seen = read(written(queue), applied(queue, Change("E1", repeats=5)))
    assert command is not None
    assert seen == queue.revision


def test_what_is_left_out_does_not_move_the_place_of_a_mistake() -> None:
    """The line is the one in the file, whatever of it is passed over."""
    queue = queue_of(3)
    text = written(queue).replace("B=20", "B=oops")
    line = next(number for number, words in enumerate(text.splitlines(), start=1) if "oops" in words)
    with pytest.raises(UsageError, match=rf"q.yaml:{line}:3: .*oops"):
        queue_file.read_command(text.encode(), "q.yaml", "lab", context(queue), without=("E1",))
    assert queue_file.read_command(text.encode(), "q.yaml", "lab", context(queue), without=("E3",))[0] is None
    assert queue_file.read_sheet(text.encode(), "q.yaml", "lab").of == ("E1", "E2", "E3")


@pytest.mark.parametrize("entries", ["", " []", " null"])
def test_a_document_that_was_cut_off_removes_nothing(entries: str) -> None:
    """No entry of many: refused with its line; the queue keeps all."""
    queue = queue_of(2)
    whole = written(queue)
    cut = whole[: whole.index("experiments:") + len("experiments:")] + entries + "\n"
    with pytest.raises(UsageError, match="experiments is empty, and so nothing is changed"):
        read(cut, queue)
