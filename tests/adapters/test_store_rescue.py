"""A damaged store is kept aside, and a new one is built from what reads; killed at any point, nothing more is lost."""

from __future__ import annotations

import random
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ddconsole.adapters.store import SqliteStore, rescue
from ddconsole.adapters.store.rescue import Rescue, open_or_rescue
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import DamagedStoreError, StoreError
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.queue import Add, Draft

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
RECORD = RequestRecord("p1", completion_tokens=481, verify_steps=100, text="x" * 400)


def filled(path: Path, experiments: int = 40) -> None:
    """A store with a queue, and an attempt with thirty requests."""
    store = SqliteStore(path, now=lambda: NOW)
    drafts = tuple(Draft(Config(Algorithm.TREE, block_size=8, budget=8 + number)) for number in range(experiments))
    store.edit("p", Add(drafts, Origin()))
    key = store.begin_attempt("p", "E1", {"engine": "toy"}, NOW)
    for _ in range(30):
        store.save_request(key, "coding", 1, RECORD)
    store.save_pass(key, "coding", 1, {"passed": 5})
    store.finish_attempt(key, Outcome.PASSED, {"tau": 4.81}, None, NOW)
    store._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def opened(path: Path) -> tuple[SqliteStore, list[Rescue]]:
    said: list[Rescue] = []
    return open_or_rescue(path, said.append), said


def overwritten(path: Path, page: int, size: int = 4096) -> None:
    data = bytearray(path.read_bytes())
    data[page * size : (page + 1) * size] = random.Random(page).randbytes(size)
    path.write_bytes(data)


def test_a_whole_store_is_simply_opened(tmp_path: Path) -> None:
    """Nothing is said, nothing is copied."""
    path = tmp_path / "x.db"
    filled(path)
    store, said = opened(path)
    store.close()
    assert said == []
    assert not list(tmp_path.glob("damaged-*"))


@pytest.mark.parametrize("content", [b"", b"no database, but long enough\n" * 40, b"SQLite format 3\0" * 99])
def test_a_file_of_which_nothing_reads_is_kept_aside(tmp_path: Path, content: bytes) -> None:
    """An empty one is simply new; any other is kept byte for byte, and work can go on."""
    path = tmp_path / "x.db"
    path.write_bytes(content)
    store, said = opened(path)
    assert store.edit("p", Add((Draft(None, note="an idea"),), Origin())).revision == 1
    store.close()
    assert len(said) == bool(content)
    for one in said:
        assert (one.aside / "x.db").read_bytes() == content
        assert "saved: nothing" in one.words()[1]


def pages(path: Path) -> int:
    return path.stat().st_size // 4096


def test_whatever_page_is_damaged_the_rest_is_saved(tmp_path: Path) -> None:
    """Each page in turn, overwritten with noise: a store comes out that can be worked with; most pages cost little."""
    good = tmp_path / "good.db"
    filled(good)
    for page in range(pages(good)):
        folder = tmp_path / str(page)
        folder.mkdir()
        path = folder / "x.db"
        path.write_bytes(good.read_bytes())
        overwritten(path, page)
        store, said = opened(path)
        try:
            whole = len(store.queue("p").items) == 40 and len(store.results("p")) == 1
        except DamagedStoreError:  # met only when it is read: the next one who opens it sees to it
            store.close()
            store, said = opened(path)
            whole = False
        assert whole or said, f"page {page}: rows are missing and nothing was said"
        queue = store.edit("p", Add((Draft(None, note="goes on"),), Origin()))
        assert len({item.id for item in queue.items}) == len(queue.items)
        assert all(one.aside.is_dir() and list(one.aside.iterdir()) for one in said)
        store.close()
        with sqlite3.connect(path) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        db.close()


def test_damage_met_while_working_is_mended_at_the_next_start(tmp_path: Path) -> None:
    """The store says so, leaves a mark, and whoever opens it next looks at the whole file."""
    path = tmp_path / "x.db"
    filled(path, experiments=400)
    with sqlite3.connect(path) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'experiments'").fetchone()[0]
    db.close()
    overwritten(path, root - 1)
    store = SqliteStore(path)
    with pytest.raises(DamagedStoreError, match="damaged"):
        store.queue("p")
    store.close()
    again, said = opened(path)
    assert len(said) == 1
    assert "experiments" in said[0].cut
    again.close()
    third, silent = opened(path)
    assert silent == []
    third.close()


@pytest.mark.parametrize("step", ["_rebuild", "_take_over", "_mend_queues", "_drop_orphans"])
def test_a_rescue_that_is_killed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """From the files aside, which are whole before anything else is touched."""
    path = tmp_path / "x.db"
    filled(path)
    content = b"torn" + path.read_bytes()[4:]
    path.write_bytes(content)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(rescue, step, killed)
        with pytest.raises(KeyboardInterrupt):
            opened(path)
    store, said = opened(path)
    store.close()
    assert len(said) == 1
    assert (said[0].aside / "x.db").read_bytes() == content
    assert not list(tmp_path.glob("*.suspect"))


def test_a_log_that_was_cut_anywhere_opens_with_a_prefix_of_what_was_done(tmp_path: Path) -> None:
    """As after a power cut on a disk that lies: an older state, whole, never half an edit."""
    path = tmp_path / "x.db"
    store = SqliteStore(path, now=lambda: NOW)
    for budget in range(8, 20):
        store.edit("p", Add((Draft(Config(Algorithm.TREE, block_size=8, budget=budget)),), Origin()))
    main, log = path.read_bytes(), path.with_name("x.db-wal").read_bytes()
    store.close()
    seen = set()
    odd = (*range(1, 33), *range(33, 57), *range(len(log) - 24, len(log)))  # the log's head, a frame's head, the end
    for cut in sorted({*range(0, len(log), 1009), *odd}):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "x.db").write_bytes(main)
        (folder / "x.db-wal").write_bytes(log[:cut])
        found, said = opened(folder / "x.db")
        items = found.queue("p").items
        assert [item.id for item in items] == [f"E{number}" for number in range(1, len(items) + 1)]
        assert said == []
        seen.add(len(items))
        found.close()
    assert {0, 11} <= seen


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    """It is whole, only not ours."""
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()
    with pytest.raises(StoreError, match="not a store of ddconsole"):
        opened(path)
