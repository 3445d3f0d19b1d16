"""`ddconsole results PROFILE compare|gate|plot|export|import`: as words, files and exit codes."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes.results import measured

from ddconsole.core.config import Config
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.queue import Add, Draft

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.adapters.store import SqliteStore

NOW = datetime(2026, 12, 2, 14, tzinfo=UTC)
CALM = (0.005, -0.005, 0.004, -0.004, 0.003, -0.003)


def keep(store: SqliteStore, *items: dict[str, Any], profile: str = "demo") -> None:
    """Finished attempts of experiments of their own, with a coding pass and a recipe."""
    for item in items:
        config = Config.from_json(item["config"])
        queue = store.edit(profile, Add((Draft(config),), Origin()))
        key = store.begin_attempt(profile, queue.items[-1].id, {"profile_digest": "abc"}, NOW)
        store.update_recipe(key, {"command": f"engine --budget {config.budget} --port {len(queue.items)}"})
        text = f"def f(x):\n    return x + {1 if item['outcome'] == 'passed' else 2}\n"
        store.save_request(key, "coding", 1, RequestRecord(prompt_id="f", text=text))
        verdict = "passed" if item["outcome"] == "passed" else "failed"
        tasks = [{"id": "f", "verdict": verdict, "detail": "assert f(1) == 2", "failures": ["a", "b"]}]
        level = {"concurrency": 1, "requests": 3, "failed": 0, "sums": {"requests": 3}, "output_tok_s": 100.0}
        passed = {"passed": 1, "total": 1, "tasks": tasks, "levels": [level], "round_trip_ms": 12.34}
        store.save_pass(key, "coding", 1, passed)
        outcome = Outcome(item["outcome"])
        store.finish_attempt(key, outcome, item | {"id": key.id}, None, NOW)


@pytest.fixture
def night(ddconsole: Callable[..., Any], store: SqliteStore) -> SqliteStore:
    """E4 is the chain, E5 to E8 are trees; the seeded queue has E1 to E3."""
    ddconsole("queue", "demo", "list")
    keep(
        store,
        measured("chain", 100, budget=None, tau=3.9, step_ms=27.0),
        measured("B8", 118, budget=8, tau=4.2, step_ms=27.5, hour=0.5, noise=CALM),
        measured("B12", 125, budget=12, tau=4.6, step_ms=28.0, hour=1, noise=CALM),
        measured("B16", 124.9, budget=16, tau=4.8, step_ms=31.0, hour=1.5, noise=CALM[::-1]),
        measured("bad", 130, budget=24, hour=2, outcome="wrong"),
    )
    return store


def test_list_says_who_is_fastest_or_that_nobody_is(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """Boots in the table, the plateau below it, and how to confirm it; the same as JSON."""
    words = ddconsole("results", "demo").out
    assert "plateau, no winner: E6, E7 are not distinguishable (best measured E6" in words
    assert "boots" in words.splitlines()[0]
    assert "to confirm the best (E6, E7, E5) and their control (E4):" in words
    assert "  ddconsole queue demo clone E6 suite=confirm\n" in words
    document = ddconsole("results", "demo", "list", "--json").json
    (standing,) = document["standings"]
    assert (standing["best"], standing["plateau"]) == ("E6", ["E6", "E7"])
    assert [command.split()[-2] for command in standing["confirm"]] == ["E6", "E7", "E5", "E4"]
    assert document["drift"][0]["found"] is False
    assert document["items"][2]["vs_reference"]["boots"] == [1, 1]


def test_the_proposed_commands_are_taken(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """Word for word."""
    (standing,) = ddconsole("results", "demo", "list", "--json").json["standings"]
    for command in standing["confirm"]:
        assert ddconsole(*command.split()[1:], "--dry-run").code == 0, command


def test_compare_puts_config_beside_numbers(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """What differs, what it did, whether acceptance or cost made it, and the step cost curve that they stand on."""
    words = ddconsole("results", "demo", "compare", "E7", "E6").out
    assert "budget" in words
    assert "command --budget" in words
    assert "--port" not in words
    assert "E7 and E6 are not distinguishable" in words
    assert "measurements of each would settle it" in words or "take them as equal" in words
    assert "B 12 → 16: τ +4.3 %, step +10.7 %: lost 5.8 % on cost" in words
    document = ddconsole("results", "demo", "compare", "e6", "E4", "--json").json
    assert document["figures"]["tok_s_e2e"]["word"] == "faster"
    assert document["figures"]["tau"]["delta_pct"] == pytest.approx(100 * (4.6 / 3.9 - 1), abs=0.01)
    assert document["where_the_time_goes"].startswith("decode +")
    assert document["figures"]["round_trip_ms"] == {"a": 12.34, "b": 12.34}
    assert words.splitlines()[[line[:11] for line in words.splitlines()].index("TTFT p50 ms") + 1].split() == [
        "of", "it", "round", "trip", "12.34", "12.34",
    ]  # fmt: skip
    assert {"name": "budget", "a": 12, "b": None} in document["changes"]
    assert document["verdict"].startswith("E6 is faster than E4 by 2")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("E6", "--baseline", "E4"), 0, "passed: E6 is faster than E4"),
        (("E4", "--baseline", "E6"), 1, "FAILED: E4 is slower than E6"),
        (("E4", "--baseline", "E6", "--max-loss", "30%"), 0, "passed: E4 is slower than E6"),
        (("E7", "--baseline", "E6", "--max-loss", "0%"), 0, "(passes with this note)"),
        (("E7", "--baseline", "E6", "--max-loss", "0%", "--strict"), 1, "(strict)"),
        (("--baseline", "E6"), 1, "FAILED: E8 is wrong"),
        (("E6", "--baseline", "E4", "--max-loss", "much"), 2, "expected a percentage"),
        (("E6", "--baseline", "E1"), 2, "E1 has no result: it is queued"),
    ],
)
def test_gate_is_an_exit_code(
    ddconsole: Callable[..., Any], night: SqliteStore, words: tuple[str, ...], code: int, said: str
) -> None:
    """With its reason; the newest result is judged where none is named."""
    answer = ddconsole("results", "demo", "gate", *words)
    assert (answer.code, said in answer.out + answer.err) == (code, True), answer.out + answer.err


def test_gate_as_json(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """The same exit code, and everything that the line says."""
    answer = ddconsole("results", "demo", "gate", "E4", "--baseline", "E6", "--on", "tau", "--json")
    assert answer.code == 1
    assert answer.json["gate"]["code"] == "slower"
    assert (answer.json["figure"], answer.json["max_loss_pct"]) == ("tau", 3.0)


def test_plots_in_plain_characters(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """Lines that fit, the curve with its words; nothing but printable characters."""
    answer = ddconsole("results", "demo", "plot", "--width", "60")
    assert max(map(len, answer.out.splitlines()[:20])) <= 72
    assert "1 boot " in answer.out
    assert "tok/s e2e at c=1" in answer.out
    assert "estimate, not measured" in answer.out
    assert all(letter.isprintable() or letter == "\n" for letter in answer.out)
    document = ddconsole("results", "demo", "plot", "--json").json
    assert [point["id"] for point in document["speed"]] == ["E4", "E5", "E6", "E7"]
    assert all(point["boots"] >= 1 for point in document["speed"])
    assert [point["budget"] for point in document["step_cost"][0]["points"]] == [8, 12, 16]
    assert "step time" not in ddconsole("results", "demo", "plot", "--kind", "speed").out


def test_exports_by_ending(ddconsole: Callable[..., Any], night: SqliteStore, tmp_path: Path) -> None:
    """Each format, to a file or to stdout; named results alone."""
    for ending, begins in (("html", "<!doctype html>"), ("md", "### demo"), ("csv", "id,attempt"), ("json", "{")):
        path = tmp_path / f"night.{ending}"
        assert ddconsole("results", "demo", "export", "-o", str(path)).code == 0
        assert path.read_text("utf-8").startswith(begins)
    one = json.loads(ddconsole("results", "demo", "export", "E6").out)
    assert [item["id"] for item in one["items"]] == ["E6"]
    assert one["items"][0]["recipe"]["profile_digest"] == "abc"
    assert "requests" not in one["items"][0]
    whole = json.loads(ddconsole("results", "demo", "export", "E6", "--with-requests").out)
    assert whole["items"][0]["requests"][0]["text"].startswith("def f")
    rows = list(csv.DictReader(io.StringIO(ddconsole("results", "demo", "export", "--format", "csv").out)))
    assert [row["budget"] for row in rows] == ["", "8", "12", "16", "24"]


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "html", "--names", "aiperf"),
        ("--format", "csv", "--with-requests"),
        ("E99",),
        ("-o", "/nowhere/x.json"),
    ],
)
def test_exports_that_cannot_be(ddconsole: Callable[..., Any], night: SqliteStore, words: tuple[str, ...]) -> None:
    """Exit code 2, and nothing on stdout."""
    answer = ddconsole("results", "demo", "export", *words)
    assert (answer.code, answer.out) == (2, "")


def test_what_was_exported_comes_back_beside_ones_own(
    ddconsole: Callable[..., Any], night: SqliteStore, tmp_path: Path
) -> None:
    """Under the file's name; the same measurements twice are one; another machine's are compared."""
    path = tmp_path / "lab.json"
    ddconsole("results", "demo", "export", "-o", str(path))
    copied = ddconsole("results", "demo", "import", str(path), "--json").json
    assert copied["imported"] == ["lab:E4", "lab:E5", "lab:E6", "lab:E7", "lab:E8"]
    assert len(ddconsole("results", "demo", "list", "--json").json["items"]) == 5
    assert ddconsole("results", "demo", "show", "lab:E6", "--json").json["recipe"]["profile_digest"] == "abc"
    other = json.loads(path.read_text("utf-8"))
    for item in other["items"]:
        item |= {"measured_on": "lab", "finished_at": "2026-11-01T10:00:00.000Z", "boot": f"lab-{item['id']}"}
    path.write_text(json.dumps(other))
    assert ddconsole("results", "demo", "import", str(path), "--as", "autumn").code == 0
    assert ddconsole("results", "demo", "import", str(path), "--as", "autumn").code == 0
    items = ddconsole("results", "demo", "list", "--json").json["items"]
    assert [item["id"] for item in items[5:]] == [f"autumn:E{n}" for n in range(4, 9)]
    assert items[6]["vs_reference"]["id"] == "autumn:E4"
    assert ddconsole("results", "demo", "compare", "E6", "autumn:E6").out.count("not distinguishable") > 0
    assert ddconsole("results", "demo", "gate", "E6", "--baseline", "autumn:e6").code == 0


def test_another_profile_of_the_store_is_named_by_its_name(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """`ct200:E1`; one that has nothing is refused."""
    keep(night, measured("other", 90), profile="ct200")
    document = ddconsole("results", "demo", "compare", "E6", "ct200:E1", "--json").json
    assert document["b"] == "ct200:E1"
    assert "nothing was measured on nowhere" in ddconsole("results", "demo", "compare", "E6", "nowhere:E1").err
    assert ddconsole("results", "demo", "show", "demo:E6", "--json").json["item"]["id"] == "E6"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": "ddconsole-results", "schema": 1, "items": [{"id": "E1"}]}', "NaN"]
)
def test_a_broken_import_changes_nothing(
    ddconsole: Callable[..., Any], night: SqliteStore, home: Path, text: str
) -> None:
    """It is refused, and no file of it is kept."""
    path = home / "broken.json"
    path.write_text(text)
    assert ddconsole("results", "demo", "import", str(path)).code == 2
    assert not (home / "data" / "imported").exists()


def test_an_import_that_was_damaged_later_is_named(
    ddconsole: Callable[..., Any], night: SqliteStore, home: Path, tmp_path: Path
) -> None:
    """With what to do; the store is not touched by it."""
    path = tmp_path / "lab.json"
    ddconsole("results", "demo", "export", "-o", str(path))
    ddconsole("results", "demo", "import", str(path))
    kept = home / "data" / "imported" / "demo" / "lab.json"
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text("{")
    answer = ddconsole("results", "demo", "list")
    assert (answer.code, f"remove {kept}" in answer.err) == (2, True)


def test_reading_only_imports_nothing(
    ddconsole: Callable[..., Any], night: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused with 3."""
    path = tmp_path / "lab.json"
    ddconsole("results", "demo", "export", "-o", str(path))
    monkeypatch.setenv("DDCONSOLE_READ_ONLY", "1")
    assert ddconsole("results", "demo", "import", str(path)).code == 3


def test_a_failed_answer_stands_beside_the_controls(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """As a diff, with the test that it failed and how many more."""
    words = ddconsole("results", "demo", "show", "E8").out
    assert "f: failed: assert f(1) == 2 (and 1 further tests)" in words
    assert "f: its answer against E4's" in words
    assert "-    return x + 1" in words
    assert "+    return x + 2" in words
    (diff,) = ddconsole("results", "demo", "show", "E8", "--json").json["answer_diffs"]
    assert (diff["task"], diff["control"], diff["same"]) == ("f", "E4", False)
    assert "its answer against" not in ddconsole("results", "demo", "show", "E6").out


def test_show_has_intervals_and_what_decode_is_made_of(ddconsole: Callable[..., Any], night: SqliteStore) -> None:
    """τ / step time beside the decode rate."""
    words = ddconsole("results", "demo", "show", "E6").out
    assert "95 % at c=1: tok/s e2e" in words
    assert "; 1 boot, so what a restart changes is not in it" in words
    assert "tok/s ≈ τ 4.60 / step 28.0 ms" in words
    document = ddconsole("results", "demo", "show", "E6", "--json").json
    assert set(document["intervals"]) == {"tok_s_e2e", "tok_s_decode", "tau", "step_ms"}
    assert document["recipe"]["profile_digest"] == "abc"


@pytest.mark.parametrize("word", ["", "E", "17", "E6#0", "E6#x", "../E6", "E6 E7"])
def test_names_that_are_none(ddconsole: Callable[..., Any], night: SqliteStore, word: str) -> None:
    """Told how one looks."""
    answer = ddconsole("results", "demo", "show", word)
    assert (answer.code, "is no name of a result" in answer.err) == (2, True)
