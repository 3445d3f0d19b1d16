"""The results of a profile as the verbs need them: its own and imported ones, compared, and found by name."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ddconsole.cli.common import load_profile, open_and_seed
from ddconsole.core.boots import Known
from ddconsole.core.compare import compared
from ddconsole.core.errors import UsageError
from ddconsole.core.ports.store import AttemptKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore
    from ddconsole.report.book import Entry

HEAVY = ("recipe", "passes", "phases", "requests", "intervals")
"""What an imported item carries that a list does not show."""

NAME = re.compile(r"(?:(?P<where>[^:#]+):)?(?P<id>[A-Za-z]+[0-9]+)(?:#(?P<attempt>[1-9][0-9]{0,8}))?")


SWEEP = re.compile(r"S[1-9][0-9]{0,8}")


@dataclass(slots=True)
class Shelf:
    """Open for one command.

    Attributes:
        items: as `results list --json` has them, oldest first, imported ones behind.
        known: the same, with the boots of each config found.
        imported: whole imported items by (id, attempt).
        copies: imported items that are measurements of `items`: found by name, and counted once.
        everything: `items` before some of them were chosen by name.
    """

    loaded: LoadedProfile
    store: SqliteStore
    revision: int
    items: list[dict[str, Any]]
    known: Known
    imported: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    copies: list[dict[str, Any]] = field(default_factory=list)
    everything: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.everything = self.everything or self.items

    @property
    def name(self) -> str:
        """The profile's."""
        return self.loaded.name

    @property
    def trained_block_size(self) -> int | None:
        """What the profile says of its drafter."""
        return self.loaded.profile.engine.known_block_size

    def attempts(self, id_: str) -> list[int]:
        """The attempts of an experiment that have ended."""
        return [item["attempt"] for item in self.items if item["id"] == id_]

    def find(self, word: str, attempt: int | None = None) -> dict[str, Any]:
        """The result that a word names, the latest attempt unless one is said.

        Raises:
            UsageError: it names none; the error says what there is.
        """
        parts = NAME.fullmatch(word.strip())
        if parts is None:
            raise UsageError(f"{word!r} is no name of a result", advice="such as E11, E11#2, ct200:E11")
        wanted = attempt or (int(parts["attempt"]) if parts["attempt"] else None)
        id_ = parts["id"].upper() if parts["where"] is None else f"{parts['where']}:{parts['id'].upper()}"
        items = [*self.items, *self.copies]
        if parts["where"] == self.name:
            id_ = parts["id"].upper()
        elif parts["where"] is not None and not any(item["id"] == id_ for item in items):
            items = self._elsewhere(parts["where"])
        found = [item for item in items if item["id"] == id_]
        chosen = [item for item in found if wanted is None or item["attempt"] == wanted]
        if not chosen:
            raise self._nothing(id_, [item["attempt"] for item in found])
        return chosen[-1]

    def only(self, words: Sequence[str]) -> Shelf:
        """The same shelf with the results that these words name, each once: a sweep is all of its members' attempts.

        Raises:
            UsageError: one of them names nothing.
        """
        if not words:
            return self
        chosen: dict[tuple[str, int], dict[str, Any]] = {}
        for word in words:
            for item in self._sweep(word) or [self.find(word)]:
                chosen[item["id"], item["attempt"]] = item
        items = list(chosen.values())
        return replace(self, items=items, known=Known(items))

    def _sweep(self, word: str) -> list[dict[str, Any]]:
        """The results of a sweep's members, empty when the word names no sweep.

        Raises:
            UsageError: a sweep of which nothing has been measured.
        """
        name = word.strip().upper()
        if not SWEEP.fullmatch(name):
            return []
        found = [item for item in self.items if item.get("sweep") == name]
        if not found:
            raise UsageError(f"nothing of {name} has a result", advice=f"`ddconsole queue {self.name} list`")
        return found

    def entry(self, item: dict[str, Any], *, with_requests: bool = False) -> Entry:
        """A result with all that is kept of it."""
        from ddconsole.report.book import Entry

        whole = self.imported.get((item["id"], item["attempt"]))
        if whole is not None:
            requests = whole.get("requests") or [] if with_requests else []
            return Entry(
                item, whole.get("recipe") or {}, whole.get("passes") or {}, whole.get("phases") or {}, requests
            )
        key = self.key(item)
        records = self.store.records(key) if with_requests else []
        return Entry(
            item,
            self.store.recipe(key),
            self.store.finished_passes(key),
            self.store.phases(key),
            [record.to_json() for record in records],
        )

    def key(self, item: dict[str, Any]) -> AttemptKey:
        """Where the store keeps a result that is not imported."""
        profile, _, id_ = item["id"].rpartition(":")
        return AttemptKey(profile or self.name, id_, item["attempt"])

    def _elsewhere(self, profile: str) -> list[dict[str, Any]]:
        """Results of another profile in the same store, under its name."""
        items = self.store.results(profile)
        if not items:
            raise UsageError(f"nothing was measured on {profile}, and no import has that name")
        return [item | {"id": f"{profile}:{item['id']}"} for item in items]

    def _nothing(self, id_: str, attempts: Sequence[int]) -> UsageError:
        if attempts:
            return UsageError(f"{id_} has no such attempt", advice=f"it has {', '.join(map(str, attempts))}")
        item = next((item for item in self.store.queue(self.name).items if item.id == id_), None)
        if item is None:
            return UsageError(f"{id_} is no experiment of {self.name}", advice=f"`ddconsole results {self.name} list`")
        return UsageError(f"{id_} has no result: it is {item.state.name}", advice=f"`ddconsole queue {self.name} list`")


@contextlib.contextmanager
def open_shelf(profile: str) -> Iterator[Shelf]:
    """The shelf of a profile, closed at the end.

    Raises:
        UsageError: no such profile, or a damaged import.
        StoreError: the store cannot be read.
    """
    from ddconsole.adapters import imported

    loaded = load_profile(profile)
    store = open_and_seed(loaded)
    try:
        whole = imported.load_all(loaded.name)
        new, copies = _apart(store.results(loaded.name), whole)
        items = compared(new, loaded.profile.engine.known_block_size)
        by_key = {(item["id"], item["attempt"]): item for item in whole}
        yield Shelf(loaded, store, store.queue(loaded.name).revision, items, Known(items), by_key, copies)
    finally:
        store.close()


def _apart(
    own: Sequence[dict[str, Any]], imported: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(all results, copies): an import may bring back what was measured here, or what another import brought."""
    items, copies = list(own), list[dict[str, Any]]()
    seen = {_measured(item) for item in own}
    for item in imported:
        light = {name: value for name, value in item.items() if name not in HEAVY}
        (copies if _measured(item) in seen else items).append(light)
        seen.add(_measured(item))
    return items, copies


def _measured(item: dict[str, Any]) -> tuple[Any, ...]:
    """What two results share only when they are one measurement: place and time to the millisecond, and the boot."""
    return tuple(item.get(name) for name in ("measured_on", "started_at", "finished_at", "boot"))
