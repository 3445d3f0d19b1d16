"""`ddconsole doctor PROFILE [SPEC]`: what a launch would find, without launching anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, open_store

if TYPE_CHECKING:
    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.config import Config
    from ddconsole.core.ports import Finding

BLOCKED = 1

MARKS = {"block": "✘", "warn": "⚠", "note": "·"}
"""What stands before a finding."""


@click.command()
@click.argument("profile")
@click.argument("spec", nargs=-1)
@json_option()
@cli_errors
def doctor(profile: str, spec: tuple[str, ...], as_json: bool) -> int:
    """Check host, engine and config of PROFILE in seconds, without starting anything.

    SPEC is a config in the queue's language, such as `b=16 B=26`; without one the profile's default is checked. The
    exit code is 1 when a launch would be refused.
    """
    from ddconsole.cli.report import print_json
    from ddconsole.core.documents import head

    loaded = load_profile(profile)
    config = _config(loaded, spec)
    findings = asyncio.run(_findings(loaded, config))
    if as_json:
        told: dict[str, Any] = {"config": config.to_json(), "findings": [finding.to_json() for finding in findings]}
        print_json(head(loaded.name, 0) | told)
    else:
        _print(loaded, config, findings)
    return BLOCKED if any(finding.level == "block" for finding in findings) else 0


def _config(loaded: LoadedProfile, spec: tuple[str, ...]) -> Config:
    """The one config that the words mean.

    Raises:
        SpecError: they cannot be read, or mean several.
    """
    from ddconsole.core.errors import SpecError
    from ddconsole.core.spec import SpecContext, SpecRefusal, parse

    store = open_store()
    try:
        context = SpecContext.of(loaded.profile, store.queue(loaded.name))
    finally:
        store.close()
    if not spec:
        return context.defaults
    found = parse(spec, context, verb="add")
    if isinstance(found, SpecRefusal):
        raise found.to_error(" ".join(spec))
    config = found.drafts[0].config
    if found.count != 1 or config is None:
        raise SpecError(f"one config is checked at a time; these are {found.count}", column=1, text=" ".join(spec))
    return config


async def _findings(loaded: LoadedProfile, config: Config) -> tuple[Finding, ...]:
    """Connect, look, and close the connection."""
    from ddconsole.cli.wiring import make_bench
    from ddconsole.engines.launch.ports import choose_port

    bench = make_bench(loaded)
    host = await bench.connector.connect()
    try:
        port = bench.engine.port if bench.engine.port is not None else await choose_port(host)
        return await bench.engine.preflight(host, config, port)
    finally:
        await host.close()


def _print(loaded: LoadedProfile, config: Config, findings: tuple[Finding, ...]) -> None:
    from ddconsole.cli.report import clean

    click.echo(f"{loaded.name} on {loaded.profile.host} · {config.label()}")
    for finding in findings:
        click.echo(clean(f"  {MARKS[finding.level]} {finding.text}"))
        if finding.advice:
            click.echo(clean(f"    → {finding.advice}"))
    if not findings:
        click.echo("  ✔ nothing stands against it")
