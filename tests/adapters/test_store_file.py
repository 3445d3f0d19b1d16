"""The store's file: many writers, kill -9, a full disk, other programs' files, older and newer versions."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ddconsole.adapters.store import SqliteStore
from ddconsole.adapters.store import schema as store_schema
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import StoreError
from ddconsole.core.experiment import Origin, Running
from ddconsole.core.ports import AttemptKey
from ddconsole.core.queue import Add, Draft

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048, args=(("page-size", "1"),))
WRITER = Path(__file__).parent / "store_writer.py"


def add(*budgets: int) -> Add:
    """An edit that queues one tree for each budget."""
    drafts = tuple(Draft(Config(Algorithm.TREE, block_size=8, budget=budget)) for budget in budgets)
    return Add(drafts, Origin(text="B=" + ",".join(str(budget) for budget in budgets)))


def reopened(store: SqliteStore) -> SqliteStore:
    """The same file, read by someone who knows nothing yet."""
    store.close()
    return SqliteStore(store.path, now=lambda: NOW)


def begun(store: SqliteStore, profile: str = "p") -> AttemptKey:
    """An attempt at a new experiment."""
    queue = store.edit(profile, add(12))
    return store.begin_attempt(profile, queue.items[-1].id, {"engine": "toy"}, NOW)


def test_another_connections_write_is_noticed_and_ones_own_is_not(store: SqliteStore) -> None:
    """What the screen looks at four times a second."""
    before = store.data_version()
    store.edit("p", add(12))
    assert store.data_version() == before
    other = SqliteStore(store.path)
    other.edit("p", add(16))
    other.close()
    assert store.data_version() != before
    assert len(store.queue("p").items) == 2


def test_each_thread_has_a_connection_of_its_own(store: SqliteStore) -> None:
    """And all of them are closed together."""
    problems: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(5):
                store.edit("p", add(12))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [item.id for item in store.queue("p").items] == [f"E{number}" for number in range(1, 21)]


def writer(store_path: Path, *words: str) -> subprocess.Popen[str]:
    """Another process that writes to the store and acknowledges each write on its stdout."""
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(store_path), *words], stdout=subprocess.PIPE, text=True, bufsize=1
    )


def test_eight_processes_that_edit_at_once_lose_nothing(store: SqliteStore) -> None:
    """Every edit gets an id and a revision of its own; the revision counts them all."""
    processes = [writer(store.path, "edit", "25") for _ in range(8)]
    acknowledged: list[str] = []
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        acknowledged += output.split()
    queue = store.queue("p")
    assert sorted(acknowledged) == sorted(item.id for item in queue.items)
    assert len(set(acknowledged)) == 200
    assert queue.revision == 200


@pytest.mark.parametrize("after", [1, 4, 9])
def test_everything_acknowledged_before_a_kill_is_there(store: SqliteStore, after: int) -> None:
    """kill -9 between or within any two writes: at most the one that was not acknowledged is missing."""
    with writer(store.path, "attempt", "1000000") as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().split() for _ in range(after)]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += [line.split() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    check_acknowledged(store, acknowledged)
    assert store.edit("q", add(12)).items[0].id == "E1"


def check_acknowledged(store: SqliteStore, acknowledged: list[list[str]]) -> None:
    """Each line names a write; what it wrote must be found, and states must agree with each other."""
    finished = [number for what, number in acknowledged if what == "finish"]
    results = store.results("p")
    assert len(results) >= len(finished)
    for what, number in acknowledged:
        key = AttemptKey("p", f"E{number}", 1)
        found: dict[str, Any] = {
            "add": any(item.id == key.id for item in store.queue("p").items),
            "begin": key in store.open_attempts("p") or any(result["id"] == key.id for result in results),
            "request": [record.prompt_id for record in store.records(key)] == ["q"],
            "pass": store.finished_passes(key) == {"coding": [{"n": int(number)}]},
            "event": len(store.events("p", after=int(number) - 1, limit=1)) == 1,
            "finish": any(result["id"] == key.id for result in results),
        }
        assert found[what], f"{what} {number}"
    running = [item.id for item in store.queue("p").items if isinstance(item.state, Running)]
    assert running == [key.id for key in store.open_attempts("p")]


def test_the_file_is_private(store: SqliteStore, store_path: Path) -> None:
    """So are its folder, and the files that SQLite puts beside it."""
    store.edit("p", add(12))
    assert stat.S_IMODE(store_path.parent.stat().st_mode) == 0o700
    for file in store_path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_file_of_a_newer_program_is_left_alone(store: SqliteStore, store_path: Path) -> None:
    """The versions are named, and nothing is written."""
    store.close()
    with sqlite3.connect(store_path) as db:
        db.execute(f"PRAGMA user_version = {store_schema.NEWEST + 1}")
    db.close()
    with pytest.raises(StoreError, match=f"newer ddconsole .store version {store_schema.NEWEST + 1}"):
        SqliteStore(store_path)


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """It is SQLite, but not ours."""
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()
    with pytest.raises(StoreError, match="not a store of ddconsole"):
        SqliteStore(path)


@pytest.mark.parametrize(
    "content",
    [b"not a database at all, but long enough to look at\n" * 40, b"SQLite format 3\0" * 99],
    ids=["text", "a torn header"],
)
def test_a_damaged_file_is_named_as_such(tmp_path: Path, content: bytes) -> None:
    """Three lines: what, SQLite's own words, what to do. The file is untouched."""
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged or is no SQLite file") as told:
        SqliteStore(path)
    assert told.value.evidence[0].startswith("SQLite: ")
    assert "keeps the file aside" in told.value.advice
    assert path.read_bytes() == content


def test_a_row_that_no_queue_can_mean_is_a_store_error(store: SqliteStore) -> None:
    """Changed by hand, for example; never a traceback."""
    store.edit("p", add(12))
    with sqlite3.connect(store.path) as db:
        db.execute("""UPDATE experiments SET body = '{"id": "E1"}'""")
    db.close()
    with pytest.raises(StoreError, match="cannot be understood"):
        store.queue("p")


def test_a_place_that_cannot_be_a_file_is_told(tmp_path: Path) -> None:
    """A folder has the store's name."""
    (tmp_path / "x.db").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(tmp_path / "x.db")


def test_a_write_to_a_read_only_store_is_told(store: SqliteStore) -> None:
    """And reading goes on."""
    store.edit("p", add(12))
    store._connection().execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="is read-only"):
        store.edit("p", add(16))
    assert len(store.queue("p").items) == 1


def test_a_full_disk_loses_nothing_and_the_next_try_works(store: SqliteStore) -> None:
    """The edit that did not fit is refused as a whole."""
    store.edit("p", add(12))
    connection = store._connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        store.edit("p", add(*range(100, 300)))
    assert [item.id for item in store.queue("p").items] == ["E1"]
    connection.execute("PRAGMA max_page_count = 100000")
    assert len(store.edit("p", add(*range(100, 300))).items) == 201


def test_a_store_that_is_held_by_another_is_told_after_the_wait(store_path: Path) -> None:
    """A stopped process in the middle of a write, for example."""
    holder, waiting = SqliteStore(store_path), SqliteStore(store_path, busy_s=0.05)
    holder._connection().execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="held by another process"):
        waiting.edit("p", add(12))
    holder._connection().execute("ROLLBACK")
    assert waiting.edit("p", add(12)).revision == 1
    holder.close()
    waiting.close()


def test_migrations_run_from_any_earlier_version(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old file is brought up to date with what is in it; a new one is made by the same steps."""
    old = SqliteStore(store_path)
    before = old.edit("p", add(12))
    old.close()
    newer = (*store_schema.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN host TEXT",))
    monkeypatch.setattr(store_schema, "MIGRATIONS", newer)
    monkeypatch.setattr(store_schema, "NEWEST", len(newer))
    for place in (store_path, store_path.with_name("new.db")):
        opened = SqliteStore(place)
        columns = [row[1] for row in opened._connection().execute("PRAGMA table_info(runs)")]
        assert "host" in columns
        assert opened._connection().execute("PRAGMA user_version").fetchone()[0] == len(newer)
        opened.close()
    again = SqliteStore(store_path)
    assert again.queue("p") == before
    again.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it or nothing, so the older program still opens it."""
    SqliteStore(store_path).close()
    with monkeypatch.context() as patched:
        broken = (*store_schema.MIGRATIONS, ("CREATE TABLE half (x)", "CREATE TABLE nonsense ("))
        patched.setattr(store_schema, "MIGRATIONS", broken)
        patched.setattr(store_schema, "NEWEST", len(broken))
        with pytest.raises(StoreError):
            SqliteStore(store_path)
    opened = SqliteStore(store_path)
    tables = {name for (name,) in opened._connection().execute("SELECT name FROM sqlite_master")}
    assert "half" not in tables
    opened.close()


def test_writes_wait_for_the_disk(store: SqliteStore) -> None:
    """The promise behind "on disk when it returns": write-ahead log, full synchronisation, foreign keys."""
    values = {
        name: store._connection().execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_file_that_is_deleted_while_it_is_open_is_told(store: SqliteStore, store_path: Path) -> None:
    """SQLite would go on writing where nobody finds it; nothing is acknowledged that could be lost."""
    store.edit("p", add(12))
    kept = store_path.rename(store_path.with_name("kept.db"))
    with pytest.raises(StoreError, match="deleted, moved or replaced"):
        store.edit("p", add(16))
    kept.rename(store_path)
    assert len(store.edit("p", add(16)).items) == 2


def test_a_file_that_is_replaced_while_it_is_open_is_told(store: SqliteStore, store_path: Path) -> None:
    """By a backup that was copied back, for example."""
    store.edit("p", add(12))
    store._connection().execute("VACUUM INTO ?", (str(store_path.with_name("backup.db")),))
    store_path.with_name("backup.db").replace(store_path)
    with pytest.raises(StoreError, match="deleted, moved or replaced"):
        store.queue("p")
