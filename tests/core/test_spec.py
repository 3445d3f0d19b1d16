"""The language: what each sentence comes to."""

from dataclasses import replace

import pytest
from fakes.queues import CHAIN, NOW, OFF, TREE, applied, begun, context, ended, queue_of, refused

from ddconsole.core.config import Algorithm, Config, TopkRule
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import (
    Add,
    Batch,
    Change,
    Draft,
    Edit,
    Extend,
    Hold,
    Move,
    Place,
    Queue,
    Redo,
    Release,
    Remove,
    Retry,
    SetPaused,
    Undo,
)
from ddconsole.core.spec import Command, KnobRule, SpecContext, SpecRefusal, parse, parse_lines


def command(line: str | tuple[str, ...], where: SpecContext | None = None, **kwargs: str) -> Command:
    """The command that a line is."""
    parsed = parse(line, where or context(), **kwargs)
    assert isinstance(parsed, Command), parsed
    return parsed


def labels(line: str, queue: Queue | None = None) -> list[str]:
    """The configs of a line, in short."""
    return [draft.config.label() for draft in command(line, context(queue)).drafts if draft.config]


def running_sweep() -> Queue:
    """S1 of E1 (B 12) and E2 (B 16), the first of them running; then E3 (B 20) alone."""
    sweep = applied(queue_of(2, sweep=True), Add((Draft(replace(TREE, budget=20)),), Origin()))
    return begun(sweep, "E1")


@pytest.mark.parametrize(
    ("line", "configs"),
    [
        ("add", ["tree b 8 B 12 K 6 W 2048"]),
        ("block_size=16 budget=26 topk=6 window=2048 algorithm=tree", ["tree b 16 B 26 K 6 W 2048"]),
        ("add b=16 B=26 K=4 W=1024", ["tree b 16 B 26 K 4 W 1024"]),
        ("next algorithm=chain", ["chain b 8 W 2048"]),
        ("add algorithm=off", ["off"]),
        ("add budget=2b", ["tree b 8 B 16 K 6 W 2048"]),
        ("add B=b W=4b K=auto", ["tree b 8 B 8 W 32"]),
        ("add b=16 B=1.5b,2b,3b", [f"tree b 16 B {budget} K 6 W 2048" for budget in (24, 32, 48)]),
        ("add b=7 B=1.5b", ["tree b 7 B 11 K 6 W 2048"]),
        ("add b=5 B=1.1b", ["tree b 5 B 6 K 6 W 2048"]),
        ("sweep b=8..32:8", [f"tree b {b} B 12 K 6 W 2048" for b in (8, 16, 24, 32)]),
        ("sweep B=8..30:8", [f"tree b 8 B {budget} K 6 W 2048" for budget in (8, 16, 24)]),
        (
            "sweep b=8,16 B=2b,40",
            [f"tree b {b} B {budget} K 6 W 2048" for b, budget in ((8, 16), (8, 40), (16, 32), (16, 40))],
        ),
        ("sweep B=12,16 b=8,16", [f"tree b {b} B {budget} K 6 W 2048" for budget in (12, 16) for b in (8, 16)]),
        ("sweep block_size=16 budget=match,2b,3b", [f"tree b 16 B {budget} K 6 W 2048" for budget in (26, 32, 48)]),
        ("sweep algorithm=tree,chain,off", ["tree b 8 B 12 K 6 W 2048", "chain b 8 W 2048", "off"]),
        ("add b=012 B=1e2", ["tree b 12 B 100 K 6 W 2048"]),
        ("add arg.mem_fraction-static=0.85", ["tree b 8 B 12 K 6 W 2048 mem-fraction-static=0.85"]),
        ("add arg.x=1,2", ["tree b 8 B 12 K 6 W 2048 x=1", "tree b 8 B 12 K 6 W 2048 x=2"]),
        (r"add 'arg.x=1\,2'", ["tree b 8 B 12 K 6 W 2048 x=1,2"]),
        ("""add 'arg.j={"a":1,"b":[2,3]}'""", ['tree b 8 B 12 K 6 W 2048 j={"a":1,"b":[2,3]}']),
    ],
)
def test_what_a_spec_comes_to(line: str, configs: list[str]) -> None:
    assert labels(line) == configs


def test_add_goes_behind_all_and_next_in_front() -> None:
    assert command("add B=16").edit == Add((Draft(replace(TREE, budget=16)),), Origin("add", "add B=16"))
    ahead = command("next B=16").edit
    assert isinstance(ahead, Add)
    assert ahead.place == Place("front")


def test_passes_repeats_suite_and_note_are_part_of_the_spec() -> None:
    (draft,) = command('add passes=coding,throughput repeats=3 note="for Ada"').drafts
    assert (draft.passes, draft.repeats, draft.note) == (("coding", "throughput"), 3, "for Ada")
    (draft,) = command("add suite=confirm").drafts
    assert (draft.suite, draft.passes) == ("confirm", ("coding", "throughput", "quality"))


def test_the_seeds_sentence_follows_the_running_sweep_member_by_member() -> None:
    """Block sizes 8 become 16, and each budget keeps its density."""
    parsed = command("after block_size=16 budget=match", context(running_sweep()))
    assert isinstance(parsed.edit, Add)
    assert [draft.config for draft in parsed.drafts] == [
        replace(TREE, block_size=16, budget=26),
        replace(TREE, block_size=16, budget=34),
    ]
    assert parsed.edit.place == Place("after", "S1")
    assert parsed.edit.as_sweep
    assert [planned.source for planned in parsed.preview] == ["E1", "E2"]
    assert parsed.preview[0].notes == (
        "b 8 → 16",
        "B 12 → 26 (match: 1.71 per position)",
        "effective K 2 → 2 (6 is a cap)",
    )
    assert [(each.before.topk, each.effective.topk) for each in parsed.preview if each.before and each.effective] == [
        (2, 2),
        (3, 3),
    ]
    queue = applied(running_sweep(), parsed.edit)
    assert [item.id for item in queue.items] == ["E1", "E2", "E4", "E5", "E3"]


def test_after_without_a_sweep_follows_the_running_experiment() -> None:
    parsed = command("after B=2b", context(begun(queue_of(2), "E1")))
    assert isinstance(parsed.edit, Add)
    assert parsed.edit.place == Place("after", "E1")
    assert not parsed.edit.as_sweep
    assert parsed.notes == ("placed behind E1; it keeps that place and starts even if E1 fails, moves or is removed",)


def test_after_takes_equal_members_once() -> None:
    parsed = command("after algorithm=chain", context(running_sweep()))
    assert [draft.config for draft in parsed.drafts] == [CHAIN]
    assert "1 equal one is taken once" in parsed.notes


def test_after_with_a_condition_waits_for_the_one_that_each_follows() -> None:
    parsed = command("after! S1 b=16 B=match", context(running_sweep()))
    assert [draft.requires for draft in parsed.drafts] == ["E1", "E2"]
    (merged,) = command("after! S1 algorithm=chain", context(running_sweep())).drafts
    assert merged.requires == "S1"


def test_after_with_a_condition_says_when_it_cannot_come_true() -> None:
    failed = ended(queue_of(2), "E1", "failed")
    notes = command("after! E1 B=16", context(failed)).notes
    assert any("E1 failed: retry E1" in note for note in notes)


def test_clone_inherits_and_a_sweep_is_cloned_as_one() -> None:
    base = applied(running_sweep(), Change("E3", passes=("coding",), repeats=2, note="mine"))
    (draft,) = command("clone E3 block_size=16 budget=match", context(base)).drafts
    assert (draft.config, draft.passes, draft.repeats, draft.note) == (
        replace(TREE, block_size=16, budget=43),
        ("coding",),
        2,
        "",
    )
    cloned = command("clone S1 K=4", context(base))
    assert isinstance(cloned.edit, Add)
    assert cloned.edit.as_sweep
    assert labels("clone S1 K=4", base) == ["tree b 8 B 12 K 4 W 2048", "tree b 8 B 16 K 4 W 2048"]
    assert labels("clone E1", base) == ["tree b 8 B 12 K 6 W 2048"]


def test_the_algorithm_decides_what_is_inherited() -> None:
    """Budget and topk are dropped silently when nobody typed them, and filled from the defaults on the way back."""
    queue = applied(Queue(), Add((Draft(CHAIN), Draft(OFF), Draft(replace(TREE, budget=99))), Origin()))
    assert labels("clone E3 algorithm=chain", queue) == ["chain b 8 W 2048"]
    assert labels("clone E1 algorithm=tree", queue) == ["tree b 8 B 12 K 6 W 2048"]
    assert labels("clone E2 algorithm=tree B=2b", queue) == ["tree b 8 B 16 K 6 W 2048"]
    assert labels("clone E2 algorithm=chain", queue) == ["chain b 8 W 2048"]


def test_an_argument_without_a_value_is_left_out() -> None:
    queue = applied(Queue(), Add((Draft(replace(TREE, args=(("x", "1"), ("y", "2")))),), Origin()))
    assert labels("clone E1 arg.x=", queue) == ["tree b 8 B 12 K 6 W 2048 y=2"]


@pytest.mark.parametrize(
    ("line", "edit"),
    [
        ("edit E3 budget=32", Change("E3", config=replace(TREE, budget=32))),
        ("edit E3 b=16 B=match", Change("E3", config=replace(TREE, block_size=16, budget=43))),
        ("edit E3 note='ask Ada' repeats=2", Change("E3", note="ask Ada", repeats=2)),
        ("edit E3 suite=confirm", Change("E3", suite="confirm", passes=("coding", "throughput", "quality"))),
        ("edit E1 passes=quality", Extend("E1", ("quality",))),
        ("edit E2 E3 repeats=2", Batch((Change("E2", repeats=2), Change("E3", repeats=2)))),
        ("edit S1 repeats=2", Change("E2", repeats=2)),
        ("hold E2", Hold(("E2",))),
        ("hold E2,E3 S1", Hold(("E2", "E3", "S1"))),
        ("release e2", Release(("E2",))),
        ("move E3 top", Move(("E3",), "top")),
        ("move E2 E3 bottom", Move(("E2", "E3"), "bottom")),
        ("move S1 down", Move(("S1",), "down")),
        ("move S1 TOP", Move(("S1",), "top")),
        ("move E3 3", Move(("E3",), 3)),
        ("remove S1 E3", Remove(("S1", "E3"))),
        ("retry E1", Retry("E1")),
        ("retry E1 E2", Batch((Retry("E1"), Retry("E2")))),
        ("undo", Undo()),
        ("redo", Redo()),
        ("pause", SetPaused(True)),
        ("start", SetPaused(False)),
    ],
)
def test_verbs_about_what_is_there(line: str, edit: Edit) -> None:
    assert command(line, context(running_sweep())).edit == edit


def test_an_edit_of_the_running_one_is_understood_and_the_rules_refuse_it() -> None:
    queue = running_sweep()
    assert refused(queue, command("edit E1 B=32", context(queue)).edit).code == "running"


def test_an_idea_keeps_its_words_and_can_be_given_a_config() -> None:
    parsed = command('idea "block size 16, with more budget"')
    assert parsed.drafts == (Draft(None, note="block size 16, with more budget"),)
    queue = applied(Queue(), parsed.edit)
    edit = command("edit E1 b=16 B=2b", context(queue)).edit
    assert edit == Change("E1", config=replace(TREE, block_size=16, budget=32))
    assert command("clone E1", context(queue)).drafts == (Draft(None, note="block size 16, with more budget"),)


def test_base_best_pins_what_was_typed() -> None:
    (draft,) = command("add base=best b=16 B=2b").drafts
    assert (draft.base_best, draft.pinned) == (True, ("block_size", "budget"))
    queue = applied(Queue(), Add((draft,), Origin()))
    edit = command("edit E1 W=1024", context(queue)).edit
    assert isinstance(edit, Change)
    assert edit.pinned == ("block_size", "budget", "window")
    off = command("edit E1 base=default", context(queue)).edit
    assert isinstance(off, Change)
    assert (off.base_best, off.pinned) == (False, ())


@pytest.mark.parametrize("line", ["add B=24,24", "clone E2 B=24,24"])
def test_equal_values_make_one_experiment_and_no_sweep(line: str) -> None:
    edit = command(line, context(running_sweep())).edit
    assert isinstance(edit, Add)
    assert (len(edit.drafts), edit.as_sweep) == (1, False)


def test_a_sweep_shows_its_grid_as_typed() -> None:
    parsed = command("sweep block_size=16,24 budget=match,2b")
    assert (parsed.grid, parsed.count) == ("b 16,24 × B match,2b", 4)
    assert command("add b=16").grid == ""


def test_notes_say_what_the_engine_makes_of_k_and_of_a_small_budget() -> None:
    (planned,) = command("add b=16").preview
    assert planned.notes == (
        "effective K 2 (6 is a cap)",
        "B 12 is below the depth 15: no path can reach its end",
    )
    (asked,) = command("add K=4", context(rule=TopkRule.AS_ASKED)).preview
    assert asked.notes == ()


def test_a_tied_knob_follows() -> None:
    knobs = dict(context().knobs)
    knobs["budget"] = KnobRule(high=512, tied="block_size - 1", fixed="it follows block_size - 1 in this profile")
    tied = context(knobs=knobs, defaults=replace(TREE, budget=7))
    (planned,) = command("add b=16", tied).preview
    assert planned.draft.config == replace(TREE, block_size=16, budget=15)
    assert "B 15 (follows block_size - 1)" in planned.notes
    against = parse("add b=16 B=26", tied)
    assert isinstance(against, SpecRefusal)
    assert (against.column, against.reason) == (10, "budget cannot be set: it follows block_size - 1 in this profile")


@pytest.mark.parametrize(
    ("words", "verb", "text"),
    [
        (("add", "b=16", "B=26"), None, "add b=16 B=26"),
        (("b=16", "B=26"), "add", "add b=16 B=26"),
        (("b=16 B=26",), "add", "add b=16 B=26"),
        (("add", "b=16 B=26"), None, "add b=16 B=26"),
        (("add b=16 B=26",), None, "add b=16 B=26"),
    ],
)
def test_words_and_one_quoted_string_mean_the_same(words: tuple[str, ...], verb: str | None, text: str) -> None:
    parsed = parse(words, context(), verb=verb)
    assert isinstance(parsed, Command)
    assert parsed.drafts == (Draft(Config(Algorithm.TREE, 16, 26, 6, 2048)),)
    assert parsed.text == text
    assert command(parsed.text).drafts == parsed.drafts


def test_spaces_inside_a_quoted_note_or_argument_stay() -> None:
    assert command(("note=two words",), verb="add").drafts[0].note == "two words"
    assert command(("add", "arg.x=a b", "b=16")).drafts[0].config == replace(TREE, block_size=16, args=(("x", "a b"),))
    again = command(command(("add", "note=two  words", "b=16")).text)
    assert again.drafts[0].note == "two  words"


def test_a_command_can_be_signed() -> None:
    edit = command("add").signed("ada", "line-7").edit
    assert isinstance(edit, Add)
    assert (edit.author, edit.intent) == ("ada", "line-7")
    assert command("undo").signed("ada").edit == Undo()


def test_several_lines_are_read_one_after_the_other() -> None:
    lines = ["# the sweep that was run", "sweep b=8 B=12,16", "", "clone S1 b=16 B=match", "hold E4"]
    commands = parse_lines(lines, context(), now=NOW)
    assert isinstance(commands, tuple)
    queue = applied(Queue(), *(each.edit for each in commands))
    assert [(item.id, item.state.name) for item in queue.items] == [
        ("E1", "queued"),
        ("E2", "queued"),
        ("E3", "queued"),
        ("E4", "held"),
    ]


@pytest.mark.parametrize(("lines", "line"), [(["add", "", "hold E9"], 3), (["add", "release E1"], 2)])
def test_one_bad_line_refuses_them_all_and_is_named(lines: list[str], line: int) -> None:
    against = parse_lines(lines, context(), now=NOW)
    assert not isinstance(against, tuple)
    assert (against.line, against.text) == (line, lines[line - 1])
