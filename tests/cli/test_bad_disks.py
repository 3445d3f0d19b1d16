"""A data folder that cannot be written, a full disk behind an output: said in a line, and nothing there is lost."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Answer

NOBODY = 65_534
FULL = Path("/dev/full")


def as_somebody_without_rights(work: Callable[[], Answer]) -> Answer:
    """Run in a child that is not root: to root no folder is read-only."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # what it needs was imported before
        os.close(reading)
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            answer: object = work()
        except BaseException as error:
            answer = Answer(255, "", repr(error))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found: Answer = pickle.load(pipe)
    os.waitpid(child, 0)
    return found


def opened_to_all(folder: Path) -> None:
    """Nobody may come as far as the home, and read all of it."""
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


@pytest.fixture
def locked(home: Path, ddconsole: Callable[..., Answer]) -> Path:
    """A home with a queue in which nothing can be written any more."""
    assert ddconsole("queue", "demo", "add", "b=8", "B=40").code == 0
    ddconsole("queue", "demo", "list", "--json")
    opened_to_all(home)
    for folder in (home, *(path for path in home.rglob("*") if path.is_dir())):
        folder.chmod(0o555)
    for path in home.rglob("*.db*"):
        path.chmod(0o444)
    return home


@pytest.mark.parametrize("words", [("queue", "demo", "add", "b=8", "B=41"), ("queue", "demo", "remove", "E4")])
def test_a_read_only_data_folder_refuses_the_edit_and_keeps_the_queue(
    locked: Path, ddconsole: Callable[..., Answer], words: tuple[str, ...]
) -> None:
    """One message with what to do, exit code 74; written to again, everything is there."""
    answer = as_somebody_without_rights(lambda: ddconsole(*words))
    assert answer.code == 74, answer
    assert "writable" in answer.err
    assert "Traceback" not in answer.err
    for path in (locked, *locked.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o600)
    assert [item["id"] for item in ddconsole("queue", "demo", "list", "--json").json["items"]] == [
        "E1",
        "E2",
        "E3",
        "E4",
    ]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words",
    [("results", "demo", "export", "--format", "json", "-o", str(FULL)), ("queue", "demo", "export", "-o", str(FULL))],
)
def test_a_full_disk_behind_an_export_is_told(ddconsole: Callable[..., Answer], words: tuple[str, ...]) -> None:
    """Nothing claims to be written."""
    ddconsole("queue", "demo", "list")
    answer = ddconsole(*words)
    assert answer.code in (2, 74), answer
    assert "No space left" in answer.err
    assert "Traceback" not in answer.err


def test_a_home_that_was_removed_while_nothing_ran_is_made_anew(home: Path, ddconsole: Callable[..., Answer]) -> None:
    """/tmp was wiped on this machine: the queue of the profile starts as on the first day, and files are private."""
    ddconsole("queue", "demo", "list")
    shutil.rmtree(home / "data")
    shutil.rmtree(home / "state", ignore_errors=True)
    assert ddconsole("queue", "demo", "list").code == 0


def test_every_file_and_folder_that_is_made_is_private(
    home: Path, ddconsole: Callable[..., Answer], tmp_path: Path
) -> None:
    """Files 600, folders 700, whatever the umask allows; exports that a user asked for follow the umask."""
    before = os.umask(0)
    try:
        for words in (
            ("queue", "demo", "add", "b=8", "B=40"), ("results", "demo", "list"), ("profiles", "new", "mine"),
            ("events", "demo"), ("engine", "demo", "status"),
        ):  # fmt: skip
            ddconsole(*words)
    finally:
        os.umask(before)
    made = [path for place in ("data", "state") for path in (home / place).rglob("*") if not path.is_symlink()]
    assert any(path.name.endswith(".db") for path in made)
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []
