"""Phases of an attempt: begun, measured, ended, each on disk before it is shown."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import DdconsoleError, Failure, RefusedError, StoreError
from ddconsole.core.events import PhaseChanged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.ports import AttemptKey, Clock
    from ddconsole.runner.journal import Journal


class AttemptFailed(Exception):  # noqa: N818 - it carries an expected outcome up to the attempt, it is not an error of ours
    """The attempt ends here, for a cause with a name."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


class PhaseLog:
    """Tells the journal and the store when a phase of one attempt begins and ends."""

    def __init__(self, journal: Journal, clock: Clock, key: AttemptKey) -> None:
        self._journal = journal
        self._clock = clock
        self._key = key
        self.seconds: dict[str, float] = {}

    async def begin(self, phase: str) -> None:
        """The phase starts now."""
        await self._journal.emit(PhaseChanged(phase, "started"), self._key)

    async def end(self, phase: str, seconds: float, state: str = "done") -> None:
        """The phase took `seconds`; state is done or failed. Only what was done makes history."""
        seconds = round(seconds, 3)
        if state != "done":
            await self._journal.emit(PhaseChanged(phase, state, seconds), self._key)
            return
        self.seconds[phase] = seconds
        await self._journal.emit(
            PhaseChanged(phase, state, seconds),
            self._key,
            also=lambda store: store.save_phase(self._key, phase, seconds),
        )

    @contextlib.asynccontextmanager
    async def phase(self, phase: str) -> AsyncIterator[None]:
        """The time inside is the phase's. An expected error inside fails it, and keeps its own three lines."""
        await self.begin(phase)
        began = self._clock.monotonic()
        try:
            yield
        except AttemptFailed as failed:
            await self.end(phase, self._clock.monotonic() - began, "failed")
            raise AttemptFailed(in_phase(failed.failure, phase)) from None
        except StoreError:  # nor can the end of the phase be kept
            raise
        except RefusedError:  # not the attempt's failure: the host is another console's
            await self.end(phase, self._clock.monotonic() - began, "failed")
            raise
        except DdconsoleError as error:
            await self.end(phase, self._clock.monotonic() - began, "failed")
            raise AttemptFailed(Failure(error.kind, error.what, error.evidence, error.advice, phase)) from error
        await self.end(phase, self._clock.monotonic() - began)


def in_phase(failure: Failure, phase: str) -> Failure:
    """The failure with its phase named, unless a closer one is named already."""
    if failure.phase is not None:
        return failure
    return Failure(failure.cause, failure.what, failure.evidence, failure.advice, phase)
