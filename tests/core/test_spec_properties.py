"""The language as a whole: no text raises, and what is printed reads the same again."""

from __future__ import annotations

import shlex
from dataclasses import replace

from fakes.queues import CHAIN, NOW, TREE, applied, begun, context, queue_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Queue, Refusal, apply
from ddconsole.core.spec import VERBS, Command, SpecRefusal, parse, print_spec

ARGS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9-]{0,6}", fullmatch=True).filter(
        lambda name: name not in ("port", "host", "api-key", "secret")
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=8),
    max_size=2,
).map(lambda args: tuple(sorted(args.items())))
BLOCKS = st.integers(2, 32)
WINDOWS = st.none() | st.integers(32, 65_536)
CONFIGS = st.one_of(
    st.builds(Config, st.just(Algorithm.OFF), args=ARGS),
    st.builds(Config, st.just(Algorithm.CHAIN), block_size=BLOCKS, window=WINDOWS, args=ARGS),
    st.builds(
        Config,
        st.just(Algorithm.TREE),
        block_size=BLOCKS,
        budget=st.integers(1, 512),
        topk=st.none() | st.integers(1, 64),
        window=WINDOWS,
        args=ARGS,
    ),
)
NOTES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), max_size=20).map(str.strip)
PASSES = st.lists(st.sampled_from(["coding", "throughput", "quality"]), min_size=1, unique=True).map(tuple)
DRAFTS = st.builds(
    Draft, CONFIGS, st.sampled_from(["quick", "confirm"]), PASSES, st.integers(1, 100), NOTES, st.none(), st.just(False)
)


def busy_queue() -> Queue:
    """A running sweep, a chain and an idea."""
    queue = applied(queue_of(2, sweep=True), Add((Draft(CHAIN), Draft(None, note="an idea")), Origin()))
    return begun(queue, "E1")


@given(CONFIGS, CONFIGS)
@settings(max_examples=120, deadline=None)
def test_a_printed_config_reads_as_the_same_config_whatever_the_defaults(config: Config, defaults: Config) -> None:
    where = context(defaults=defaults)
    parsed = parse(f"add {print_spec(config, where)}", where)
    assert isinstance(parsed, Command), parsed
    assert [draft.config for draft in parsed.drafts] == [config]


@given(DRAFTS)
@settings(max_examples=120, deadline=None)
def test_a_printed_draft_reads_as_the_same_draft(draft: Draft) -> None:
    printed = print_spec(draft, context())
    by_text = parse(f"add {printed}", context())
    by_words = parse(shlex.split(printed), context(), verb="add")
    assert isinstance(by_text, Command), by_text
    assert isinstance(by_words, Command), by_words
    assert by_text.drafts == by_words.drafts == (draft,)


@given(NOTES.filter(bool))
@settings(max_examples=40, deadline=None)
def test_a_printed_idea_reads_as_the_same_idea(note: str) -> None:
    draft = Draft(None, note=note)
    parsed = parse(print_spec(draft, context()), context())
    assert isinstance(parsed, Command), parsed
    assert parsed.drafts == (draft,)


def test_what_base_best_leaves_open_is_not_printed() -> None:
    draft = Draft(replace(TREE, block_size=16), base_best=True, pinned=("block_size",))
    assert print_spec(draft, context()) == "b=16 base=best"
    parsed = parse("b=16 base=best", context())
    assert isinstance(parsed, Command)
    assert parsed.drafts == (draft,)


KEYS = ["b", "B", "K", "W", "block_size", "budget", "algorithm", "passes", "repeats", "suite", "note", "base", "arg.x"]
VALUES = [
    "8",
    "12",
    "2b",
    "1.5b",
    "match",
    "8..32:8",
    "8,16",
    "tree",
    "chain",
    "best",
    "auto",
    "coding",
    "",
    "1e9",
    "-1",
]
PAIRS = st.builds("{}={}".format, st.sampled_from(KEYS), st.one_of(st.sampled_from(VALUES), st.text(max_size=6)))
WORDS = st.one_of(
    PAIRS, PAIRS, st.sampled_from(["E1", "E2", "E3", "E4", "S1", "E9", "E1,E2", "top", "3"]), st.text(max_size=8)
)
NEARLY = st.builds(
    lambda verb, words: " ".join([verb, *words]), st.sampled_from(list(VERBS)), st.lists(WORDS, max_size=4)
)
BUSY = busy_queue()


def check(parsed: Command | SpecRefusal) -> None:
    """A refusal names a column and a reason; a command can be given to the rules."""
    if isinstance(parsed, SpecRefusal):
        assert parsed.column >= 1
        assert parsed.cursor >= 1
        assert parsed.reason
        assert parsed.reason.isprintable() or not parsed.reason.isascii()
    else:
        assert isinstance(apply(BUSY, parsed.edit, now=NOW), Queue | Refusal)
        assert parse(parsed.text, context(BUSY)) == parsed


@given(st.one_of(st.text(max_size=60), NEARLY))
@example("a" * 5_000)
@example("add B=" + "9" * 3_000)
@example("add B=1e99999999999999999999")
@example("sweep " + "b=2..32 " * 400)
@example("\\")
@example("add '\\")
@settings(max_examples=400, deadline=None)
def test_no_line_raises_and_each_refusal_names_a_column(line: str) -> None:
    parsed = parse(line, context(BUSY))
    check(parsed)
    if isinstance(parsed, SpecRefusal):
        assert parsed.cursor <= len(line) + 2


@given(st.lists(st.one_of(WORDS, st.text(max_size=20)), max_size=5), st.none() | st.sampled_from(list(VERBS)))
@settings(max_examples=250, deadline=None)
def test_no_words_raise_and_each_refusal_names_a_column(words: list[str], verb: str | None) -> None:
    check(parse(words, context(BUSY), verb=verb))
