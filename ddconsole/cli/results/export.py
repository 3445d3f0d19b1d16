"""`ddconsole results PROFILE export`: results as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddconsole import __version__
from ddconsole.cli.common import cli_errors
from ddconsole.core.errors import UsageError
from ddconsole.core.json_line import json_line

if TYPE_CHECKING:
    from ddconsole.cli.results.shelf import Shelf
    from ddconsole.report.book import Book

FORMATS = ("json", "csv", "md", "html")
NAMINGS = ("ddconsole", "aiperf", "sglang")


@click.command("export")
@click.argument("ids", metavar="[ID|SWEEP]...", nargs=-1)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="By the file's ending where there is one, else json."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; stdout by default.")
@click.option(
    "--names",
    type=click.Choice(NAMINGS),
    default="ddconsole",
    show_default=True,
    help="Whose field names, by concurrency level, where it is the same quantity (json and csv).",
)
@click.option("--with-requests", is_flag=True, help="Every request's whole record and text too (json).")
@click.pass_obj
@cli_errors
def export(
    profile: str, ids: tuple[str, ...], form: str | None, as_json: bool, output: Path | None, names: str,
    with_requests: bool,
) -> None:  # fmt: skip
    """Write results, all of them or those named, as JSON, CSV, Markdown or one self-contained HTML page."""
    from ddconsole.cli.results.shelf import open_shelf

    chosen = "json" if as_json else form or _by_ending(output) or "json"
    if names != "ddconsole" and chosen not in ("json", "csv"):
        raise UsageError(f"--names {names} is for json and csv", advice=f"leave it out for {chosen}")
    if with_requests and chosen != "json":
        raise UsageError("--with-requests is for json", advice="--format json")
    with open_shelf(profile) as shelf:
        text = _text(_book(shelf.only(ids), with_requests=with_requests), chosen, names)
    _write(text, output)


def _book(shelf: Shelf, *, with_requests: bool) -> Book:
    from datetime import UTC, datetime

    from ddconsole.core.events import utc_text
    from ddconsole.report.book import make_book

    entries = [shelf.entry(item, with_requests=with_requests) for item in shelf.items]
    return make_book(shelf.name, utc_text(datetime.now(UTC)), __version__, entries)


def _text(book: Book, form: str, names: str) -> str:
    from ddconsole.core.peers import NAMINGS as LEVEL_NAMES
    from ddconsole.report import tables

    if form == "csv":
        return tables.to_csv(book) if names == "ddconsole" else tables.levels_csv(book, LEVEL_NAMES[names])
    if form == "md":
        return tables.to_markdown(book)
    if form == "html":
        from ddconsole.report.page import to_html

        return to_html(book)
    document: Any = book.to_json() if names == "ddconsole" else tables.levels_json(book, names, LEVEL_NAMES[names])
    return json_line(document, spaced=True) + "\n"


def _by_ending(output: Path | None) -> str | None:
    ending = "" if output is None else output.suffix.lower().lstrip(".")
    return {"htm": "html", "markdown": "md"}.get(ending, ending if ending in FORMATS else None)


def _write(text: str, output: Path | None) -> None:
    """Stored text may hold half of a surrogate pair; it is written as a replacement."""
    data = text.encode("utf-8", "replace")
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    click.echo(f"written: {output}", err=True)
