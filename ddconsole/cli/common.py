"""What every command shares: the profile by its name, the open store, `--json`, and exit codes."""

from __future__ import annotations

import functools
import getpass
import math
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.report import EXIT_INTERRUPTED, is_output_error, tell, tell_bug, warn
from ddconsole.core.errors import DdconsoleError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore
    from ddconsole.core.queue import Edit, Queue


class Seconds(click.FloatRange):
    """A number of seconds, 0 or more: `nan` and `inf`, which compare with nothing or never pass, are refused."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number.

        Raises:
            click.BadParameter: it is negative, not finite, or no number.
        """
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number of seconds.", param, ctx)
        return found


def json_option(help_text: str = "One JSON document on stdout.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The `--json` flag, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help_text)


def cli_errors(function: Callable[..., int | None]) -> Callable[..., None]:
    """Leave with the function's exit code, 0 for None; an error is told on stderr, or as JSON where asked for."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        as_json = bool(kwargs.get("as_json"))
        context = click.get_current_context()
        try:
            code = function(*args, **kwargs) or 0
        except DdconsoleError as error:
            code = tell(error, as_json=as_json)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if is_output_error(error):
                raise
            code = tell_bug(error, as_json=as_json)
        context.exit(code)

    return guarded


def load_profile(name: str) -> LoadedProfile:
    """The profile of that name or in that file.

    Raises:
        UsageError: there is none, or it cannot be read. Where a verb stands in its place, the advice says so.
    """
    from ddconsole.adapters import profile_file

    try:
        return profile_file.load_profile(name)
    except UsageError as error:
        noun = _group_with_verb(name)
        if noun is None:
            raise
        raise UsageError(error.what, advice=f"the profile comes first: `ddconsole {noun} PROFILE {name}`") from None


def _group_with_verb(word: str) -> str | None:
    """The noun of this command line when `word` is one of its verbs, else None."""
    context = click.get_current_context(silent=True)
    while context is not None:
        if isinstance(context.command, click.Group) and word in context.command.commands:
            return context.info_name
        context = context.parent
    return None


def open_store(tell_rescue: Callable[[Sequence[str]], None] = warn) -> SqliteStore:
    """The store of this user; a damaged one is kept aside and built anew, which `tell_rescue` says: on stderr.

    Raises:
        StoreError: it cannot be opened.
    """
    from ddconsole.adapters.paths import Paths, is_read_only
    from ddconsole.adapters.store.rescue import open_or_rescue

    path = Paths.from_environment().database
    return open_or_rescue(path, lambda rescue: tell_rescue(rescue.words()), read_only=is_read_only())


def open_and_seed(loaded: LoadedProfile, tell_rescue: Callable[[Sequence[str]], None] = warn) -> SqliteStore:
    """The store, with the profile's starting queue put in at its first use.

    Raises:
        StoreError: it cannot be opened.
        ProfileError: a spec of the starting queue cannot be read.
    """
    store = open_store(tell_rescue)
    try:
        if store.can_write and not store.is_seeded(loaded.name):
            store.seed(loaded.name, starting_edits(loaded, store.queue(loaded.name)))
    except BaseException:
        store.close()
        raise
    return store


def starting_edits(loaded: LoadedProfile, queue: Queue) -> list[Edit]:
    """The edits that the profile's `queue` comes to, each read against the queue as those before it leave it.

    Raises:
        ProfileError: one of them cannot be read or is refused; with file, line and column.
    """
    from ddconsole.core.experiment import Origin
    from ddconsole.core.queue import Add, Refusal, apply
    from ddconsole.core.spec import SpecContext, SpecRefusal, parse

    edits: list[Edit] = []
    for index, text in enumerate(loaded.profile.queue):
        found = parse(text, SpecContext.of(loaded.profile, queue))
        if isinstance(found, SpecRefusal):
            where = f"column {found.column} of {text!r}: {found.reason}"
            raise loaded.error(("queue", index), where, found.advice)
        edit = found.edit
        if isinstance(edit, Add):
            edit = replace(edit, origin=Origin("profile", text, edit.origin.after), author="profile")
        after = apply(queue, edit, now=datetime.now(UTC))
        if isinstance(after, Refusal):
            raise loaded.error(("queue", index), after.reason)
        queue = after
        edits.append(edit)
    return edits


def author() -> str:
    """Who types: the login name, or empty where the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def standard_input() -> bytes:
    """All that is piped in.

    Raises:
        UsageError: there is none: the shell closed it.
    """
    if sys.stdin is None:  # started with `<&-`
        raise UsageError("`-` reads standard input, and that is closed", advice="pipe the lines in, or name a file")
    return sys.stdin.buffer.read()


def standard_lines() -> list[str]:
    """The lines that are piped in, without empty ones and comments.

    Raises:
        UsageError: there is no standard input, or it is no UTF-8.
    """
    try:
        text = standard_input().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is no UTF-8 at byte {error.start}") from None
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
