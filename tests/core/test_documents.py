"""The documents of `--json`: when the work will be done, and what a config says of itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ddconsole.core.config import Algorithm, Config, Effective, TopkRule, effective_config
from ddconsole.core.config_findings import config_findings
from ddconsole.core.documents import added_document, ends_at, queue_document
from ddconsole.core.errors import SpecError
from ddconsole.core.experiment import Experiment, Held, Idea, Queued, Removed, Running
from ddconsole.core.nearest import nearest
from ddconsole.core.queue import Queue

NOW = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)


def estimate(_: Experiment) -> tuple[float, str]:
    """A hundred seconds each."""
    return 100.0, "profile"


def queue_of(*states: object) -> Queue:
    """One experiment for each state."""
    items = tuple(Experiment(f"E{number}", TREE, state, NOW) for number, state in enumerate(states, start=1))  # type: ignore[arg-type]
    return Queue(items=items, revision=7)


def running(minutes_ago: float) -> Running:
    """Running for a while."""
    return Running(1, NOW - timedelta(minutes=minutes_ago))


@pytest.mark.parametrize(
    ("queue", "seconds"),
    [
        (queue_of(), None),
        (queue_of(Held(), Idea(), Removed()), None),
        (queue_of(Queued(), Queued(), Held()), 200),
        (queue_of(running(0.5), Queued()), 170),
        (queue_of(running(60), Queued()), 100),
        (replace(queue_of(running(0.5), Queued()), paused=True), 70),
        (replace(queue_of(Queued()), paused=True), None),
    ],
)
def test_the_end_counts_what_will_run_and_what_of_it_is_left(queue: Queue, seconds: float | None) -> None:
    """Held ones and ideas do not run, a pause stops what waits, and one that takes longer is due at once."""
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert ends_at(queue, estimate, NOW) == expected


def test_tombstones_are_left_out_unless_asked_for() -> None:
    """Ranks count the waiting ones alone."""
    queue = queue_of(running(1), Removed(), Queued(), Held())

    def effective(config: Config) -> Effective:
        return effective_config(config)

    document = queue_document("p", queue, effective, estimate, NOW)
    assert [(item["id"], item["rank"]) for item in document["items"]] == [("E1", None), ("E3", 1), ("E4", 2)]
    assert document["running"] == "E1"
    everything = queue_document("p", queue, effective, estimate, NOW, with_removed=True)
    assert len(everything["items"]) == 4


def test_an_idea_has_nothing_that_a_config_has() -> None:
    """Null, not zero."""
    idea = Experiment("E1", None, Idea(), NOW, note="a thought")
    (item,) = queue_document("p", Queue(items=(idea,)), effective_config, estimate, NOW)["items"]
    assert (item["config"], item["effective"], item["estimate_s"], item["label"]) == (None, None, None, "a thought")


def test_a_refusal_has_its_column_and_the_error() -> None:
    """Both in one document."""
    error = SpecError("no value", column=8)
    document = added_document("p", 7, (), error=error)
    assert document["refused"] == {"column": 8, "reason": "no value"}
    assert document["error"] == error.to_json()
    assert added_document("p", 7, ())["refused"] is None


@pytest.mark.parametrize(
    ("config", "codes"),
    [
        (TREE, []),
        (Config(Algorithm.OFF), []),
        (Config(Algorithm.CHAIN, block_size=16, window=2048), ["trained-block-size"]),
        (replace(TREE, budget=6), ["budget-below-depth"]),
        (replace(TREE, budget=7), ["spine-only"]),
        (replace(TREE, block_size=16, window=8), ["window-below-block", "trained-block-size", "budget-below-depth"]),
        (replace(TREE, window=None), []),
    ],
)
def test_what_a_config_says_of_itself(config: Config, codes: list[str]) -> None:
    """The rules of drafting, heaviest first; the drafter was trained at 8."""
    found = config_findings(config, effective_config(config), 8)
    assert [finding.code for finding in found] == codes
    assert all(finding.advice for finding in found)


def test_a_cap_that_is_never_reached_is_said() -> None:
    """This fork derives K 2 from the budget; a trained block size that is not known says nothing."""
    found = config_findings(TREE, effective_config(TREE, TopkRule.PR29907), None)
    assert [(finding.level, finding.text) for finding in found] == [("note", "runs K 2, 6 is only a cap")]


@pytest.mark.parametrize(
    ("word", "name"),
    [("budgt", "budget"), ("BLOCK-SIZE", "block_size"), ("blok_size", "block_size"), ("zzz", None), ("", None)],
)
def test_the_nearest_name(word: str, name: str | None) -> None:
    """Case and dashes do not count; what is near to nothing is not guessed."""
    assert nearest(word, ["budget", "block_size", "topk"]) == name
