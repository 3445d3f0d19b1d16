"""A data folder that cannot be written, a full disk behind an output: said in a line, and nothing there is lost."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Answer

from ddconsole.adapters.paths import READ_ONLY_VARIABLE, is_read_only
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli.common import load_profile
from ddconsole.cli.connect import look_at_store
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft

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


def test_a_screen_on_a_store_that_cannot_be_written_only_looks(locked: Path) -> None:
    """It takes no lock and no run, and says why on the screen."""

    def look() -> Answer:
        (notice,) = look_at_store(load_profile("demo"))
        return Answer(int(is_read_only()), notice, "")

    answer = as_somebody_without_rights(look)
    assert answer.code == 1, answer
    assert answer.out.endswith("cannot be written by you: this console looks and changes nothing")


LOOKS = (
    ("queue", "demo", "list"), ("queue", "demo", "list", "--json"), ("--read-only", "queue", "demo", "list"),
    ("results", "demo", "list"), ("results", "demo", "list", "--json"), ("events", "demo"),
    ("queue", "demo", "history"),
    ("queue", "demo", "add", "b=8", "B=41", "--dry-run"), ("queue", "demo", "export"), ("engine", "demo", "status"),
    ("wait", "demo", "idle", "--timeout", "0"), ("profiles", "list"),
)  # fmt: skip


def without_times(text: str) -> str:
    """Times of day are those of the look."""
    return re.sub(r"\d\d:\d\d(:\d\d(\.\d+)?)?", "12:00", text)


def unlocked(home: Path) -> None:
    """Everything may be written again."""
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_read_only_data_folder_can_be_looked_at(
    locked: Path, ddconsole: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """With the same answer as where it can be written; and nothing is left beside the store."""
    files = sorted(locked.rglob("*"))
    answer = as_somebody_without_rights(lambda: ddconsole(*words))
    assert sorted(locked.rglob("*")) == files
    unlocked(locked)
    monkeypatch.setenv(READ_ONLY_VARIABLE, "")
    expected = ddconsole(*words)
    assert answer.code == expected.code != 74
    assert [*map(without_times, (answer.out, answer.err))] == [*map(without_times, (expected.out, expected.err))]


@pytest.fixture
def killed(home: Path, ddconsole: Callable[..., Answer]) -> Path:
    """The store of a console that was killed: its newest edit, E4, stands in the log alone."""
    ddconsole("queue", "demo", "list")
    path = home / "data" / "ddconsole.db"
    child = os.fork()
    if child == 0:
        store = SqliteStore(path)
        store.edit("demo", Add((Draft(None, note="the newest"),), Origin()))
        os._exit(0)  # never closed
    os.waitpid(child, 0)
    assert path.with_name("ddconsole.db-wal").stat().st_size > 0
    return path


def locked_up(home: Path) -> None:
    """Nobody writes here."""
    opened_to_all(home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def test_doctor_looks_from_a_home_that_cannot_be_written(home: Path, ddconsole: Callable[..., Answer]) -> None:
    """On this machine itself, which needs no folder of ours: it checks, and does not end as an unwritable store."""
    ddconsole("profiles", "new", "here")
    path = home / "config" / "profiles" / "here.yaml"
    path.write_text(re.sub(r"(?m)^host:.*$", "host: local", path.read_text()))
    assert ddconsole("doctor", "here", "--json").code in (0, 1)  # what the child needs is imported now
    locked_up(home)
    answer = as_somebody_without_rights(lambda: ddconsole("doctor", "here", "--json"))
    assert answer.code in (0, 1), answer
    assert answer.json["checked"]


def test_edits_in_the_log_are_shown_where_its_index_is_there(
    killed: Path, home: Path, ddconsole: Callable[..., Answer]
) -> None:
    """A console was killed, or goes on writing, and somebody else looks."""
    locked_up(home)
    answer = as_somebody_without_rights(lambda: ddconsole("queue", "demo", "list", "--json"))
    assert [item["id"] for item in answer.json["items"]] == ["E1", "E2", "E3", "E4"]


def test_edits_in_a_log_that_cannot_be_read_are_said_and_never_left_out(
    killed: Path, home: Path, ddconsole: Callable[..., Answer]
) -> None:
    """An older queue is not shown as if it were the newest."""
    killed.with_name("ddconsole.db-shm").unlink()
    locked_up(home)
    answer = as_somebody_without_rights(lambda: ddconsole("queue", "demo", "list"))
    assert (answer.code, answer.out) == (74, "")
    assert "its newest edits stand in its log, which cannot be read here" in answer.err
    unlocked(home)
    assert "the newest" in ddconsole("queue", "demo", "list").out


def test_who_looks_on_sees_what_the_owner_writes_later(locked: Path) -> None:
    """The store was opened as a file that nobody changes; then somebody does."""
    path = locked / "data" / "ddconsole.db"
    opened, changed = os.pipe(), os.pipe()

    def look_on() -> Answer:
        os.close(changed[1])  # so that the owner's death is an end of what is read
        store = SqliteStore(path)
        before, seen = store.data_version(), len(store.queue("demo").items)
        os.write(opened[1], b"1")
        os.read(changed[0], 1)
        return Answer(int(store.data_version() != before), str(seen), str(len(store.queue("demo").items)))

    owner = os.fork()
    if owner == 0:
        try:
            os.close(opened[1])
            os.read(opened[0], 1)
            path.parent.chmod(0o755)
            path.chmod(0o644)
            store = SqliteStore(path)
            store.edit("demo", Add((Draft(None, note="later"),), Origin()))
            store.close()
            os.write(changed[1], b"1")
        finally:
            os._exit(0)
    answer = as_somebody_without_rights(look_on)
    for end in (*opened, *changed):
        os.close(end)
    os.waitpid(owner, 0)
    assert (answer.code, answer.out, answer.err) == (1, "4", "5")


def damaged(home: Path) -> Path:
    """The store, with noise in the place of an index."""
    path = home / "data" / "ddconsole.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'requests_by_attempt'").fetchone()
    data = bytearray(path.read_bytes())
    data[4096 * (page - 1) : 4096 * page] = b"\xa5" * 4096
    path.write_bytes(data)
    return path


def test_a_rescue_is_said_on_stderr_with_what_was_kept_and_what_was_saved(
    home: Path, ddconsole: Callable[..., Answer]
) -> None:
    """Once, loudly, and beside a whole answer on stdout."""
    ddconsole("queue", "demo", "list")
    damaged(home)
    answer = ddconsole("queue", "demo", "list", "--json")
    (aside,) = (home / "data").glob("damaged-*")
    assert answer.code == 0
    assert len(answer.json["items"]) == 3
    first, saved, kept = answer.err.splitlines()
    assert first == "ddconsole: the store was damaged; a new one was built from what could be read of it"
    assert "saved: 1 queues, 3 experiments" in saved
    assert kept.endswith(f"the damaged files are kept in {aside}")
    assert ddconsole("queue", "demo", "list", "--json").err == ""


def test_a_damaged_store_that_cannot_be_rescued_here_is_said(home: Path, ddconsole: Callable[..., Answer]) -> None:
    """Its folder cannot be written: one error with the remedy, and no rescue is tried."""
    ddconsole("queue", "demo", "list")
    damaged(home)
    locked_up(home)
    answer = as_somebody_without_rights(lambda: ddconsole("queue", "demo", "list"))
    assert answer.code == 74, answer
    assert "is damaged" in answer.err
    unlocked(home)
    assert not list((home / "data").glob("damaged-*"))


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
