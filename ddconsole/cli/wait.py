"""`ddconsole wait PROFILE E16|S3|idle`: for scripts that go on when something has ended."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import click

from ddconsole.adapters.paths import Paths
from ddconsole.adapters.run_lock import run_lock
from ddconsole.cli.common import Seconds, cli_errors, json_option, load_profile, open_and_seed
from ddconsole.cli.report import clean, print_json
from ddconsole.core.ending import IDLE, Ending, ending
from ddconsole.core.errors import UsageError
from ddconsole.core.queue import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.ports import Store
    from ddconsole.core.queue import Queue

TIMEOUT = "timeout"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.argument("what", metavar="E16|S3|idle")
@click.option("--timeout", type=Seconds(), metavar="SECONDS", help="Give up after this long.")
@json_option()
@cli_errors
def wait(profile: str, what: str, timeout: float | None, as_json: bool) -> int:
    """Wait until an experiment, a whole sweep, or all work of PROFILE has ended.

    The exit code is 0 when it passed (idle: when nothing runs and nothing will start), and 1 when it failed, was
    wrong, was cancelled or removed, or when the time was up first.
    """
    loaded = load_profile(profile)
    what = IDLE if what.lower() == IDLE else what.upper()
    deadline = None if timeout is None else time.monotonic() + timeout
    lock = run_lock(Paths.from_environment().state, loaded.profile.host)
    with contextlib.closing(open_and_seed(loaded)) as store:
        found, queue = _until_ended(store, loaded.name, what, deadline, lock.is_held)
        verdicts = {item["id"]: item.get("verdict") or "" for item in store.results(loaded.name)}
    outcome = found.outcome or TIMEOUT
    if as_json:
        print_json(_document(loaded.name, queue, what, outcome, found, verdicts))
    else:
        _show(what, outcome, found, verdicts, timeout)
    return 0 if found.good else 1


def _until_ended(
    store: Store, name: str, what: str, deadline: float | None, is_run: Callable[[], bool]
) -> tuple[Ending, Queue]:
    """The ending, or how it stands when the time is up. Why it goes on for ever is said once, with the remedy.

    Raises:
        UsageError: there is nothing of that name.
    """
    from ddconsole.cli.watching import changes

    found, queue, said = Ending(None), store.queue(name), ""
    for run in changes(store, deadline, is_run):
        queue = store.queue(name)
        now = ending(queue, what, run=run)
        if isinstance(now, Refusal):
            raise UsageError(now.reason, advice="wait for an experiment such as E16, a sweep such as S3, or idle")
        found = now
        if found.outcome is not None:
            break
        if found.stuck and found.stuck != said:
            said = found.stuck
            remedy = "" if run else f"; start it with: ddconsole run {name}"
            click.echo(clean(f"waiting: {said}{remedy}"), err=True)
    return found, queue


def _document(
    name: str, queue: Queue, what: str, outcome: str, found: Ending, verdicts: dict[str, str]
) -> dict[str, Any]:
    from ddconsole.core.documents import head

    items = [
        {"id": item.id, "state": item.state.name, "verdict": verdicts.get(item.id) or None} for item in found.items
    ]
    return head(name, queue.revision) | {"waited_for": what, "outcome": outcome, "items": items}


def _show(what: str, outcome: str, found: Ending, verdicts: dict[str, str], timeout: float | None) -> None:
    for item in found.items:
        click.echo(clean(f"{item.id}  {item.state.name}  {verdicts.get(item.id, '')}".rstrip()))
    if outcome == TIMEOUT:
        click.echo(f"{what} has not ended within {timeout:g} s; it goes on", err=True)
    elif not found.items:
        click.echo("nothing runs, and nothing is going to start" if outcome == IDLE else f"{what} {outcome}")
