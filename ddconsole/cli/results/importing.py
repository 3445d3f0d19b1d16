"""`ddconsole results PROFILE import FILE`: results of another machine beside one's own."""

from __future__ import annotations

from pathlib import Path

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile
from ddconsole.cli.report import clean, print_json


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "tag", metavar="NAME", help="What stands in front of their ids, as night:E11; the file's name.")
@json_option()
@click.pass_obj
@cli_errors
def import_(profile: str, file: Path, tag: str | None, as_json: bool) -> None:
    """Take in FILE, written by `export --format json`. The same name again replaces what it had brought."""
    from ddconsole.adapters import imported
    from ddconsole.core.imports import checked_tag, imported_items

    loaded = load_profile(profile)
    name = checked_tag(tag if tag is not None else file.stem)
    document = imported.read_export(file)
    items = imported_items(document, name, str(file))
    imported.keep(loaded.name, name, document)
    if as_json:
        ids = [item["id"] for item in items]
        print_json({"schema": 1, "profile": loaded.name, "imported": ids, "name": name, "from": document["profile"]})
    else:
        words = f"{len(items)} results of {document.get('profile')} as {name}:…; `ddconsole results {loaded.name} list`"
        click.echo(clean(words))
