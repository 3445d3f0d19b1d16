"""How often an experiment is tried that takes the host, or its engine's service, down with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.errors import Failure
from ddconsole.core.experiment import Outcome
from ddconsole.core.progress import Phase
from ddconsole.core.retries import DOWNFALLS, may_try_again, try_words
from ddconsole.runner.phases import AttemptFailed

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from ddconsole.core.ports import AttemptKey, Store
    from ddconsole.runner.database import Database


async def end_after_last_try(database: Database, key: AttemptKey) -> None:
    """An experiment that took the host down too often, and its console with it, is not started again.

    Raises:
        AttemptFailed: it did.
    """
    cuts = await database.do(lambda store: store.cuts(key.profile, key.id))
    if may_try_again(cuts):
        return
    last = next(cut for cut in reversed(cuts) if cut in DOWNFALLS)
    advice = f"See the host's journal for why; `ddconsole queue {key.profile} retry {key.id}` tries it again."
    raise AttemptFailed(Failure(last, f"{last}: {try_words(cuts)}", (), advice, Phase.PREFLIGHT.value))


async def judged_failure(database: Database, key: AttemptKey, failure: Failure) -> tuple[Outcome, Failure]:
    """What a failure makes of the attempt: failed, or interrupted when it took more down and another try is due."""
    if failure.cause not in DOWNFALLS or failure.phase == Phase.PREFLIGHT.value:
        return Outcome.FAILED, failure
    before = await database.do(lambda store: store.cuts(key.profile, key.id))
    cuts = [*before, failure.cause]
    outcome = Outcome.INTERRUPTED if may_try_again(cuts) else Outcome.FAILED
    return outcome, replace(failure, what=f"{failure.what}; {try_words(cuts)}")


def close_attempt(
    store: Store, key: AttemptKey, outcome: Outcome, item: dict[str, Any], failure: Failure | None, at: datetime
) -> None:
    """Close it in the store; what it took down counts when it is tried again."""
    if outcome is Outcome.INTERRUPTED and failure is not None and failure.cause in DOWNFALLS:
        store.cut_attempt(key, failure.cause)
    store.finish_attempt(key, outcome, item, failure, at)
