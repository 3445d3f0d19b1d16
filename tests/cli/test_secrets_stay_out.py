"""An engine that prints every secret it knows, and dies of one: none is in what ddconsole shows, keeps or exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Answer

from ddconsole.adapters import secrets
from ddconsole.cli import report
from ddconsole.core.errors import HostError

SECRETS = {"env": "plain-token-value-99", "file": "file-secret-value-77", "ring": "ring-secret-value-55"}
API_KEY = "sesame-open-42"

ENGINE = """
import os, sys
if "--help" in sys.argv:
    print("usage: engine [--model-path M]")
    raise SystemExit
given = {name: os.environ[name] for name in ("FROM_ENV", "FROM_FILE", "FROM_RING")}
print("server_args=ServerArgs(model_path='m', api_key='%s', port=1)" % sys.argv[sys.argv.index("--api-key") + 1])
for name, value in given.items():
    print("[2026-12-02 14:00:00 TP0] Load weight begin. avail mem=1.0 GB", name, value)
print("Traceback (most recent call last)")
print("ValueError: cannot log in with " + " or ".join(given.values()))
sys.stdout.flush()
sys.exit(1)
"""

RING = """
class errors:
    class KeyringError(Exception): ...
import sys
sys.modules["keyring.errors"] = errors
def get_password(service, entry):
    assert (service, entry) == ("ddconsole", "hf"), (service, entry)
    return "ring-secret-value-55"
"""


@pytest.fixture
def leaky(home: Path, tmp_path: Path) -> Path:
    """A profile of this machine whose engine leaks, and one queued experiment; returns the engine's state folder."""
    (tmp_path / "engine.py").write_text(ENGINE)
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "keyring.py").write_text(RING)
    (tmp_path / "secret").write_text(SECRETS["file"])
    engine = {
        "command": [sys.executable, str(tmp_path / "engine.py")],
        "model": "m", "drafter": "d", "trained_block_size": "8",
        "secrets": {"FROM_ENV": {"env": "OUR_TOKEN"}, "FROM_FILE": {"file": str(tmp_path / "secret")},
                    "FROM_RING": {"keyring": "hf"}},
        "args": {"api-key": API_KEY},
    }  # fmt: skip
    profile = {
        "schema": "1", "host": "local", "engine": engine, "queue": ["add b=8 B=12"],
        "launcher": {"kind": "process", "state_dir": str(tmp_path / "state")},
    }  # fmt: skip
    (home / "config" / "profiles" / "leaky.yaml").write_text(json.dumps(profile))
    return tmp_path / "state"


def leaks(text: str) -> list[str]:
    return [value for value in (*SECRETS.values(), API_KEY) if value in text]


def test_no_secret_is_shown_kept_or_exported(
    home: Path, leaky: Path, tmp_path: Path, ddconsole: Callable[..., Answer]
) -> None:
    """Screen output, recording, store, results and every export; only the host's own log has them, mode 600."""
    environment = os.environ | {"OUR_TOKEN": SECRETS["env"], "PYTHONPATH": str(tmp_path / "ring")}
    done = subprocess.run(
        [sys.executable, "-m", "ddconsole", "run", "leaky", "--record", str(tmp_path / "recording.jsonl")],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "cannot log in" in done.stderr, done.stderr
    assert leaks(done.stdout + done.stderr) == []
    (log,) = leaky.glob("runs/*/engine.log")
    assert set(leaks(log.read_text())) == {*SECRETS.values(), API_KEY}, "the engine did print them"
    assert log.stat().st_mode & 0o077 == 0
    for path in [tmp_path / "recording.jsonl", *(home / "data").rglob("*"), *(home / "state").rglob("*")]:
        assert not path.is_file() or leaks(path.read_bytes().decode("utf-8", "replace")) == [], path
    for words in (
        *(("results", "leaky", "export", "--format", form) for form in ("json", "csv", "md", "html")),
        ("results", "leaky", "show", "E1"), ("results", "leaky", "show", "E1", "--json"),
        ("queue", "leaky", "list", "--json"), ("events", "leaky", "--json"),
    ):  # fmt: skip
        answer = ddconsole(*words)
        assert "E1" in answer.out, words
        assert leaks(answer.out + answer.err) == [], words
    left = [path for path in leaky.rglob("*") if path.is_file() and path != log and leaks(path.read_text("utf-8"))]
    assert left == [], "the file by which they went is gone"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret that this process has read."""
    monkeypatch.setattr(secrets, "_read_here", {SECRETS["env"]})
    return SECRETS["env"]


def test_a_report_of_a_bug_holds_none(known: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither what is printed nor the trace that is kept for the report, wherever in them it stands."""
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError(f"posted {known} and api_key='{API_KEY}'")
    assert report.tell_bug(caught.value, as_json=False) == report.EXIT_BUG
    assert report.tell_bug(caught.value, as_json=True) == report.EXIT_BUG
    printed = capsys.readouterr()
    kept = (home / "state" / "last-bug.txt").read_text("utf-8")
    assert "RuntimeError: posted ***" in kept
    assert [text for text in (printed.out, printed.err, kept) if known in text or f"'{API_KEY}'" in text] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_an_error_with_a_hosts_words_holds_none(known: str, capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    """What, evidence and advice."""
    error = HostError(f"failed with {known}", evidence=(f"token {known}",), advice=f"unset {known}")
    report.tell(error, as_json=as_json)
    printed = capsys.readouterr()
    assert "***" in printed.out + printed.err
    assert known not in printed.out + printed.err
