"""`--read-only` refuses every change with exit code 3, and everything can still be looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ddconsole.adapters.paths import READ_ONLY_VARIABLE
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli.common import load_profile
from ddconsole.cli.main import cli
from ddconsole.cli.wiring import make_bench
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import RefusedError
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import Hold

from .conftest import Answer
from .test_hostile_exits import leaves

ITEM = {"config": Config(Algorithm.TREE, 8, 12, 6, 2048).to_json(), "verdict": "failed"}
NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)

CHANGES = {
    "queue add": "queue demo add b=8 B=32", "queue next": "queue demo next b=8 B=32",
    "queue sweep": "queue demo sweep b=8 B=20,24", "queue after": "queue demo after E3 B=34",
    "queue after!": "queue demo after! E3 B=34", "queue edit": "queue demo edit E3 B=32",
    "queue hold": "queue demo hold E3", "queue release": "queue demo release E5",
    "queue move": "queue demo move E4 top", "queue remove": "queue demo remove E3", "queue undo": "queue demo undo",
    "queue redo": "queue demo redo", "queue idea": "queue demo idea a-thought",
    "queue clone": "queue demo clone E3 B=40",
    "queue retry": "queue demo retry E1", "queue cancel": "queue demo cancel E2", "queue pause": "queue demo pause",
    "queue start": "queue demo start", "queue order": "queue demo order --accept",
    "queue import": "queue demo import {sheet}", "results import": "results demo import {results}",
    "doctor": "doctor demo --accept-new", "run": "run demo",
    "profiles new": "profiles new mine", "engine stop": "engine demo stop", "engine restore": "engine demo restore",
    "engine promote": "engine demo promote E1",
}  # fmt: skip
"""Each command that changes something to a line in which it would, in the queue of `changeable`."""

LOOKS = {
    "queue list": "queue demo list --json", "queue history": "queue demo history", "queue export": "queue demo export",
    "results list": "results demo list", "results show": "results demo show E1",
    "results compare": "results demo compare E1 E1", "results plot": "results demo plot",
    "results export": "results demo export --format json", "profiles list": "profiles list",
    "profiles show": "profiles show demo", "profiles check": "profiles check demo",
    "profiles schema": "profiles schema", "engine status": "engine demo status", "events": "events demo",
    "connect": "",  # it needs a terminal: the screen's keys are in tests/tui/test_read_only_screen.py
    "doctor": "", "results gate": "", "wait": "", "engine log": "", "demo-host": "",
}  # fmt: skip
"""Each command that only looks; those without a line have other exit codes, or need a host."""


@pytest.fixture
def changeable(ddconsole: Callable[..., Answer], store: SqliteStore) -> None:
    """E1 has failed, E2 runs, E3 and E4 wait in an order that could be better, E5 is held; both histories are full."""
    ddconsole("queue", "demo", "hold", "E3")
    ddconsole("queue", "demo", "release", "E3")
    ddconsole("queue", "demo", "add", "b=16", "B=30")
    ddconsole("queue", "demo", "add", "b=8", "B=14")
    ddconsole("queue", "demo", "add", "b=16", "B=26", "passes=throughput")
    key = store.begin_attempt("demo", "E1", {}, NOW)
    store.finish_attempt(key, Outcome.FAILED, ITEM, None, NOW)
    store.begin_attempt("demo", "E2", {}, NOW)
    store.edit("demo", Hold(("E5",)))
    ddconsole("queue", "demo", "hold", "E4")
    ddconsole("queue", "demo", "undo")


@pytest.fixture
def ddconsole_read_only(
    ddconsole: Callable[..., Answer], changeable: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Answer]:
    """Run a line with `--read-only`, after the store has been filled without it."""
    sheet, results = tmp_path / "sheet.yaml", tmp_path / "night.json"
    sheet.write_text(ddconsole("queue", "demo", "export").out.replace("B=30", "B=31"))
    results.write_text(ddconsole("results", "demo", "export", "--format", "json").out)
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    return lambda line: ddconsole("--read-only", *line.format(sheet=sheet, results=results).split())


def test_every_command_changes_or_looks() -> None:
    """A command that is added has its line here."""
    assert sorted(set(leaves(cli)) - set(CHANGES) - set(LOOKS)) == []


@pytest.mark.parametrize("line", CHANGES.values())
def test_every_change_is_refused(
    ddconsole_read_only: Callable[[str], Answer], ddconsole: Callable[..., Answer], home: Path, line: str
) -> None:
    """With the reason and the remedy; queue and folders stay as they were."""
    before = ddconsole("queue", "demo", "list", "--json").json
    files = {path for path in home.rglob("*") if path.suffix in (".yaml", ".json")}
    answer = ddconsole_read_only(line)
    assert answer.code == 3, answer
    assert "read-only" in answer.err
    assert "without --read-only" in answer.err
    after = ddconsole("queue", "demo", "list", "--json").json
    assert (after["revision"], after["items"]) == (before["revision"], before["items"])
    assert {path for path in home.rglob("*") if path.suffix in (".yaml", ".json")} == files


@pytest.mark.parametrize("line", [*filter(None, LOOKS.values()), "queue demo add b=8 B=32 --dry-run"])
def test_everything_can_be_looked_at(ddconsole_read_only: Callable[[str], Answer], line: str) -> None:
    """Reading, planning and asking change nothing."""
    assert ddconsole_read_only(line).code == 0


def test_no_host_key_is_taken_by_any_command(ddconsole: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--accept-new` writes known_hosts, whichever command has it."""
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    with pytest.raises(RefusedError, match="read-only"):
        make_bench(load_profile("demo"), accept_new=True)


def test_a_profile_never_seen_is_not_seeded(ddconsole: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is shown empty rather than written."""
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    assert ddconsole("--read-only", "queue", "demo", "list", "--json").json["items"] == []
    monkeypatch.setenv(READ_ONLY_VARIABLE, "0")
    assert len(ddconsole("queue", "demo", "list", "--json").json["items"]) == 3
