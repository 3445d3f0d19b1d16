"""The store: one file that loses nothing. Synchronous; the runner calls it on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ddconsole.core.config import Config
    from ddconsole.core.errors import Failure
    from ddconsole.core.events import Event
    from ddconsole.core.experiment import Outcome
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports.engine import Launched
    from ddconsole.core.queue import Edit, Queue


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """One try at an experiment: `E17`, its second."""

    profile: str
    id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class KeptEngine:
    """An engine of ours that may run on a host, with the effective config that it was started for.

    `name` is its launch's name on the host. `launched` is None when the console died before the host had answered:
    whether there is an engine of that name, only the host knows.
    """

    key: AttemptKey
    name: str
    launched: Launched | None
    effective: Mapping[str, Any]


class RunLock(Protocol):
    """One runner a host: held by a process, and released by the system when that process dies."""

    def acquire(self) -> None:
        """Take it.

        Raises:
            RefusedError: another process holds it; the text says which.
        """
        ...

    def release(self) -> None:
        """Give it back; nothing happens when it is not held."""
        ...


class Store(Protocol):
    """Every method that changes something has it on disk when it returns.

    Raises, all of them: StoreError when the file cannot be read or written.
    """

    def data_version(self) -> int:
        """Changes whenever another connection has written (PRAGMA data_version)."""
        ...

    # --- the queue

    def queue(self, profile: str) -> Queue:
        """The queue as it stands; empty for a profile never seen."""
        ...

    def edit(self, profile: str, edit: Edit, *, seen: int | None = None) -> Queue:
        """Apply an edit in one transaction and return the new queue.

        `seen` is the revision that the editor saw; None applies to whatever stands.

        Raises:
            RefusedError: the rules refuse it, or `seen` is stale in a way that touches this edit.
        """
        ...

    def seed(self, profile: str, edits: Sequence[Edit]) -> bool:
        """Put a profile's starting queue in, once and never again. False when that was done before."""
        ...

    # --- attempts and what they measure

    def begin_attempt(
        self, profile: str, experiment: str, recipe: Mapping[str, Any], at: datetime, config: Config | None = None
    ) -> AttemptKey:
        """Mark the experiment running and open an attempt, in one transaction.

        `config` is what `base=best` was bound to; None keeps the experiment's own.

        Raises:
            RefusedError: the experiment is not queued any more.
        """
        ...

    def update_recipe(self, key: AttemptKey, recipe: Mapping[str, Any]) -> None:
        """Add to what the attempt is known to run: versions, command, facts."""
        ...

    def recipe(self, key: AttemptKey) -> dict[str, Any]:
        """What the attempt is known to run; empty for one that never began."""
        ...

    def save_phase(self, key: AttemptKey, phase: str, seconds: float) -> None:
        """A phase's measured time."""
        ...

    def save_request(self, key: AttemptKey, pass_name: str, repeat: int, record: RequestRecord) -> None:
        """A request's whole record."""
        ...

    def cut_pass(self, key: AttemptKey, pass_name: str, repeat: int) -> None:
        """What a pass that begins now has brought before was cut in the middle: kept, but no measurement."""
        ...

    def inherit_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """Take over the whole passes of the attempt before, with their requests, when that was interrupted.

        Only when both measured the same as far as their recipes tell: versions, profile, suite, effective config.
        Returns the finished passes.
        """
        ...

    def inheritable_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """What `inherit_passes` would take over; nothing is written."""
        ...

    def save_pass(self, key: AttemptKey, pass_name: str, repeat: int, summary: Mapping[str, Any]) -> None:
        """A pass is finished; it is not measured again after a restart."""
        ...

    def finished_passes(self, key: AttemptKey) -> dict[str, list[dict[str, Any]]]:
        """Summaries by pass name, one for each repeat."""
        ...

    def finish_attempt(
        self, key: AttemptKey, outcome: Outcome, result: Mapping[str, Any], failure: Failure | None, at: datetime
    ) -> None:
        """Close the attempt and move the experiment to its end state, in one transaction.

        Interrupted puts the experiment back to queued, at the front.
        """
        ...

    def cut_attempt(self, key: AttemptKey, by: str) -> None:
        """Note what cut an attempt that is, or will be, interrupted: a cause's word."""
        ...

    def blame(self, profile: str, by: str) -> AttemptKey | None:
        """The newest attempt was cut by more than its console's death; None when it was not cut so."""
        ...

    def cuts(self, profile: str, experiment: str) -> list[str]:
        """What cut an experiment's attempts since the last that was not interrupted, oldest first."""
        ...

    def open_attempts(self, profile: str) -> list[AttemptKey]:
        """Attempts that were begun and never finished: what an unclean end leaves behind."""
        ...

    def results(self, profile: str) -> list[dict[str, Any]]:
        """The items of `results list --json`, oldest first, from finished attempts."""
        ...

    def records(self, key: AttemptKey, pass_name: str | None = None) -> list[RequestRecord]:
        """The requests of an attempt in the order they ended."""
        ...

    def phase_history(self, profile: str) -> list[dict[str, float]]:
        """Seconds by phase of this profile's finished boots and passes, newest first, at most 20."""
        ...

    # --- engines that we started

    def plan_engine(self, key: AttemptKey, name: str, effective: Mapping[str, Any]) -> None:
        """Record that an engine is about to be started under `name`, before the host hears of it."""
        ...

    def remember_engine(self, name: str, launched: Launched) -> None:
        """The host has started it."""
        ...

    def forget_engine(self, name: str) -> None:
        """It is proved gone, or was never there."""
        ...

    def engines(self, profile: str) -> list[KeptEngine]:
        """Engines of ours that were not proved gone."""
        ...

    # --- events and runs

    def append_event(self, profile: str, event: Event) -> Event:
        """Keep an event and return it with its sequence number. Transient kinds replace their predecessor."""
        ...

    def events(self, profile: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events with a sequence number above `after`."""
        ...

    def last_run_seq(self, profile: str) -> int:
        """Sequence number of the newest `run_started`, 0 when there is none."""
        ...

    def live(self, profile: str) -> list[Event]:
        """The latest of each transient kind."""
        ...

    def begin_run(self, profile: str, run: str, pid: int, at: datetime) -> None:
        """A process begins to work on the queue."""
        ...

    def end_run(self, run: str, at: datetime) -> None:
        """It ended cleanly."""
        ...

    def close_unclean_runs(self, profile: str, at: datetime) -> bool:
        """Mark runs as over whose process died in them. True when there was one."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...
