"""`--read-only` refuses every change with exit code 3, and everything can still be looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ddconsole.adapters.paths import READ_ONLY_VARIABLE

from .conftest import Answer

CHANGES = (
    "queue demo add b=8 B=32", "queue demo next b=8 B=32", "queue demo sweep b=8 B=20,24",
    "queue demo edit E1 B=32", "queue demo hold E1", "queue demo release E3", "queue demo move E2 top",
    "queue demo remove E1", "queue demo undo", "queue demo idea a-thought", "queue demo clone E1 B=40",
    "run demo", "profiles new mine", "engine demo stop", "engine demo restore", "engine demo promote E1",
)  # fmt: skip
LOOKS = ("queue demo list", "queue demo list --json", "results demo list", "profiles list", "queue demo history",
         "queue demo add b=8 B=32 --dry-run", "engine demo status", "events demo")  # fmt: skip


@pytest.fixture
def ddconsole_read_only(ddconsole: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Answer]:
    """Run a line with `--read-only`, after the store has been seeded without it."""
    ddconsole("queue", "demo", "hold", "E3")
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    return lambda line: ddconsole("--read-only", *line.split())


@pytest.mark.parametrize("line", CHANGES)
def test_every_change_is_refused(
    ddconsole_read_only: Callable[[str], Answer], ddconsole: Callable[..., Answer], home: Path, line: str
) -> None:
    """With the reason and the remedy; queue and folders stay as they were."""
    before = ddconsole("queue", "demo", "list", "--json").json
    files = set(home.rglob("*.yaml"))
    answer = ddconsole_read_only(line)
    assert answer.code == 3, answer
    assert "read-only" in answer.err
    assert "without --read-only" in answer.err
    after = ddconsole("queue", "demo", "list", "--json").json
    assert (after["revision"], after["items"]) == (before["revision"], before["items"])
    assert set(home.rglob("*.yaml")) == files


@pytest.mark.parametrize("line", LOOKS)
def test_everything_can_be_looked_at(ddconsole_read_only: Callable[[str], Answer], line: str) -> None:
    """Reading, planning and asking change nothing."""
    assert ddconsole_read_only(line).code == 0


def test_a_profile_never_seen_is_not_seeded(ddconsole: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is shown empty rather than written."""
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    assert ddconsole("--read-only", "queue", "demo", "list", "--json").json["items"] == []
    monkeypatch.setenv(READ_ONLY_VARIABLE, "0")
    assert len(ddconsole("queue", "demo", "list", "--json").json["items"]) == 3
