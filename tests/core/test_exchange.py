"""A sheet of waiting experiments, changed by an editor, comes to one edit."""

from dataclasses import replace

import pytest
from fakes.queues import TREE, applied, begun, context, line, queue_of, state

from ddconsole.core.exchange import Entry, Sheet, SheetRefused, command_of, leaving_out, overtaken, sheet_of
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Hold, Queue, Refusal, Undo, by_id


def sheet(queue: Queue, *ids: str) -> Sheet:
    """The sheet that is written out."""
    found = sheet_of(queue, ids, context(queue))
    assert isinstance(found, Sheet), found
    return found


def taken(queue: Queue, changed: Sheet) -> Queue:
    """The queue after a changed sheet."""
    command = command_of(changed, context(queue))
    assert command is not None
    return applied(queue, command.edit)


def some_queue() -> Queue:
    """Two plain ones, one held with everything, one bound late, one idea."""
    late = Draft(TREE, base_best=True, pinned=("block_size",))
    odd = Draft(replace(TREE, args=(("x", "a,b"),)), "confirm", ("coding",), 3, "a: #note", held=True)
    return applied(queue_of(2), Add((odd, late, Draft(None, note="an idea")), Origin()))


def test_an_unchanged_sheet_says_what_stands() -> None:
    """Late ones, odd arguments, notes and ideas included."""
    queue = some_queue()
    assert command_of(sheet(queue), context(queue)) is None


def test_values_notes_and_held_are_taken_as_one_step() -> None:
    queue = some_queue()
    first, second, third, late, idea = sheet(queue).entries
    changed = (
        replace(first, spec="b=16 B=2b repeats=2"),
        replace(second, note="mine", held=True),
        replace(third, held=False, note=None),
        late,
        replace(idea, spec="B=40"),
    )
    after = taken(queue, Sheet(changed, sheet(queue).of))
    e1, e2, e3, e5 = (by_id(after, id_) for id_ in ("E1", "E2", "E3", "E5"))
    assert e1 is not None
    assert e1.config is not None
    assert (e1.config.budget, e1.repeats) == (32, 2)
    assert (e2 and e2.note, state(after, "E2")) == ("mine", "held")
    assert (e3 and (e3.note, e3.repeats), state(after, "E3")) == (("", 3), "queued")
    assert (e5 and e5.note, state(after, "E5")) == ("an idea", "queued")
    assert [item.state for item in applied(after, Undo()).items] == [item.state for item in queue.items]


def test_the_order_of_the_entries_is_the_order_of_the_queue() -> None:
    queue = queue_of(4)
    one, two, three = sheet(queue, "E1", "E2", "E4").entries
    assert line(taken(queue, Sheet((three, one, two)))) == ["E4", "E1", "E3", "E2"]


def test_a_deleted_entry_removes_its_experiment_and_others_stay() -> None:
    queue = queue_of(4)
    written = sheet(queue, "E1", "E2")
    assert line(taken(queue, replace(written, entries=written.entries[1:]))) == ["E2", "E3", "E4"]


def test_new_entries_come_right_behind_the_one_above_them() -> None:
    """Above all of them: behind whoever stands before them in the queue."""
    queue = queue_of(4)
    two, three = sheet(queue, "E2", "E3").entries
    new = Entry(spec="b=16 B=99")
    after = taken(queue, Sheet((new, two, new, replace(new, spec="b=16 B=98"), three)))
    assert line(after) == ["E1", "E5", "E2", "E6", "E7", "E3", "E4"]
    after = taken(queue_of(2), Sheet((new, *sheet(queue_of(2)).entries)))
    assert line(after) == ["E3", "E1", "E2"]
    assert line(taken(queue_of(1), Sheet((new, Entry(idea="later"))))) == ["E1", "E2", "E3"]


def test_the_second_entry_of_an_id_is_a_new_experiment_with_a_note() -> None:
    """As a copy made by hand has it."""
    queue = queue_of(2)
    one, two = sheet(queue).entries
    command = command_of(Sheet((one, replace(one, spec="B=50"), two)), context(queue))
    assert command is not None
    assert command.notes == ("E1 stands here twice; the second one becomes a new experiment",)
    assert line(applied(queue, command.edit)) == ["E1", "E3", "E2"]


@pytest.mark.parametrize(
    ("entry", "key", "reason", "forbidden"),
    [
        (Entry("E1", spec="B=50"), "id", "E1 is running", True),
        (Entry("E9", spec="B=50"), "id", "E9 is not in this queue", False),
        (Entry("E2", spec="B=x"), "spec", "column 3 of `B=x`", False),
        (Entry(spec="B=50,60"), "spec", "makes 2 experiments", False),
        (Entry("E2", idea="words"), "idea", "E2 has a config", False),
        (Entry(), "spec", "has a spec, or an idea", False),
    ],
)
def test_an_entry_that_cannot_be_taken_is_named_with_its_key(
    entry: Entry, key: str, reason: str, forbidden: bool
) -> None:
    queue = begun(queue_of(2), "E1")
    with pytest.raises(SheetRefused) as caught:
        command_of(Sheet((Entry("E2", spec="B=60"), entry) if entry.id != "E2" else (entry,)), context(queue))
    assert (caught.value.key, reason in caught.value.reason, caught.value.forbidden) == (key, True, forbidden)


def test_deleting_the_entry_of_one_that_has_started_refuses_the_whole() -> None:
    written = sheet(queue_of(2))
    with pytest.raises(SheetRefused, match="E1 is running"):
        command_of(replace(written, entries=written.entries[1:]), context(begun(queue_of(2), "E1")))


def test_only_what_waits_can_be_written_out() -> None:
    queue = begun(applied(queue_of(2, sweep=True), Hold(("E2",))), "E1")
    assert sheet(queue, "S1").of == ("E2",)
    assert isinstance(sheet_of(queue, ("E1",), context(queue)), Refusal)


def test_what_has_started_or_was_changed_since_is_named_and_can_be_left_out() -> None:
    """Entries and removals alike; the rest of the sheet is taken as if they had never been in it."""
    queue = queue_of(4)
    written = sheet(queue)
    later = begun(applied(queue, Hold(("E3",))), "E1")
    late = overtaken(written, later)
    assert list(late) == ["E1", "E3"]
    assert "E1 is running" in late["E1"]
    assert "changed by somebody else" in late["E3"]
    entries = tuple(replace(entry, spec="b=16 B=40") for entry in written.entries if entry.id != "E1")
    rest = leaving_out(replace(written, entries=entries), late.keys())
    assert (rest.of, [entry.id for entry in rest.entries]) == (("E2", "E4"), ["E2", "E4"])
    after = taken(later, rest)
    assert [state(after, id_) for id_ in ("E1", "E3")] == ["running", "held"]
    assert [item.config.budget for item in after.items if item.config and item.id in ("E2", "E4")] == [40, 40]
