"""A measured experiment's engine left serving: started, waited for until it is proved, and kept on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.errors import Failure, HostError, RefusedError
from ddconsole.core.ports import AttemptKey
from ddconsole.core.queue import by_id
from ddconsole.engines.launch.ports import choose_port
from ddconsole.runner.end_engine import end_engine
from ddconsole.runner.promote_boot import LATE, ready, until_proved
from ddconsole.runner.slot import launch_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.config import Config
    from ddconsole.core.ports import Host, Launched, LaunchPlan, Store
    from ddconsole.runner.bench import Bench


@dataclass(frozen=True, slots=True)
class Promoted:
    """What serves now.

    Attributes:
        kept: it ran already, and was proved by the attempt that started it.
        proved, unproved: what of contract 2 was shown; () for one that was kept.
    """

    id: str
    launched: Launched
    plan: LaunchPlan
    kept: bool
    proved: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


async def promote(bench: Bench, host: Host, id_: str, say: Callable[[str], None]) -> Promoted:
    """Leave the engine of `id_` serving on the host, which the caller has taken. `say` gets what goes on, a line each.

    One that dies, or is not the one that was asked for, is ended again, and what it displaced is put back.

    Raises:
        RefusedError: it was never measured, preflight blocks it, or what runs could not be ended.
        HostError: it could not be started, died, was not proved, or did not become ready in time.
    """
    store = bench.open_store()
    try:
        key, config = _measured(store, bench.name, id_)
        found = await _make_way(bench, host, store, config, say)
        if found is not None:
            return await _kept(bench, host, id_, found, config)
        plan = bench.engine.plan(config, await _free_port(bench, host, config, say))
        return await _started(bench, host, store, key, config, plan, say)
    finally:
        store.close()


async def _kept(bench: Bench, host: Host, id_: str, launched: Launched, config: Config) -> Promoted:
    """One that serves already.

    Raises:
        HostError: it does not answer; it is left as it was.
    """
    if not await ready(bench, host, launched):
        advice = f"`ddconsole engine {bench.name} log` shows what it does; `stop` ends it, then promote again"
        raise HostError(f"the engine of {id_} runs, pid {launched.pid}, and does not answer", advice=advice)
    await bench.launcher.keep(host, launched)
    return Promoted(id_, launched, bench.engine.plan(config, launched.port), kept=True)


async def _started(
    bench: Bench,
    host: Host,
    store: Store,
    key: AttemptKey,
    config: Config,
    plan: LaunchPlan,
    say: Callable[[str], None],
) -> Promoted:
    """Start it, on record before the host hears of it, and wait for its proof."""
    name = launch_name(key)
    store.plan_engine(key, name, bench.engine.effective(config).to_json())
    try:
        launched = await bench.launcher.launch(host, plan, name)
    except HostError:
        await _put_back(bench, host, say)
        raise
    store.remember_engine(name, launched)
    say(f"started, pid {launched.pid}; its log is {launched.log_path}")
    found = await until_proved(bench, host, launched, config, say)
    if isinstance(found, Failure):
        if found.cause != LATE:
            await _take_back(bench, host, store, name, launched, say)
        raise HostError(found.what, evidence=found.evidence, advice=found.advice)
    await bench.launcher.keep(host, launched)
    return Promoted(key.id, launched, plan, kept=False, proved=found.proved, unproved=found.unproved)


async def _take_back(
    bench: Bench, host: Host, store: Store, name: str, launched: Launched, say: Callable[[str], None]
) -> None:
    """End what is no winner, and put back what it displaced; beside something that remains nothing is put back."""
    proof = await end_engine(bench, host, launched)
    if proof.remains:
        say(f"of the engine that failed something remains: {'; '.join(proof.remains)}")
        return
    store.forget_engine(name)
    await _put_back(bench, host, say)


async def _put_back(bench: Bench, host: Host, say: Callable[[str], None]) -> None:
    """What was displaced; a failure of that is told beside the one that led here."""
    try:
        for line in await bench.launcher.restore(host):
            say(line)
    except HostError as error:
        say(f"{error.what}: `ddconsole engine {bench.name} restore` tries again")


def _measured(store: Store, profile: str, id_: str) -> tuple[AttemptKey, Config]:
    """The newest finished attempt of an experiment that passed, and what it ran."""
    experiment = by_id(store.queue(profile), id_)
    if experiment is None or experiment.config is None:
        raise RefusedError(f"there is no experiment {id_} in {profile}", advice=f"`ddconsole results {profile} list`")
    passed = [item for item in store.results(profile) if item["id"] == id_ and item["outcome"] == "passed"]
    if not passed:
        raise RefusedError(f"{id_} has not passed: only what was measured is left serving", advice="measure it first")
    return AttemptKey(profile, id_, int(passed[-1]["attempt"])), experiment.config


async def _make_way(
    bench: Bench, host: Host, store: Store, config: Config, say: Callable[[str], None]
) -> Launched | None:
    """The engine that runs `config` already; every other one of ours is ended and proved gone."""
    wanted, serving = bench.engine.effective(config).to_json(), None
    for kept in store.engines(bench.name):
        launched = kept.launched or await bench.launcher.find(host, kept.name)
        if launched is None:
            store.forget_engine(kept.name)
            continue
        alive = (await bench.launcher.liveness(host, launched)).alive
        if alive and serving is None and dict(kept.effective) == wanted:
            serving = launched
            continue
        proof = await end_engine(bench, host, launched)
        if proof.remains:
            raise RefusedError(f"the engine of {kept.key.id} could not be ended", evidence=proof.remains)
        store.forget_engine(kept.name)
        say(f"the engine of {kept.key.id} was ended")
    return serving


async def _free_port(bench: Bench, host: Host, config: Config, say: Callable[[str], None]) -> int:
    """The port to serve on, when nothing stands against a launch.

    Raises:
        RefusedError: preflight blocks it.
    """
    port = bench.engine.port if bench.engine.port is not None else await choose_port(host)
    found = await bench.engine.preflight(host, config, port)
    findings = await bench.launcher.review(host, port, found.findings)
    blocking = [one for one in findings if one.level == "block"]
    if blocking:
        raise RefusedError(
            blocking[0].text, evidence=tuple(one.text for one in blocking[1:]), advice=blocking[0].advice
        )
    for one in findings:
        if one.level == "warn":
            say(one.text)
    return port
