"""What is no spec is refused in place: with the column, the reason and what would be right."""

import pytest
from fakes.queues import CHAIN, KNOBS, TREE, applied, begun, context, queue_of

from ddconsole.core.errors import SpecError
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Queue, Remove
from ddconsole.core.spec import KnobRule, SpecContext, SpecRefusal, parse


def refusal(line: str | tuple[str, ...], where: SpecContext | None = None, verb: str | None = None) -> SpecRefusal:
    """Why a line is no command."""
    parsed = parse(line, where or context(), verb=verb)
    assert isinstance(parsed, SpecRefusal), parsed
    return parsed


def small_queue() -> Queue:
    """E1 a tree, E2 a chain, E3 an idea."""
    return applied(Queue(), Add((Draft(TREE), Draft(CHAIN), Draft(None, note="more budget")), Origin()))


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("", 1, "the line is empty"),
        (" \t ", 1, "the line is empty"),
        ("add algorithm=chain budget=24", 21, "algorithm=chain has no budget"),
        ("algorithm=off W=64", 15, "algorithm=off has no window"),
        ("sweep algorithm=tree,chain B=12", 28, "algorithm=chain has no budget"),
        ("clone E2 B=24", 10, "E2 is algorithm=chain and has no budget"),
        ("add b=16 B=match", 12, "match needs an experiment to match"),
        ("next B=12,match", 11, "match needs an experiment to match"),
        ("clone E2 algorithm=tree b=16 B=match", 32, "E2 is algorithm=chain and has no budget to match"),
        ("edit E3 B=match", 11, "E3 is an idea without a config"),
        ("add K=match", 7, "match is for the budget"),
        ("add b=33", 7, "block_size 33 is outside 2 to 32"),
        ("add B=12,1000,16", 10, "budget 1,000 is outside 1 to 512"),
        ("add b=32 B=17b", 12, "17b comes to 544, which is outside 1 to 512"),
        ("add b=16 W=8", 12, "window 8 is less than the block size 16"),
        ("add b=-8", 7, "`-8` is below zero"),
        ("add B=2.5", 7, "`2.5` is not whole"),
        ("add B=1e99", 7, "is outside 1 to 512"),
        ("add B=twelve", 7, "`twelve` is no value for budget"),
        ("add b=2b", 7, "`2b` is no value for block_size"),
        ("add B=٣", 7, "`٣` is no value for budget"),
        ("add B=nan", 7, "`nan` is no value for budget"),
        ("add B=12,,16", 10, "a value is missing here"),
        ("add B=12,", 10, "a value is missing here"),
        ("add B=", 7, "budget has no value"),
        ("add b=32..8", 7, "32..8 goes down"),
        ("add b=8..32:0", 7, "a step of 0 goes nowhere"),
        ("add b=8..", 7, "`8..` is no range"),
        ("add B=8..16..32", 7, "`8..16..32` is no range"),
        ("add B=1..513", 7, "a range of 513 values; 512 is the most"),
        ("add b=2..32 B=1..17", 5, "this makes 527 experiments; 512 is the most"),
        ("add budgte=4", 5, "unknown key `budgte`"),
        ("add k=4", 5, "unknown key `k`"),
        ("add =4", 5, "there is no key before ="),
        ("add b = 16", 5, "b has no value"),
        ("add b=16 16", 10, "`16` is not key=value"),
        ('add ""', 5, "an empty word is not key=value"),
        ("add b=8 B=12 block_size=16", 14, "block_size stands here twice"),
        ("add arg.x=1 arg.x=2", 13, "arg.x stands here twice"),
        ("add arg.a_b=1 arg.a-b=2", 15, "arg.a-b stands here twice"),
        ("add arg.--x=1", 9, "`--x` is no name of an argument"),
        ("add arg.=1", 9, "`` is no name of an argument"),
        ("add arg.port=1", 5, "arg.port cannot be given"),
        ("add arg.model_path=x", 5, "arg.model-path cannot be given"),
        ("add arg.api_key=hush", 5, "arg.api-key is a secret"),
        ("add arg.x=1,,2", 13, "a value is missing here"),
        ("add algorithm=tee", 15, "unknown algorithm `tee`"),
        ("add passes=coding,sped", 19, "unknown pass `sped`"),
        ("add passes=coding,coding", 19, "the pass coding stands here twice"),
        ("add suite=fast", 11, "unknown suite `fast`"),
        ("add base=worst", 10, "unknown base `worst`"),
        ("add repeats=0", 13, "0 repeats; 1 to 100"),
        ("add repeats=2,3", 13, "`2,3` is no whole number"),
        ("add base=best B=2b", 17, "2b relates to the block size"),
        ("clone E1 base=best b=16 B=match", 27, "match relates to the reference"),
        ("ad b=16", 1, "unknown verb `ad`"),
        ("Add b=16", 1, "unknown verb `Add`"),
        ("E1", 1, "`E1` alone says nothing"),
        ("add hold", 5, "`hold` is a verb, and a verb comes first"),
        ("sweep b=8", 11, "a sweep has a key with several values"),
        ("sweep B=12,12", 15, "a sweep has a key with several values"),
        ("clone", 7, "clone what?"),
        ("clone b=16", 7, "an id is missing here"),
        ("clone E1,E2", 9, "one id is meant here"),
        ("clone E9 b=16", 7, "E9 is not in this queue"),
        ("clone S9", 7, "S9 is not in this queue"),
        ("clone ct200:E11", 7, "ct200:E11 belongs to the profile ct200"),
        ("after b=16 B=26", 1, "nothing is running that this could follow"),
        ("after E1", 10, "what is to differ from E1?"),
        ("after E4 b=16", 7, "E4 is not in this queue"),
        ("edit", 6, "edit what?"),
        ("edit B=32", 6, "edit what?"),
        ("edit E1", 9, "edit it how?"),
        ("edit E1 B=12,16", 14, "an experiment has one value for each key"),
        ("hold", 6, "hold what?"),
        ("hold E1 b=3", 9, "`b=3` does not belong here"),
        ("hold E1,E9", 9, "E9 is not in this queue"),
        ("move", 6, "move what?"),
        ("move top", 6, "`top` is no id"),
        ("move E1", 9, "move where?"),
        ("move E1 sideways", 9, "`sideways` is no place"),
        ("move E1 0", 9, "ranks begin with 1"),
        ("move E1 top E2", 13, "`E2` does not belong here"),
        ("undo 3", 6, "`3` does not belong here"),
        ("idea", 6, "an idea needs words"),
        ('idea "  "', 9, "an idea needs words"),
        ('add note="half', 10, 'the quote " is not closed'),
        ("add b=16\nadd b=8\n\nadd b=4", 9, "3 lines; a spec is one line"),
        ("add b=16\r\nadd b=8", 9, "2 lines; a spec is one line"),
        ("add  b=16\nadd b=8", 9, "2 lines; a spec is one line"),
        ("add 'note=a\nb'", 12, "2 lines; a spec is one line"),
        ("add  note='\x1b[31mred'", 10, "a control character, U+001B"),
        ("add note=\u202ereversed", 10, "a mark that turns the writing around, U+202E"),
        ("add b\u200b=16", 6, "with the character U+200B"),
        ("add note=" + "x" * 4000, 4001, "longer than 4,000 characters"),
    ],
)
def test_the_column_and_the_reason(line: str, column: int, reason: str) -> None:
    against = refusal(line, context(small_queue()))
    assert reason in against.reason
    assert against.column == column


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("add budgte=4", "did you mean budget?"),
        ("add block-size=4", "did you mean block_size?"),
        ("add k=4", "keys are case-sensitive: K is the topk"),
        ("add x=4", "keys are block_size (b)"),
        ("add algorithm=tee", "did you mean tree?"),
        ("aftr b=16", "did you mean after?"),
        ("add b=16 B=match", "write `after E14 …` or `clone E14 …`"),
        ("after b=16", "`after E3 …`, or use add"),
        ("clone E9", "there is E1, E2, E3"),
        ("edit E1 B=12,16", "clone E1 B=12,16 makes one experiment of each"),
    ],
)
def test_the_advice_names_what_would_be_right(line: str, advice: str) -> None:
    assert advice in refusal(line, context(small_queue())).advice


@pytest.mark.parametrize(
    "line",
    [
        "After this we should also test block size 16 with higher budget to match",
        "after this we should also test block size 16",
        "qpwoeirutyalskdjfhgzmxncbvqpwoeirutyalsk",
        "😀 🎉",
        "try the small drafter again",
    ],
)
def test_words_are_refused_as_a_spec_and_offered_as_an_idea(line: str) -> None:
    against = refusal(line)
    assert "reads like words" in against.reason
    assert against.idea == line
    assert "idea" in against.advice


@pytest.mark.parametrize("line", ["foo E3", "foo b=16", "explode", "foo E3 b=16", "Q"])
def test_a_word_before_ids_and_values_is_an_unknown_verb_and_no_idea(line: str) -> None:
    """What can be meant only as a command is told which commands there are."""
    against = refusal(line)
    assert (against.column, against.idea) == (1, None)
    assert against.reason.startswith("unknown verb")
    assert "add, next, after" in against.advice


def test_a_spec_with_a_slip_is_not_taken_for_words() -> None:
    assert refusal("add b=16 budgte=4").idea is None


def test_columns_count_in_the_words_joined_by_one_space_and_the_cursor_in_what_was_typed() -> None:
    against = refusal("  add   note='a b'    B=x")
    assert (against.column, against.cursor) == (len("add note=a b B=") + 1, len("  add   note='a b'    B=") + 1)


@pytest.mark.parametrize(("words", "column"), [(("b=16", "B=x"), 8), (("b=16 B=x",), 8), ((), 1)])
def test_columns_count_from_the_first_word_behind_a_given_verb(words: tuple[str, ...], column: int) -> None:
    assert refusal(words, verb="add" if words else "hold").column == column


def test_an_unknown_verb_from_a_caller_is_refused() -> None:
    assert "unknown verb `explode`" in refusal(("b=16",), verb="explode").reason


def test_a_line_end_inside_a_word_from_the_command_line_is_refused() -> None:
    against = refusal(("b=16", "note=a\nb"), verb="add")
    assert (against.column, "a line end, U+000A" in against.reason) == (12, True)


def test_half_a_character_from_the_command_line_is_refused() -> None:
    assert "half of a character" in refusal(("note=\udcff",), verb="add").reason


def test_an_algorithm_without_a_default_for_its_budget_says_what_is_missing() -> None:
    bare = context(knobs=dict(KNOBS) | {"budget": KnobRule(high=512)}, defaults=CHAIN)
    against = refusal("add W=64 algorithm=tree", bare)
    assert (against.column, "algorithm=tree needs a budget" in against.reason) == (10, True)


def test_a_removed_sweep_is_not_there_any_more() -> None:
    gone = applied(queue_of(2, sweep=True), Remove(("S1",)))
    assert refusal("clone S1", context(gone)).advice == "there is no sweep yet"


def test_a_verb_alone_is_told_about_the_running_one() -> None:
    against = refusal("after", context(begun(queue_of(2), "E1")))
    assert "what is to differ from E1?" in against.reason


def test_a_refusal_becomes_an_error_with_its_column() -> None:
    error = refusal("add B=x").to_error("add B=x")
    assert isinstance(error, SpecError)
    assert error.to_json()["column"] == 7
    assert error.exit_code == 2
