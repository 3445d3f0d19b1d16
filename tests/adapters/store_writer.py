"""A process that writes to a store and, with the first two, says so after each write.

PATH edit|attempt COUNT, or PATH rounds COUNT AUTHOR.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.events import Event, Warned
from ddconsole.core.experiment import Origin, Outcome
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.queue import Add, Change, Draft, Hold, Release, Remove

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)
ADD = Add((Draft(Config(Algorithm.TREE, block_size=8, budget=12)),), Origin())


def say(*words: object) -> None:
    """Acknowledge a write."""
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def edit(store: SqliteStore, count: int) -> None:
    """Queue `count` experiments, one edit each."""
    for _ in range(count):
        say(store.edit("p", ADD).items[-1].id)


def attempt(store: SqliteStore, count: int) -> None:
    """Take `count` experiments through a whole attempt."""
    for number in range(1, count + 1):
        item = store.edit("p", ADD).items[-1]
        say("add", number)
        key = store.begin_attempt("p", item.id, {}, NOW)
        say("begin", number)
        store.save_request(key, "coding", 1, RequestRecord(prompt_id="q"))
        say("request", number)
        store.append_event("p", Event(0, NOW, Warned(str(number))))
        say("event", number)
        store.save_pass(key, "coding", 1, {"n": number})
        say("pass", number)
        store.finish_attempt(key, Outcome.PASSED, {}, None, NOW)
        say("finish", number)


def rounds(store: SqliteStore, count: int, author: str) -> None:
    """Four edits a round: add one, change it, hold it, then release it or, every second time, remove it."""
    for number in range(count):
        note = f"{author}-{number}"
        draft = Draft(Config(Algorithm.TREE, block_size=8, budget=12 + number), note=note)
        queue = store.edit("p", Add((draft,), Origin(), author=author))
        id_ = next(item.id for item in queue.items if item.note == note)
        store.edit("p", Change(id_, repeats=2), seen=queue.revision)
        store.edit("p", Hold((id_,)))
        store.edit("p", Remove((id_,)) if number % 2 else Release((id_,)))


if __name__ == "__main__":
    opened = SqliteStore(Path(sys.argv[1]))
    if sys.argv[2] == "rounds":
        rounds(opened, int(sys.argv[3]), sys.argv[4])
    else:
        {"edit": edit, "attempt": attempt}[sys.argv[2]](opened, int(sys.argv[3]))
    opened.close()
