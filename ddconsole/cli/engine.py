"""`ddconsole engine PROFILE status|log|stop`: the engines that were started and not yet proved gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from ddconsole.cli.asking import TerminalAsker
from ddconsole.cli.common import cli_errors, json_option, load_profile, open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Host, KeptEngine, Launched
    from ddconsole.runner.bench import Bench

T = TypeVar("T")
Work: TypeAlias = "Callable[[Bench, Host, KeptEngine, Launched], Awaitable[T]]"
"""What is done for one engine."""

REMAINS = 1
LOG_LINES = 40
"""Lines of the log that `log` shows by default."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.pass_context
def engine(ctx: click.Context, profile: str) -> None:
    """Look at and end the engines that ddconsole started on PROFILE's host. No other process is ever touched."""
    ctx.obj = profile


@engine.command()
@json_option()
@click.pass_obj
@cli_errors
def status(profile: str, as_json: bool) -> None:
    """Which of our engines are still on record, and whether they live."""
    from ddconsole.cli.report import print_json
    from ddconsole.core.documents import head

    async def look(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> dict[str, Any]:
        found = await bench.launcher.liveness(host, at)
        return {"id": kept.key.id, "alive": found.alive, "pid": at.pid, "port": at.port, "log": at.log_path}

    loaded = load_profile(profile)
    engines = asyncio.run(_each(loaded, look))
    if as_json:
        print_json(head(loaded.name, 0) | {"engines": engines})
        return
    for one in engines:
        life = "runs" if one["alive"] else "is dead"
        click.echo(f"{one['id']}  {life}  pid {one['pid']}  port {one['port']}  {one['log']}")
    if not engines:
        click.echo(f"no engine of ours is on {loaded.profile.host}")


@engine.command()
@click.option("--lines", type=click.IntRange(min=1), default=LOG_LINES, show_default=True)
@click.pass_obj
@cli_errors
def log(profile: str, lines: int) -> None:
    """The last lines of their logs, with secrets masked."""
    from ddconsole.cli.report import clean

    async def read(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> list[str]:
        done = await host.run(["tail", "-n", str(lines), at.log_path])
        return bench.engine.tracker().feed(done.stdout.encode() + b"\n", 0.0)

    for found in asyncio.run(_each(load_profile(profile), read)):
        for line in found:
            click.echo(clean(line))


@engine.command()
@json_option()
@click.pass_obj
@cli_errors
def stop(profile: str, as_json: bool) -> int:
    """End them, and prove that nothing is left. Refused while a console works on the host."""
    from ddconsole.cli.report import print_json
    from ddconsole.core.documents import head

    async def end(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> dict[str, Any]:
        proof = await bench.launcher.stop(host, at)
        if not proof.remains:
            store = bench.open_store()
            store.forget_engine(kept.name)
            store.close()
        return {"id": kept.key.id, "pid": at.pid, "remains": list(proof.remains)}

    loaded = load_profile(profile)
    ended = asyncio.run(_each(loaded, end, alone=True))
    if as_json:
        print_json(head(loaded.name, 0) | {"stopped": ended})
    for one in () if as_json else ended:
        left = "; ".join(one["remains"])
        click.echo(f"{one['id']}  " + (f"something remains: {left}" if left else f"pid {one['pid']} is gone"))
    if not ended and not as_json:
        click.echo(f"no engine of ours is on {loaded.profile.host}")
    return REMAINS if any(one["remains"] for one in ended) else 0


@engine.command()
@json_option()
@click.pass_obj
@cli_errors
def restore(profile: str, as_json: bool) -> None:
    """Put a service back that engines ran in the place of, as after a crash. Refused while a console works there."""
    from ddconsole.cli.report import clean, print_json
    from ddconsole.core.documents import head

    loaded = load_profile(profile)
    done = asyncio.run(_restored(loaded))
    if as_json:
        print_json(head(loaded.name, 0) | {"restored": list(done)})
        return
    for line in done or (f"nothing on {loaded.profile.host} has to be put back",):
        click.echo(clean(line))


async def _restored(loaded: LoadedProfile) -> tuple[str, ...]:
    """What was put back, in words; the host is taken for it, here and against consoles on other machines.

    Raises:
        RefusedError: somebody else works on the host.
    """
    from ddconsole.cli.wiring import make_bench

    bench = make_bench(loaded)
    bench.lock.acquire()
    try:
        host = await bench.connector.connect()
        try:
            await bench.lease.take(host)
            done = await bench.launcher.restore(host)
            await bench.lease.release(host)
            return done
        finally:
            await host.close()
    finally:
        bench.lock.release()


async def _each(loaded: LoadedProfile, work: Work[T], *, alone: bool = False) -> list[T]:
    """Do `work` for each engine on record; `alone` takes the host first, so that no console runs meanwhile.

    Raises:
        RefusedError: `alone`, and another process works on the host.
        UnreachableError: the host cannot be reached.
    """
    from ddconsole.cli.wiring import make_bench

    store = open_store()
    engines = store.engines(loaded.name)
    store.close()
    if not engines:
        return []
    bench = make_bench(loaded, TerminalAsker())
    if alone:
        bench.lock.acquire()
    try:
        host = await bench.connector.connect()
        try:
            found = [(kept, kept.launched or await bench.launcher.find(host, kept.name)) for kept in engines]
            return [await work(bench, host, kept, launched) for kept, launched in found if launched is not None]
        finally:
            await host.close()
    finally:
        bench.lock.release()
