"""What an unclean end left behind: attempts that never ended, engines that may still run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.events import ExperimentFinished, Warned
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import SetPaused
from ddconsole.core.retries import CONSOLE_ENDED, try_words

if TYPE_CHECKING:
    from datetime import datetime

    from ddconsole.core.errors import Failure
    from ddconsole.core.ports import AttemptKey, Clock, Store
    from ddconsole.runner.database import Database
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.slot import EngineSlot


async def put_right(database: Database, journal: Journal, clock: Clock, profile: str) -> bool:
    """Close what a process that died left open; False when the last run ended cleanly. Call it under the run lock.

    Its attempts are interrupted and their experiments back at the front, and the queue is paused.
    """
    keys = await database.do(lambda store: store.open_attempts(profile))
    died = await database.do(lambda store: store.close_unclean_runs(profile, clock.now()))
    for key in reversed(keys):
        await _interrupt(journal, clock, key)
    if not died and not keys:
        return False
    await database.do(lambda store: store.edit(profile, SetPaused(True)))
    await journal.emit(Warned("the last run did not end cleanly: the queue is paused"))
    return True


async def _interrupt(journal: Journal, clock: Clock, key: AttemptKey) -> None:
    at = clock.now()
    verdict = "interrupted: the console ended in the middle; queued again at the front"
    await journal.emit(
        ExperimentFinished(Outcome.INTERRUPTED.value, verdict),
        key,
        also=lambda store: _close(store, key, at),
    )


def _close(store: Store, key: AttemptKey, at: datetime) -> None:
    store.cut_attempt(key, CONSOLE_ENDED)
    store.finish_attempt(key, Outcome.INTERRUPTED, {}, None, at)


async def find_engines(database: Database, journal: Journal, slot: EngineSlot, profile: str) -> None:
    """Adopt the newest engine of ours that still lives; end older ones and whatever dead ones left behind.

    Raises:
        AttemptFailed: something of an engine remains that could not be ended.
    """
    for kept in await database.do(lambda store: store.engines(profile)):
        if slot.occupant is not None:
            await slot.empty()
        if await slot.adopt(kept):
            continue
        await journal.emit(Warned(f"the engine of {kept.key.id} had ended; nothing of it is left"), kept.key)
        if slot.went_down is not None:
            await _blame(database, journal, profile, slot.went_down)


async def _blame(database: Database, journal: Journal, profile: str, failure: Failure) -> None:
    """The console did not end alone: the attempt that ran then counts among those that took the host down."""
    key = await database.do(lambda store: store.blame(profile, failure.cause))
    if key is not None:
        cuts = await database.do(lambda store: store.cuts(profile, key.id))
        await journal.emit(Warned(f"{key.id} was cut when {failure.what}: {try_words(cuts)}"), key)
