"""`ddconsole run PROFILE`: drain the queue without a screen."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ddconsole.cli.asking import TerminalAsker, accept_new_option
from ddconsole.cli.common import cli_errors, json_option, load_profile, open_and_seed
from ddconsole.cli.consent import take_over_option
from ddconsole.cli.report import discard
from ddconsole.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.events import Event
    from ddconsole.runner.bench import Bench
    from ddconsole.runner.console import Console
    from ddconsole.runner.drain import Tally

INTERRUPTED = 130
EXPERIMENT_FAILED = 1
REFUSED = 3

NOT_ON_STDOUT = frozenset({"gpu", "log"})
"""Kinds that `--json` leaves out; `--record` has them."""


@click.command()
@click.argument("profile")
@json_option("Events as JSON lines on stdout.")
@click.option("--max", "limit", type=click.IntRange(min=1), help="End after this many experiments.")
@click.option("--resume", is_flag=True, help="Go on after a run that did not end cleanly.")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), help="Write every event, GPU samples and log included."
)
@click.option("--keep-engine", is_flag=True, help="Leave the last engine running.")
@accept_new_option()
@take_over_option()
@cli_errors
def run(
    profile: str,
    as_json: bool,
    limit: int | None,
    resume: bool,
    record: Path | None,
    keep_engine: bool,
    accept_new: bool,
    take_over: bool,
) -> int:
    """Work on the queue of PROFILE until it is empty.

    Progress goes to stderr. The exit code is 0 when all experiments passed, 1 when one did not, 3 when another
    ddconsole runs this host or the queue is paused, 5 when the host cannot be reached.
    """
    from ddconsole.cli.engine_host import refuse_read_only
    from ddconsole.cli.wiring import make_bench

    refuse_read_only()
    loaded = load_profile(profile)
    open_and_seed(loaded).close()
    with _recorder(record) as recorder:
        takers = [*([Outlet(sys.stdout, "stdout", leave_out=NOT_ON_STDOUT)] if as_json else [])]
        takers += [recorder] if recorder else []
        asker, consent = TerminalAsker(), TerminalAsker()  # consent is asked when the connection stands already
        bench = make_bench(loaded, asker, accept_new=accept_new, consent=consent, take_over=take_over)
        work = _run(loaded, bench, (asker, consent), takers, limit=limit, resume=resume, keep_engine=keep_engine)
        return asyncio.run(work)


async def _run(
    loaded: LoadedProfile,
    bench: Bench,
    askers: Sequence[TerminalAsker],
    takers: Sequence[Callable[[Event], None]],
    *,
    limit: int | None,
    resume: bool,
    keep_engine: bool,
) -> int:
    from rich.console import Console as Terminal

    from ddconsole.cli.run_view import RunView
    from ddconsole.cli.wiring import parse_edit
    from ddconsole.runner.console import Console

    console = Console(bench, parse_edit(loaded), patient=False)
    view = RunView(Terminal(stderr=True, highlight=False))
    for asker in askers:
        asker.aside = view.aside
    with view:
        await console.open()
        for taker in (view.take, *takers):
            console.feed.subscribe(taker)
        console.show_queue()
        return await _drain(console, limit=limit, resume=resume, keep_engine=keep_engine)


async def _drain(console: Console, *, limit: int | None, resume: bool, keep_engine: bool) -> int:
    """The run with its end, whatever ends it."""
    work = asyncio.ensure_future(_work(console, limit, resume=resume))
    interrupted = _stop_on_signal(work)
    try:
        tally = await work
    except asyncio.CancelledError:
        if not interrupted.is_set():
            raise
        return INTERRUPTED
    finally:
        await console.close(keep_engine=keep_engine)
    return _exit_code(tally)


async def _work(console: Console, limit: int | None, *, resume: bool) -> Tally:
    await console.begin(waits=False, resume=resume)
    return await console.drain(limit)


def _exit_code(tally: Tally) -> int:
    if tally.failed:
        return EXPERIMENT_FAILED
    return REFUSED if tally.reason == "paused" else 0


def _stop_on_signal(work: asyncio.Future[Tally]) -> asyncio.Event:
    """The first INT, TERM or HUP ends the run in order; a second one is the terminal's own."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        interrupted.set()
        loop.remove_signal_handler(number)
        work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop, number)
    return interrupted


class Outlet:
    """Writes events as JSON lines until its reader is gone or its disk is full; the run goes on without it."""

    def __init__(self, file: TextIO, name: str, *, leave_out: frozenset[str] = frozenset()) -> None:
        self._file: TextIO | None = file
        self._name = name
        self._leave_out = leave_out

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if self._file is None or event.body.kind in self._leave_out:
            return
        try:
            self._file.write(event.to_line() + "\n")
            self._file.flush()
        except OSError as error:
            discard(self._file.fileno())
            self._file = None
            click.echo(f"ddconsole: no more events go to {self._name}: {error.strerror}; the run goes on", err=True)


@contextlib.contextmanager
def _recorder(path: Path | None) -> Iterator[Outlet | None]:
    """Writes every event to `path`, a line each.

    Raises:
        UsageError: it cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record {path}: {error.strerror}", advice="name a file that can be written") from None
    with contextlib.suppress(OSError), file:
        yield Outlet(file, str(path))
