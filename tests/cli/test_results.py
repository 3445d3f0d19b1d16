"""`ddconsole results PROFILE list|show`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Outcome
from ddconsole.core.metrics import RequestRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.adapters.store import SqliteStore

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
ITEM = {
    "config": Config(Algorithm.TREE, 8, 12, 6, 2048).to_json(),
    "verdict": "coding 5/5 · 149.8 tok/s e2e · τ 4.81 (ΣC/ΣV, 5 requests)",
    "tok_s_e2e": 149.8,
    "tok_s_decode": 160.0,
    "tau": 4.81,
    "coding": {"passed": 5, "total": 5},
    "vs_reference": {"id": "E2", "delta_pct": 12.4, "ci_pct": 3.1},
}


@pytest.fixture
def measured(ddconsole: Callable[..., Any], store: SqliteStore) -> SqliteStore:
    """A demo queue with one passed and one failed experiment."""
    ddconsole("queue", "demo", "list")
    key = store.begin_attempt("demo", "E1", {}, NOW)
    store.save_phase(key, "load_target", 12.5)
    store.save_request(key, "coding", 1, RequestRecord(prompt_id="q1", text="def f(): …"))
    store.save_request(key, "coding", 1, RequestRecord(prompt_id="q2", error="no counts"))
    store.save_pass(key, "coding", 1, {"passed": 5, "tau": 4.8123})
    store.finish_attempt(key, Outcome.PASSED, ITEM, None, NOW)
    key = store.begin_attempt("demo", "E2", {}, NOW)
    failure = Failure("gpu-oom", "out of memory \x1b[31m", ("[TP0] CUDA out of memory",), "lower the budget", "graphs")
    store.finish_attempt(key, Outcome.FAILED, {"config": None}, failure, NOW)
    return store


def test_the_list_is_one_document(ddconsole: Callable[..., Any], measured: SqliteStore) -> None:
    """The runner's items as they were stored, oldest first."""
    document = ddconsole("results", "demo", "list", "--json").json
    assert (document["schema"], document["profile"], document["revision"]) == (
        1,
        "demo",
        measured.queue("demo").revision,
    )
    assert [(item["id"], item["attempt"], item["outcome"]) for item in document["items"]] == [
        ("E1", 1, "passed"), ("E2", 1, "failed"),
    ]  # fmt: skip
    assert document["items"][0].items() >= ITEM.items()
    assert document["items"][1]["failure"]["cause"] == "gpu-oom"


def test_the_table_shows_the_figures_and_what_failed(ddconsole: Callable[..., Any], measured: SqliteStore) -> None:
    """What is not known is a dash; text from the host reaches the terminal without its escape sequences."""
    answer = ddconsole("results", "demo")
    header, passed, failed = answer.out.splitlines()
    assert "tree b 8 B 12 K 6 W 2048" in passed
    assert "149.8" in passed
    assert "+12 % ± 3 of E2" in passed
    assert header.index("outcome") == passed.index("passed") == failed.index("failed")
    assert "—" in failed
    assert "out of memory" in failed
    assert "\x1b" not in answer.out


def test_show_has_everything_of_one_attempt(ddconsole: Callable[..., Any], measured: SqliteStore) -> None:
    """Item, phases, passes and whole requests as JSON; the same in words."""
    document = ddconsole("results", "demo", "show", "E1", "--json").json
    assert document["item"]["tau"] == 4.81
    assert document["phases"] == {"load_target": 12.5}
    assert document["passes"] == {"coding": [{"passed": 5, "tau": 4.8123}]}
    assert [request["text"] for request in document["requests"]] == ["def f(): …", ""]
    words = ddconsole("results", "demo", "show", "E1").out
    assert "E1 attempt 1 · passed · tree b 8" in words
    assert "2 requests, 1 failed" in words
    assert "passed 5, tau 4.812" in words


def test_show_tells_a_failure_in_three_lines(ddconsole: Callable[..., Any], measured: SqliteStore) -> None:
    """What happened, the evidence, what to do; brackets are kept."""
    words = ddconsole("results", "demo", "show", "E2").out
    assert "gpu-oom: out of memory" in words
    assert "| [TP0] CUDA out of memory" in words
    assert "→ lower the budget" in words
    assert "\x1b" not in words


def test_a_later_attempt_is_shown_unless_an_earlier_one_is_asked_for(
    ddconsole: Callable[..., Any], measured: SqliteStore
) -> None:
    """Both stay in the list."""
    ddconsole("queue", "demo", "retry", "E2")
    key = measured.begin_attempt("demo", "E2", {}, NOW)
    measured.finish_attempt(key, Outcome.PASSED, ITEM, None, NOW)
    assert ddconsole("results", "demo", "show", "E2", "--json").json["item"]["outcome"] == "passed"
    first = ddconsole("results", "demo", "show", "E2", "--attempt", "1", "--json").json
    assert (first["item"]["outcome"], first["attempts"]) == ("failed", [1, 2])
    assert "E2 #2" in ddconsole("results", "demo", "list").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("E3",), "E3 has no result: it is queued"),
        (("E99",), "E99 is no experiment of demo"),
        (("E1", "--attempt", "7"), "E1 has no such attempt"),
    ],
)
def test_what_is_not_there_is_exit_code_2(
    ddconsole: Callable[..., Any], measured: SqliteStore, words: tuple[str, ...], message: str
) -> None:
    """With what there is instead."""
    answer = ddconsole("results", "demo", "show", *words)
    assert (answer.code, message in answer.err) == (2, True)


def test_before_anything_was_measured_the_list_says_what_to_do(ddconsole: Callable[..., Any]) -> None:
    """And is an empty document as JSON."""
    assert "`ddconsole run demo`" in ddconsole("results", "demo").out
    assert ddconsole("results", "demo", "list", "--json").json["items"] == []


def test_a_tree_is_compared_with_the_chain_that_it_has_to_beat(
    ddconsole: Callable[..., Any], store: SqliteStore
) -> None:
    """Over the prompts that both answered; the chain itself is compared with nothing."""
    ddconsole("queue", "demo", "list")
    workload = {"prompts": "code", "temperature": 0.0, "thinking": False}
    for config, rate in (
        (Config(Algorithm.CHAIN, 8, window=2048), 100.0),
        (Config(Algorithm.TREE, 8, 12, 6, 2048), 125.0),
    ):
        document = ddconsole("queue", "demo", "list", "--json").json
        waiting = [item["id"] for item in document["items"] if item["config"] == config.to_json()]
        key = store.begin_attempt("demo", waiting[0], {}, NOW)
        item = {
            "config": config.to_json(), "effective": config.to_json(), "workload": workload, "measured_on": "box",
            "tok_s_e2e": rate, "by_prompt": {f"q{n}": [100, 100 / rate] for n in range(5)},
        }  # fmt: skip
        store.finish_attempt(key, Outcome.PASSED, item, None, NOW)
    chain, tree = ddconsole("results", "demo", "list", "--json").json["items"]
    assert chain["vs_reference"] is None
    assert (tree["vs_reference"]["id"], round(tree["vs_reference"]["delta_pct"])) == (chain["id"], 25)
    assert "+25 %" in ddconsole("results", "demo").out


def test_a_sweep_is_reported_as_one(ddconsole: Callable[..., Any], store: SqliteStore) -> None:
    """`list S1` shows its members and how they stand among themselves; what was never measured is said."""
    ddconsole("queue", "demo", "sweep", "b=8", "B=20,24")
    ddconsole("queue", "demo", "sweep", "b=8", "B=40,48")
    for id_, budget in (("E4", 20), ("E5", 24), ("E1", 12)):
        key = store.begin_attempt("demo", id_, {}, NOW)
        sweep = "S1" if id_ != "E1" else None
        item = ITEM | {"sweep": sweep, "config": Config(Algorithm.TREE, 8, budget, 6, 2048).to_json()}
        store.finish_attempt(key, Outcome.PASSED, item, None, NOW)
    document = ddconsole("results", "demo", "list", "s1", "--json").json
    assert [item["id"] for item in document["items"]] == ["E4", "E5"]
    (standing,) = document["standings"]
    assert {standing["best"], *standing["plateau"]} <= {"E4", "E5"}
    both = ddconsole("results", "demo", "list", "S1", "E1", "E4", "--json").json
    assert [item["id"] for item in both["items"]] == ["E4", "E5", "E1"]
    rows = ddconsole("results", "demo", "list", "S1").out.splitlines()
    assert [row.split()[0] for row in rows[1:3]] == ["E4", "E5"]
    csv = ddconsole("results", "demo", "export", "S1", "--format", "csv").out.splitlines()
    assert len(csv) == 1 + 2
    unmeasured = ddconsole("results", "demo", "list", "S2")
    assert unmeasured.code == 2
    assert "nothing of S2 has a result" in unmeasured.err
