"""The corpus of hostile text through what every command prints; a new command without a row here fails the test."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from fakes.hostile import HOSTILE, harmful

from ddconsole.adapters.store import SqliteStore
from ddconsole.cli.main import cli
from ddconsole.cli.report import tell_bug
from ddconsole.cli.run_view import RunView
from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.queue import Add, Draft

from .conftest import Answer

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
CHAIN = Config(Algorithm.CHAIN, 8, window=2048)
TREE = Config(Algorithm.TREE, 8, 12, 6, 2048)

PRINTED = (
    "queue list", "queue list --all", "queue list --json", "queue history", "queue history --json", "queue export",
    "queue order", "queue order --json", "queue hold E6", "queue release E6", "queue move E6 top", "queue edit E6 B=13",
    "queue clone E6 B=14", "queue after E6 b=16", "queue after! E6 b=16 B=40", "queue next b=8 B=15",
    "queue add b=8 B=16",
    "queue sweep b=8 B=17,18", "queue idea {word}", "queue remove E6", "queue undo", "queue redo", "queue retry E5",
    "queue pause", "queue start", "queue cancel", "queue add note={word} B={word}", "queue {word}",
    "results list", "results list --json", "results show E5", "results show E5 --json", "results show E4",
    "results compare E4 E5", "results compare E4 E5 --json", "results gate E5 --baseline E4", "results plot",
    "results plot --json", "results export --format md", "results export --format csv",
    "results export --format html", "results export --format json --with-requests",
    "wait {word}", "wait idle", "events", "events --json", "events --with log,gpu --json", "engine status",
)  # fmt: skip
"""Lines of a profile's nouns; `demo` goes behind the first word."""

ELSEWHERE = {
    "connect": "the screen: tests/tui/test_hostile_everywhere.py",
    "run": "its view is driven below",
    "doctor": "tests/cli/test_doctor.py, whose findings are cleaned by the same printer",
    "demo-host": "prints nothing of others",
    "queue import": "answers as `queue edit` does",
    "results import": "tests/cli/test_results_judged.py",
    "engine log": "cleaned by BootLog: tests/fuzz",
    "engine promote": "prints what `run` prints",
    "engine restore": "asks a host",
    "engine stop": "asks a host",
    "profiles check": "the user's own file", "profiles list": "the user's own file", "profiles new": "the user's own",
    "profiles schema": "ours", "profiles show": "the user's own file",
}  # fmt: skip
"""Commands that are not run here, and why."""


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command by its words."""
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_every_command_has_its_row() -> None:
    """A command that is added is run against the corpus, or says where else it is."""
    here = {" ".join(line.split()[: 1 if line.split()[0] in ("wait", "events") else 2]) for line in PRINTED}
    assert sorted(set(leaves(cli)) - here - set(ELSEWHERE)) == []


@pytest.fixture(params=[name for name in HOSTILE if name not in ("empty", "long word of marks")])
def word(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@pytest.fixture
def filled(ddconsole: Callable[..., Answer], store: SqliteStore, word: str) -> SqliteStore:
    """A store in which every text that others wrote is that word."""
    ddconsole("queue", "demo", "list")
    drafts = (Draft(CHAIN, note=word), Draft(TREE, note=word), Draft(Config(Algorithm.TREE, 8, 20, 6, 2048), note=word),
              Draft(None, note=word))  # fmt: skip
    store.edit("demo", Add(drafts, Origin(text=word), author=word))
    failure = Failure(word, word, (word,), word, word)
    for id_, config, outcome in (("E4", CHAIN, Outcome.PASSED), ("E5", TREE, Outcome.FAILED)):
        key = store.begin_attempt("demo", id_, {"command": word, "env": {"X": word}, "engine_version": word}, NOW)
        store.save_request(key, "coding", 1, RequestRecord(prompt_id="q1", text=word, error=word))
        store.save_pass(
            key, "coding", 1, {"passed": 0, "total": 1, "tasks": [{"id": word, "verdict": word, "detail": word}]}
        )
        item = {"config": config.to_json(), "verdict": word, "engine_version": word, "measured_on": word}
        store.finish_attempt(key, outcome, item, failure if outcome is Outcome.FAILED else None, NOW)
    for body in bodies(word):
        store.append_event("demo", events.Event(0, NOW, body, id="E5", attempt=1))
    return store


def bodies(word: str) -> tuple[events.Body, ...]:
    """Every kind of event with the word in it."""
    failure = {"cause": word, "what": word, "evidence": [word], "advice": word, "phase": word}
    return (
        events.RunStarted(word, 1), events.Connection("lost", detail=word, advice=word),
        events.ExperimentStarted(word, TREE.to_json(), {}, [word], 10.0),
        events.FindingSeen("block", word, word, word, [word]), events.PhaseChanged(word, "started"),
        events.PhaseChanged(word, "failed", 1.0), events.Ready(1.0, [word], [word], word),
        events.PassStarted(word, 3), events.RequestDone(word, 1, 3, {"prompt_id": word, "error": word}),
        events.PassFinished(word, 1.0, {"why": word}), events.Warned(word),
        events.ExperimentFinished("failed", word, failure, None), events.LogLines([word]),
        events.GpuSampled([{"index": 0, "name": word}], problem=word), events.RunFinished(word, 0, 1),
    )  # fmt: skip


def test_every_kind_of_event_is_in_the_corpus() -> None:
    """Each body that exists, apart from two that hold no words of others."""
    assert set(events.BODIES.values()) - {type(body) for body in bodies("x")} == {
        events.BootProgressed, events.QueueChanged,
    }  # fmt: skip


def test_no_command_passes_hostile_text_on(ddconsole: Callable[..., Answer], filled: SqliteStore, word: str) -> None:
    """On stdout and stderr, in words and as JSON; and none of them ends as a bug."""
    argument = word.replace("\x00", "").encode("utf-8", "replace").decode()[:200]
    for line in PRINTED:
        noun, *rest = line.split()
        words = (noun, "demo", *(part.replace("{word}", argument) for part in rest))
        if noun == "wait":
            words = (*words, "--timeout", "0.01")
        answer = ddconsole(*words)
        assert answer.code != 70, (line, answer.err)
        assert harmful(answer.out, lines=True) == [], line
        assert harmful(answer.err, lines=True) == [], line


@pytest.mark.parametrize("terminal", [True, False])
def test_the_view_of_a_run_passes_none_on(word: str, terminal: bool, tmp_path: Path) -> None:
    """Every kind of event, on a terminal and in a file: what rich itself writes is the only escape."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, legacy_windows=False, width=100)
    with RunView(console) as view:
        for body in bodies(word):
            view.take(events.Event(1, NOW, body, id="E5", attempt=1))
    text = re.sub(r"\x1b\[(?:\?25[lh]|2K|1A|[0-9;]*m)|\r", "", out.getvalue())
    assert harmful(text, lines=True) == []


def test_the_trace_of_a_bug_can_be_shown(home: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """What broke the program stands in it, in its message, its notes and the command line; its lines stay lines."""
    monkeypatch.setattr(sys, "argv", ["ddconsole", word])
    try:
        raise ValueError(word)
    except ValueError as error:
        error.add_note(word)
        tell_bug(error, as_json=False)
    kept = (home / "state" / "last-bug.txt").read_text(encoding="utf-8")
    assert harmful(kept, lines=True) == []
    assert "\nTraceback (most recent call last):\n  File " in kept
