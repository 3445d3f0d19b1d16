"""`ddconsole engine PROFILE status|log|stop|restore|promote`: the engines that were started and not yet proved gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile
from ddconsole.cli.engine_host import each_engine, on_host
from ddconsole.cli.engine_service import promote, restore

if TYPE_CHECKING:
    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Host, KeptEngine, Launched
    from ddconsole.runner.bench import Bench

REMAINS = 1
LOG_LINES = 40
"""Lines of the log that `log` shows by default."""

NOTE_LINES = 6
"""Lines that `log` shows of what systemd said of a unit."""


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
    """Which of our engines are still on record, whether they live, and whose the profile's service is."""
    from ddconsole.cli.report import clean, print_json
    from ddconsole.core.documents import head

    async def look(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> dict[str, Any]:
        found = await bench.launcher.liveness(host, at)
        about = {"pid": at.pid, "port": at.port, "log": at.log_path, "launcher": at.launcher, "unit": at.unit}
        return {"id": kept.key.id, "alive": found.alive, **about}

    loaded = load_profile(profile)
    engines = asyncio.run(each_engine(loaded, look))
    service = asyncio.run(_service(loaded)) if loaded.profile.launcher.unit is not None else None
    if as_json:
        print_json(head(loaded.name, 0) | {"engines": engines, "service": service})
        return
    for one in engines:
        life = "runs" if one["alive"] else "is dead"
        unit = f"  {one['unit']}" if one["unit"] else ""
        click.echo(clean(f"{one['id']}  {life}  pid {one['pid']}  port {one['port']}{unit}  {one['log']}"))
    if not engines:
        click.echo(f"no engine of ours is on {loaded.profile.host}")
    if service is not None:
        click.echo(clean(_service_line(service)))


async def _service(loaded: LoadedProfile) -> dict[str, Any]:
    """The profile's service as it stands."""
    from ddconsole.engines.launch.service import ServiceLauncher

    async with on_host(loaded) as (bench, host):
        assert isinstance(bench.launcher, ServiceLauncher)
        state = await bench.launcher.look(host)
    return {
        "unit": state.unit,
        "active": state.active,
        "sub": state.sub,
        "enabled": state.enabled,
        "pid": state.pid or None,
        "since": state.since,
        "whose": state.whose,
        "was": state.taken,
        "drop_in": state.drop_in,
        "restarts": state.restarts,
    }


def _service_line(service: dict[str, Any]) -> str:
    """The service in one line."""
    said = [f"{service['unit']}  {service['active']} ({service['sub']})", service["whose"]]
    said += [f"pid {service['pid']}"] if service["pid"] else []
    said += [f"taken over, was {service['was']}"] if service["was"] else []
    said += [f"drop-in {service['drop_in']}"] if service["drop_in"] else []
    said += [f"started again by systemd {service['restarts']} times"] if service["restarts"] else []
    return "  ".join(said)


@engine.command()
@click.option("--lines", type=click.IntRange(min=1), default=LOG_LINES, show_default=True)
@json_option()
@click.pass_obj
@cli_errors
def log(profile: str, lines: int, as_json: bool) -> None:
    """The last lines of their logs, with secrets masked, and what systemd says of those that are its units."""
    from ddconsole.cli.report import clean, print_json
    from ddconsole.core.documents import head
    from ddconsole.engines.launch.logs import last_lines, manager_notes

    async def read(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> dict[str, Any]:
        text = await last_lines(host, at, lines)
        shown = bench.engine.tracker().feed(text.encode() + b"\n", 0.0)
        return {"id": kept.key.id, "lines": shown, "manager": list(await manager_notes(host, at, NOTE_LINES))}

    loaded = load_profile(profile)
    logs = asyncio.run(each_engine(loaded, read))
    if as_json:
        print_json(head(loaded.name, 0) | {"logs": logs})
        return
    for one in logs:
        for line in (*one["lines"], *(f"systemd: {note}" for note in one["manager"])):
            click.echo(clean(line))


@engine.command()
@json_option()
@click.pass_obj
@cli_errors
def stop(profile: str, as_json: bool) -> int:
    """End them, and prove that nothing is left. Refused while a console works on the host."""
    from ddconsole.cli.report import print_json
    from ddconsole.core.documents import head
    from ddconsole.runner.end_engine import end_engine

    async def end(bench: Bench, host: Host, kept: KeptEngine, at: Launched) -> dict[str, Any]:
        proof = await end_engine(bench, host, at)
        if not proof.remains:
            store = bench.open_store()
            store.forget_engine(kept.name)
            store.close()
        return {"id": kept.key.id, "pid": at.pid, "remains": list(proof.remains), "proved": list(proof.proved)}

    loaded = load_profile(profile)
    ended = asyncio.run(each_engine(loaded, end, alone=True))
    if as_json:
        print_json(head(loaded.name, 0) | {"stopped": ended})
    for one in () if as_json else ended:
        left = "; ".join(one["remains"])
        click.echo(
            f"{one['id']}  "
            + (f"something remains: {left}" if left else f"pid {one['pid']} is gone: {'; '.join(one['proved'])}")
        )
    if loaded.profile.launcher.unit is not None and not as_json:
        click.echo(f"`ddconsole engine {loaded.name} restore` puts the service back")
    if not ended and not as_json:
        click.echo(f"no engine of ours is on {loaded.profile.host}")
    return REMAINS if any(one["remains"] for one in ended) else 0


engine.add_command(restore)
engine.add_command(promote)
