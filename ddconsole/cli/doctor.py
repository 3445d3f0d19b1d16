"""`ddconsole doctor PROFILE [SPEC]`: what a launch would find, without launching anything."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.asking import TerminalAsker, accept_new_option
from ddconsole.cli.common import cli_errors, json_option, load_profile, open_store

if TYPE_CHECKING:
    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.config import Config, Effective
    from ddconsole.core.ports import Finding, Preflight

BLOCKED = 1

WIDTH = 100
"""Cells of a line where there is no terminal to ask."""


@click.command()
@click.argument("profile")
@click.argument("spec", nargs=-1)
@accept_new_option()
@json_option()
@cli_errors
def doctor(profile: str, spec: tuple[str, ...], accept_new: bool, as_json: bool) -> int:
    """Check host, engine and config of PROFILE in seconds, without starting anything.

    SPEC is a config in the queue's language, such as `b=16 B=26`; without one the profile's default is checked. The
    exit code is 1 when a launch would be refused. docs/doctor.md explains every finding.
    """
    loaded = load_profile(profile)
    config = _config(loaded, spec)
    port, found = asyncio.run(_preflight(loaded, config, accept_new))
    if as_json:
        _print_json(loaded, config, port, found)
    else:
        _print(loaded, config, port, found)
    return BLOCKED if found.blocking else 0


def _config(loaded: LoadedProfile, spec: tuple[str, ...]) -> Config:
    """The one config that the words mean. A window below the block is one, and what it does is a finding.

    Raises:
        SpecError: they cannot be read, or mean several.
    """
    from ddconsole.core.errors import SpecError
    from ddconsole.core.spec import SpecContext, SpecRefusal, parse

    store = open_store()
    try:
        context = replace(SpecContext.of(loaded.profile, store.queue(loaded.name)), narrow_window=True)
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


async def _preflight(loaded: LoadedProfile, config: Config, accept_new: bool) -> tuple[int, Preflight]:
    """Connect, look, and close the connection; the port that was looked at, and what was found."""
    from ddconsole.cli.wiring import make_bench
    from ddconsole.core.ports import Finding, notes_of
    from ddconsole.engines.launch.ports import choose_port

    bench = make_bench(loaded, TerminalAsker(), accept_new=accept_new)
    host = await bench.connector.connect()
    try:
        port = bench.engine.port if bench.engine.port is not None else await choose_port(host)
        found = await bench.engine.preflight(host, config, port)
        reviewed = await bench.launcher.review(host, port, found.findings)
        notes = tuple(Finding("note", "connection", text) for text in notes_of(host))
        before = _failed_before(loaded, bench.engine.effective(config))
        return port, replace(found, findings=(*reviewed, *before, *notes))
    finally:
        await host.close()


def _failed_before(loaded: LoadedProfile, effective: Effective) -> tuple[Finding, ...]:
    """What the store knows of this config on this host."""
    from ddconsole.core.earlier import earlier_failures

    store = open_store()
    try:
        return earlier_failures(store.results(loaded.name), effective.to_json(), loaded.profile.host, loaded.name)
    finally:
        store.close()


def _print_json(loaded: LoadedProfile, config: Config, port: int, found: Preflight) -> None:
    from ddconsole.cli.report import print_json
    from ddconsole.core.documents import head
    from ddconsole.core.finding_codes import topic_of

    told: dict[str, Any] = {
        "config": config.to_json(),
        "port": port,
        "blocked": bool(found.blocking),
        "findings": [
            finding.to_json() | {"advice": finding.advice, "topic": topic_of(finding.code)}
            for finding in found.findings
        ],
        "checked": [one.to_json() for one in found.checked],
        "host_facts": dict(found.facts),
    }
    print_json(head(loaded.name, 0) | told)


def _print(loaded: LoadedProfile, config: Config, port: int, found: Preflight) -> None:
    from ddconsole.cli.doctor_view import lines

    title = f"{loaded.name} on {loaded.profile.host} · {config.label()}"
    for line in lines(title, found, shutil.get_terminal_size((WIDTH, 24)).columns):
        click.echo(line)
