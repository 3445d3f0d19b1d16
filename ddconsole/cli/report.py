"""How the command line answers: documents, errors, and exit codes. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
import unicodedata
from typing import TYPE_CHECKING, Any

import click

from ddconsole.adapters.secrets import without_secrets
from ddconsole.core.errors import DdconsoleError, SpecError, StoreError, UsageError
from ddconsole.core.json_line import json_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXIT_BUG = 70
EXIT_UNWRITABLE = StoreError.exit_code
EXIT_INTERRUPTED = 130
ECHOED = 160
"""Characters of a refused line that are shown again; a paste may be a megabyte."""
DEBUG_VARIABLE = "DDCONSOLE_DEBUG"


def print_json(document: Mapping[str, Any]) -> None:
    """One document as one line on stdout."""
    text = json_line(document, spaced=True)
    click.echo(text.encode("utf-8", "replace").decode())  # a word of the command line may be no UTF-8


def tell(error: DdconsoleError, *, as_json: bool) -> int:
    """Report an error that the user can act on; returns its exit code."""
    error.what, error.advice = without_secrets(error.what), without_secrets(error.advice)
    error.evidence = tuple(map(without_secrets, error.evidence))
    if as_json:
        print_json({"error": error.to_json()})
        return error.exit_code
    click.echo(f"ddconsole: {clean(error.what)}", err=True)
    evidence, before = error.evidence, ""
    if isinstance(error, SpecError) and evidence:
        line, before = around(clean(evidence[0]), error.column - 1)
        evidence = (line, *evidence[1:])
    for line in evidence:
        click.echo(f"  | {clean(line)}", err=True)
    if isinstance(error, SpecError) and evidence:
        click.echo(f"    {' ' * cells(before)}^ column {error.column}", err=True)
    if error.advice:
        click.echo(f"  → {clean(error.advice)}", err=True)
    return error.exit_code


def warn(lines: Sequence[str]) -> None:
    """Say on stderr what the user has to know though the command goes on."""
    for number, line in enumerate(lines):
        click.echo(f"{'ddconsole: ' if number == 0 else '  | '}{clean(line)}", err=True)


def tell_usage(error: click.ClickException, *, as_json: bool) -> int:
    """Report a command line that click could not read; returns the exit code."""
    if as_json:
        return tell(UsageError(error.format_message(), advice="`--help` shows the usage"), as_json=True)
    error.show()
    return error.exit_code


def is_output_error(error: BaseException) -> bool:
    """Whether stdout or stderr could not be written; `main` tells that. Errors of files carry their name."""
    return (
        isinstance(error, OSError) and error.filename is None and error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO)
    )


def tell_unwritable(error: OSError) -> int:
    """An output whose reader is gone or whose disk is full; returns the exit code."""
    discard(1)
    with contextlib.suppress(OSError):
        print(f"ddconsole: the output cannot be written: {error.strerror}", file=sys.stderr)  # noqa: T201
    return EXIT_UNWRITABLE


def discard(descriptor: int) -> None:
    """Point an output at nowhere: what Python still holds for it would fail once more at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def tell_bug(error: Exception, *, as_json: bool) -> int:
    """Report a bug of ours in a few lines, the whole trace in a file; returns the exit code."""
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    kept = _keep_trace(error)
    what = without_secrets(f"a bug of ddconsole: {type(error).__name__}: {error}")
    advice = "nothing that was saved is lost; please report it" + (f" with {kept}" if kept else "")
    if as_json:
        print_json({"error": {"kind": "bug", "what": what, "evidence": [], "advice": advice, "column": None}})
    else:
        click.echo(f"ddconsole: {clean(what)}\n  → {advice}", err=True)
    return EXIT_BUG


def around(text: str, at: int) -> tuple[str, str]:
    """A line and what of it stands before place `at` (from 0); of a long one only what is near that place."""
    if len(text) <= ECHOED:
        return text, text[:at]
    start = max(0, min(at - ECHOED // 2, len(text) - ECHOED))
    head, tail = "…" if start else "", "…" if start + ECHOED < len(text) else ""
    return f"{head}{text[start : start + ECHOED]}{tail}", head + text[start:at]


def clean(text: str) -> str:
    """Text from outside for the terminal: what could be an escape sequence is shown as a sign."""
    return "".join(letter if letter.isprintable() else _shown(letter) for letter in text)


def cells(text: str) -> int:
    """Width on a terminal: wide characters take two cells, combining ones none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(bool(unicodedata.combining(letter)) for letter in text)


def _shown(letter: str) -> str:
    """A tab or newline as a space, any other control character as its Unicode picture or a replacement."""
    if letter in "\t\n":
        return " "
    return chr(0x2400 + ord(letter)) if ord(letter) < 0x20 else "�"


def _keep_trace(error: Exception) -> str | None:
    """Write the trace to the state folder, harmless to show; None where even that fails: the error must be told."""
    from ddconsole.adapters.paths import Paths, create_private_file, private_dir

    path = Paths.from_environment().state / "last-bug.txt"
    try:
        private_dir(path.parent)
        create_private_file(path)
        report = "".join([" ".join(sys.argv), "\n", *traceback.format_exception(error)])
        lines = without_secrets(report).split("\n")
        path.write_text("\n".join(map(clean, lines)), encoding="utf-8", errors="replace")
    except (OSError, DdconsoleError):
        return None
    return str(path)
