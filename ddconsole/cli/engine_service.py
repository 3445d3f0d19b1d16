"""`ddconsole engine PROFILE restore|promote`: the service put back, or an experiment's engine left serving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile
from ddconsole.cli.consent import take_over_option
from ddconsole.cli.engine_host import on_host
from ddconsole.core.masking import Masker

if TYPE_CHECKING:
    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import LaunchPlan
    from ddconsole.runner.promote import Promoted


@click.command()
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
    """End our engines in the service's place with proof, then put it back; what was done, in words."""
    from ddconsole.core.errors import HostError
    from ddconsole.runner.end_engine import end_engine

    async with on_host(loaded, alone=True) as (bench, host):
        store = bench.open_store()
        try:
            for kept in store.engines(loaded.name):
                launched = kept.launched or await bench.launcher.find(host, kept.name)
                if launched is None or launched.launcher != "service":
                    continue
                proof = await end_engine(bench, host, launched)
                if proof.remains:
                    raise HostError(f"the engine of {kept.key.id} could not be ended", evidence=proof.remains)
                store.forget_engine(kept.name)
        finally:
            store.close()
        return await bench.launcher.restore(host)


@click.command()
@click.argument("experiment", metavar="E14")
@take_over_option()
@json_option()
@click.pass_obj
@cli_errors
def promote(profile: str, experiment: str, take_over: bool, as_json: bool) -> None:
    """Leave the engine of a measured experiment serving, and print what makes that permanent.

    Every other engine of ours is ended. What serves is proved as before a pass, and left until the next run, `stop` or
    `restore`. One that fails is ended again, and the service put back.
    """
    from ddconsole.cli.report import clean, print_json
    from ddconsole.core.documents import head

    loaded = load_profile(profile)
    promoted = asyncio.run(_promoted(loaded, experiment, take_over))
    text = permanent_text(loaded, promoted.plan)
    if as_json:
        print_json(head(loaded.name, 0) | {"promoted": _json(promoted), "permanent": text})
        return
    at = promoted.launched
    how = "runs already" if promoted.kept else "serves"
    click.echo(clean(f"{promoted.id} {how} on port {at.port} of {loaded.profile.host}, pid {at.pid}"))
    for word, shown in (("proved", promoted.proved), ("asked, not proved", promoted.unproved)):
        if shown:
            click.echo(clean(f"{word}: {'; '.join(shown)}"))
    click.echo("\nTo make it permanent:\n")
    click.echo("\n".join(clean(line) for line in text.splitlines()))


async def _promoted(loaded: LoadedProfile, experiment: str, take_over: bool) -> Promoted:
    from ddconsole.cli.report import clean
    from ddconsole.runner.promote import promote

    def say(line: str) -> None:
        click.echo(clean(line), err=True)

    async with on_host(loaded, alone=True, take_over=take_over) as (bench, host):
        return await promote(bench, host, experiment, say)


def _json(promoted: Promoted) -> dict[str, Any]:
    at = promoted.launched
    return {
        "id": promoted.id,
        "pid": at.pid,
        "port": at.port,
        "unit": at.unit,
        "log": at.log_path,
        "kept": promoted.kept,
        "proved": list(promoted.proved),
        "unproved": list(promoted.unproved),
    }


def permanent_text(loaded: LoadedProfile, plan: LaunchPlan) -> str:
    """The flags as a drop-in of the profile's service, or as the command where there is none; secrets masked."""
    from ddconsole.engines.launch.service import service_name
    from ddconsole.engines.launch.unit_text import permanent_drop_in

    section = loaded.profile.launcher
    if section.unit is None:
        names = [f"# {name} is a secret: it has to be in the environment" for name in plan.secret_env]
        return "\n".join([*names, plan.shown])
    unit = service_name(section.unit)
    folder = "/etc/systemd/system" if section.scope == "system" else "~/.config/systemd/user"
    user = "" if section.scope == "system" else " --user"
    steps = (
        f"# {folder}/{unit}.d/override.conf (as `systemctl{user} edit {unit}` opens it)",
        permanent_drop_in(_masked(plan), plan.env, tuple(plan.secret_env)),
        f"# then: `ddconsole engine {loaded.name} restore` ends this run of it; the service starts with these flags",
    )
    return "\n".join(steps)


def _masked(plan: LaunchPlan) -> tuple[str, ...]:
    """The argv with the profile's secrets replaced, where one stands in it."""
    return tuple(map(Masker(tuple(plan.secret_env.values())).text, plan.argv))
