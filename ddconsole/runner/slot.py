"""The one engine that runs on the host: kept when the next config is the same engine, else ended with proof."""

from __future__ import annotations

import contextlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.errors import Failure, HostError, StoreError, UnreachableError
from ddconsole.core.events import Warned
from ddconsole.core.masking import Masker
from ddconsole.engines.launch.downfall import downfall
from ddconsole.engines.launch.retention import prune_runs
from ddconsole.runner.follow import LogFollower
from ddconsole.runner.phases import AttemptFailed

if TYPE_CHECKING:
    from ddconsole.core.config import Effective
    from ddconsole.core.ports import AttemptKey, KeptEngine, Launched, LaunchPlan, StopProof
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.claim import Claim
    from ddconsole.runner.database import Database
    from ddconsole.runner.journal import Journal
    from ddconsole.runner.session import Session


@dataclass(slots=True)
class Occupant:
    """The engine in the slot, the effective config it was started for, and its log's follower."""

    name: str
    launched: Launched
    effective: dict[str, object]
    follower: LogFollower


def launch_name(key: AttemptKey) -> str:
    """A name for one launch on the host, by which it is found again even when nothing else of it is known.

    Its random end keeps consoles apart that share a host, an account and a profile's name.
    """
    profile = re.sub(r"[^A-Za-z0-9]+", "-", key.profile).strip("-")[:40] or "profile"
    return f"{profile}-{key.id}-{key.attempt}-{secrets.token_hex(4)}"


class EngineSlot:
    """Starts, keeps, adopts and ends engines of ours; never any other process."""

    def __init__(self, bench: Bench, session: Session, journal: Journal, database: Database, claim: Claim) -> None:
        self._bench = bench
        self._claim = claim
        self._session = session
        self._journal = journal
        self._database = database
        self.occupant: Occupant | None = None
        self.went_down: Failure | None = None
        """What the engine that was last found dead by `adopt` had taken down with it."""

    async def launch(self, plan: LaunchPlan, effective: Effective, key: AttemptKey) -> Occupant:
        """Start an engine in the empty slot. It is on record before anything else is done with it.

        Raises:
            HostError, UnreachableError: it could not be started.
            RefusedError: the host is another console's now.
        """
        await self._claim.take()
        assert self.occupant is None
        name, as_json = launch_name(key), effective.to_json()
        await self._database.do(lambda store: store.plan_engine(key, name, as_json))
        launched = await self._started(plan, name)
        await self._database.do(lambda store: store.remember_engine(name, launched))
        with contextlib.suppress(HostError):  # a full or busy host: the next launch tidies up
            await self._session.on_host(lambda host: prune_runs(host, launched.state_dir))
        return self._occupy(name, launched, as_json, key)

    async def _started(self, plan: LaunchPlan, name: str) -> Launched:
        """What the host started; when the line broke before it had answered, the host is asked again."""
        host = await self._session.host()
        try:
            return await self._bench.launcher.launch(host, plan, name)
        except HostError as error:  # what the host printed of the start may hold anything
            masker = Masker(tuple(plan.secret_env.values()))
            evidence = tuple(map(masker.text, error.evidence))
            raise HostError(masker.text(error.what), evidence=evidence, advice=error.advice) from None
        except UnreachableError as error:
            await self._session.give_up(host, error.what)
            found = await self._session.on_host(lambda host: self._bench.launcher.find(host, name))
            if found is None:
                raise
            return found

    async def holds(self, effective: Effective) -> bool:
        """Whether the engine in the slot lives and is the same engine as `effective`."""
        if self.occupant is None or self.occupant.effective != effective.to_json():
            return False
        launched = self.occupant.launched
        liveness = await self._session.on_host(lambda host: self._bench.launcher.liveness(host, launched))
        return liveness.alive

    async def adopt(self, kept: KeptEngine) -> bool:
        """Take an engine that an earlier console started back into the slot. False when it is dead."""
        self.went_down, found = None, kept.launched
        if found is None:
            found = await self._session.on_host(lambda host: self._bench.launcher.find(host, kept.name))
        if found is None:
            await self._database.do(lambda store: store.forget_engine(kept.name))
            return False
        launched = found
        await self._database.do(lambda store: store.remember_engine(kept.name, launched))
        liveness = await self._session.on_host(lambda host: self._bench.launcher.liveness(host, launched))
        self._occupy(kept.name, launched, dict(kept.effective), kept.key)
        if liveness.alive:
            await self._journal.emit(Warned(f"found the engine of {kept.key.id} again, pid {launched.pid}"), kept.key)
            return True
        self.went_down = await self._session.on_host(lambda host: downfall(host, launched))
        await self.empty()
        return False

    async def empty(self) -> StopProof | None:
        """End the engine in the slot and prove that nothing of it is left. None when the slot was empty.

        Raises:
            AttemptFailed: something remains; the next engine must not be started beside it.
            RefusedError: the host is another console's now.
        """
        if self.occupant is None:
            return None
        await self._claim.take(to_end=True)
        occupant = self.occupant
        await self._abort(occupant.launched.port)
        proof = await self._session.on_host(lambda host: self._bench.launcher.stop(host, occupant.launched))
        await occupant.follower.close()
        if proof.remains:
            raise AttemptFailed(
                Failure(
                    "stop-incomplete",
                    "the engine was ended, but something of it remains on the host",
                    proof.remains,
                    "End these by hand, then retry; ddconsole ends only what it can prove to be its own.",
                    "stop",
                )
            )
        self.occupant = None
        # it is gone, even if that cannot be written: the next run looks at the record and finds so
        with contextlib.suppress(StoreError):
            await self._database.do(lambda store: store.forget_engine(occupant.name))
        return proof

    async def let_go(self) -> None:
        """Leave the engine running and stop following its log."""
        if self.occupant is not None:
            launched = self.occupant.launched
            await self._session.on_host(lambda host: self._bench.launcher.keep(host, launched))
            if launched.launcher == "service":
                text = f"{launched.unit} stays taken over until `ddconsole engine {self._bench.name} restore`"
                await self._journal.emit(Warned(text))
            await self.occupant.follower.close()
            self.occupant = None

    async def leave(self) -> None:
        """Stop following the log of an engine that could not be ended or is not ours to end; the host is not asked."""
        if self.occupant is not None:
            await self.occupant.follower.close()
            self.occupant = None

    async def give_back(self) -> None:
        """End the engine in the slot, then put back what launches have displaced on the host.

        Raises:
            AttemptFailed: something of the engine remains; what it displaced stays so, and is not started beside it.
        """
        await self.empty()
        if self._bench.profile.launcher.unit is None or not self._claim.held:
            return
        try:
            done = await self._session.on_host(self._bench.launcher.restore)
        except (HostError, UnreachableError) as error:
            advice = f"`ddconsole engine {self._bench.name} restore` tries again"
            done = (f"{error.what}{''.join(f' · {line}' for line in error.evidence[-1:])}: {advice}",)
        for text in done:
            await self._journal.emit(Warned(text))

    def _occupy(self, name: str, launched: Launched, effective: dict[str, object], key: AttemptKey) -> Occupant:
        tracker = self._bench.engine.tracker()
        follower = LogFollower(self._session, self._bench.launcher, launched, tracker, self._journal, self._bench.clock)
        follower.key = key
        follower.start()
        self.occupant = Occupant(name, launched, effective, follower)
        return self.occupant

    async def _abort(self, port: int) -> None:
        """Ask the engine to drop its requests, so that TERM does not wait for them. Best effort."""
        try:
            async with self._session.forwarded(port) as base_url:
                await self._bench.engine.abort(base_url)
        except (HostError, UnreachableError):
            return
