"""`ddconsole queue PROFILE export` and `import`: the hand-off to an editor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ddconsole.adapters import queue_file
from ddconsole.cli.common import standard_input
from ddconsole.cli.queue_edit import Editing, Wishes
from ddconsole.core.errors import RefusedError, UsageError
from ddconsole.core.exchange import sheet_of
from ddconsole.core.queue import Queue, Refusal
from ddconsole.core.spec import Command, SpecContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore


def export_queue(loaded: LoadedProfile, store: SqliteStore, ids: Sequence[str], output: Path | None) -> None:
    """Write the named ones, or all that wait.

    Raises:
        RefusedError: an id is not there, or does not wait.
        UsageError: the file cannot be written.
    """
    queue = store.queue(loaded.name)
    sheet = sheet_of(queue, [id_.upper() for id_ in ids], SpecContext.of(loaded.profile, queue))
    if isinstance(sheet, Refusal):
        raise RefusedError(sheet.reason)
    text = queue_file.write(loaded.name, sheet)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None


def import_queue(
    loaded: LoadedProfile, store: SqliteStore, file: str, *, again: bool, dry_run: bool, as_json: bool
) -> int:
    """Take a document in as one step. Returns the exit code."""
    raw, name = _read(file)

    def read(queue: Queue) -> tuple[Command | None, int]:
        return queue_file.read_command(raw, name, loaded.name, SpecContext.of(loaded.profile, queue))

    return Editing(loaded, store, "import", Wishes(again=again, dry_run=dry_run)).take(read, as_json=as_json)


def _read(file: str) -> tuple[bytes, str]:
    if file == "-":
        return standard_input(), "stdin"
    try:
        return Path(file).read_bytes(), file
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
