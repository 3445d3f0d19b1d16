"""`ddconsole profiles VERB …`: the YAML files that say what a host, an engine and its knobs are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, starting_edits
from ddconsole.cli.report import clean, print_json
from ddconsole.core.errors import DdconsoleError, RefusedError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from ddconsole.adapters.profile_file import LoadedProfile

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What a new profile may be called: it becomes a file's name and a word of command lines."""


OWN_HOSTS = ("demo", "local")
"""Hosts that are no ssh alias: a profile made from one of theirs keeps it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def profiles() -> None:
    """List, show, check and make profiles.

    A profile is one YAML file. A name is looked for in ./profiles, then in your own folder, then among the shipped
    ones; a path works wherever a name does.
    """


@profiles.command("list")
@json_option()
@cli_errors
def list_(as_json: bool) -> None:
    """Show every profile that a name finds."""
    from ddconsole.adapters.paths import known_profiles

    found = [_entry(name, path) for name, path in known_profiles().items()]
    if as_json:
        print_json({"schema": 1, "profiles": found})
        return
    from ddconsole.cli.table import print_table

    rows = [(entry["name"], entry["host"] or "—", entry["path"], entry["error"] or "") for entry in found]
    print_table(("name", "host", "file", "problem"), rows)


def _entry(name: str, path: Path) -> dict[str, Any]:
    from ddconsole.adapters.profile_file import load_file

    try:
        return {"name": name, "path": str(path), "host": load_file(path).profile.host, "error": None}
    except DdconsoleError as error:
        return {"name": name, "path": str(path), "host": None, "error": error.what}


@profiles.command("show")
@click.argument("name")
@json_option("Every key with its value, defaults included.")
@cli_errors
def show(name: str, as_json: bool) -> None:
    """Print a profile as it is written, and where it is."""
    loaded = load_profile(name)
    if as_json:
        values = loaded.profile.model_dump(mode="json", by_alias=True)
        print_json(
            {"schema": 1, "name": loaded.name, "path": str(loaded.path), "digest": loaded.digest, "profile": values}
        )
        return
    click.echo(f"# {loaded.path}", err=True)
    for line in loaded.path.read_text(encoding="utf-8-sig").splitlines():
        click.echo(clean(line))


@profiles.command("check")
@click.argument("name")
@json_option()
@cli_errors
def check(name: str, as_json: bool) -> None:
    """Read a profile strictly, its starting queue included. Exit code 2 when something is wrong."""
    loaded = load_profile(name)
    experiments = _starting(loaded)
    if as_json:
        print_json(
            {"schema": 1, "name": loaded.name, "path": str(loaded.path), "digest": loaded.digest, "queue": experiments}
        )
        return
    click.echo(
        f"{loaded.path} is right; host {clean(loaded.profile.host)}, {len(experiments)} experiments to start with"
    )
    for label in experiments:
        click.echo(clean(f"  {label}"))


def _starting(loaded: LoadedProfile) -> list[str]:
    """The experiments of the profile's starting queue, in words.

    Raises:
        ProfileError: a spec of it cannot be read.
    """
    from ddconsole.core.queue import Add, Queue

    edits = [edit for edit in starting_edits(loaded, Queue()) if isinstance(edit, Add)]
    return [draft.config.label() if draft.config else draft.note for edit in edits for draft in edit.drafts]


@profiles.command("schema")
@cli_errors
def schema() -> None:
    """Print the JSON schema of profiles, for editors that check and complete YAML."""
    from ddconsole.core.profile.schema import profile_schema

    print_json(profile_schema())


@profiles.command("new")
@click.argument("name")
@click.option("--from", "source", default="ct200", show_default=True, help="The profile to start from.")
@click.option("--host", help="The ssh alias to write into it; the name by default.")
@cli_errors
def new(name: str, source: str, host: str | None) -> None:
    """Write a profile NAME of your own to start from, comments and all."""
    from ddconsole.adapters.paths import Paths, create_private_file, is_read_only, private_dir, refuse_change

    if is_read_only():
        raise refuse_change()
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a profile", advice="letters, digits, dots, dashes and underscores")
    path = private_dir(Paths.from_environment().profiles) / f"{name}.yaml"
    if path.exists():
        raise RefusedError(f"{path} is there already", advice="edit it, or take another name")
    origin = load_profile(source)
    text = origin.path.read_text(encoding="utf-8-sig").replace(
        f"ddconsole doctor {origin.name}", f"ddconsole doctor {name}"
    )
    if host is not None or origin.profile.host not in OWN_HOSTS:
        text = _for_host(text, host or name)
    create_private_file(path)
    path.write_text(text, encoding="utf-8")
    click.echo(str(path))
    click.echo(f"edit it, then `ddconsole profiles check {name}`", err=True)


def _for_host(text: str, host: str) -> str:
    """The profile's text with another host, written so that YAML reads it as it is."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]*", host)
    written = host if plain else "'" + host.replace("'", "''") + "'"
    return re.sub(r"(?m)^host:[ \t]*[^\s#]*", lambda _: f"host: {written}", text, count=1)
