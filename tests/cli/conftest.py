"""A home of the test's own, and the command line in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ddconsole.adapters.paths import HOME_VARIABLE, Paths
from ddconsole.adapters.profile_file import shipped_text
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


QUEUE = ("add b=8 B=12 K=6 W=2048", "add algorithm=chain b=8 W=2048", "add b=16 B=26 K=6 W=2048")
"""The starting queue of these tests' `demo`, whatever the shipped profile begins with."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the developer's files: neither their home nor the checkout's profiles folder by its name."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv("LOGNAME", "ana")
    own = tmp_path / "home" / "config" / "profiles"
    own.mkdir(parents=True)
    text, _, _ = shipped_text("demo").partition("\nqueue:")
    (own / "demo.yaml").write_text(f"{text}\nqueue: [{', '.join(map(json.dumps, QUEUE))}]\n")
    return tmp_path / "home"


@dataclass(frozen=True)
class Answer:
    """What a command line answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Its one document."""
        (line,) = self.out.splitlines()
        document: dict[str, Any] = json.loads(line)
        return document


@pytest.fixture
def ddconsole() -> Callable[..., Answer]:
    """Run a command line: `ddconsole("queue", "demo", "list")`."""

    def run(*words: str, stdin: str | None = None) -> Answer:
        result = CliRunner().invoke(cli, list(words), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def store(home: Path) -> Iterator[SqliteStore]:
    """The store that the command line uses."""
    opened = SqliteStore(Paths.from_environment().database)
    yield opened
    opened.close()
