"""`ddconsole queue PROFILE VERB …`: look at the queue and edit it, also while another process works on it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, open_and_seed
from ddconsole.cli.report import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDING = frozenset({"add", "next", "after", "after!", "clone", "sweep"})
"""Verbs that queue work, which may be there already."""

VERBS: dict[str, tuple[str, str]] = {
    "add": ("SPEC…", "Queue experiments behind all others; - reads one spec a line from stdin."),
    "next": ("SPEC…", "Queue experiments in front of all others."),
    "after": ("[ID] SPEC…", "Queue experiments right behind one, inheriting its config."),
    "after!": ("[ID] SPEC…", "As after, but start only if that one passes."),
    "clone": ("ID [SPEC…]", "Queue a copy of an experiment or a sweep, with changes."),
    "sweep": ("SPEC…", "Queue every combination of the values given."),
    "idea": ("WORDS…", "Keep words that are no spec yet."),
    "edit": ("ID SPEC…", "Change what waiting experiments run."),
    "move": ("ID… PLACE", "Move waiting experiments: top, up, down, bottom, or a rank."),
    "hold": ("ID…", "Pass experiments over until they are released."),
    "release": ("ID…", "The inverse of hold."),
    "remove": ("ID…", "Take waiting experiments out; undo brings them back."),
    "retry": ("ID…", "Queue ended experiments again, under their ids."),
    "undo": ("", "Take the last edit back."),
    "redo": ("", "Do again what undo took back."),
    "pause": ("", "Start nothing new; what runs goes on."),
    "start": ("", "Take the pause back. `ddconsole run` or the screen does the work."),
}


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.pass_context
def queue(ctx: click.Context, profile: str) -> None:
    """Look at and edit the queue of PROFILE.

    A spec is made of KEY=VALUE words: b=16 B=match K=6 W=2048 algorithm=chain arg.NAME=V. IDs are E14 or, for a
    whole sweep, S3.
    """
    ctx.obj = profile
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False, all_=False)


@queue.command("list")
@json_option()
@click.option("--all", "all_", is_flag=True, help="Ended and removed experiments too.")
@click.pass_obj
@cli_errors
def list_(profile: str, as_json: bool, all_: bool) -> None:
    """Show what runs and what waits, in its order."""
    from ddconsole.cli.queue_view import print_queue
    from ddconsole.runner.outlook import Outlook

    loaded = load_profile(profile)
    store = open_and_seed(loaded)
    try:
        view = Outlook(loaded.name, loaded.profile, store.phase_history(loaded.name))
        document = view.document(store.queue(loaded.name), datetime.now(UTC), with_removed=all_)
    finally:
        store.close()
    if as_json:
        print_json(document)
    else:
        print_queue(document, with_ended=all_)


def _run_verb(verb: str, profile: str, words: tuple[str, ...], *, as_json: bool, again: bool) -> int:
    """Read the words, apply the edit, and show what it did. Returns the exit code."""
    from ddconsole.cli.queue_edit import Editing

    loaded = load_profile(profile)
    specs: list[tuple[str, ...] | str] = [words]
    if verb in ADDING and words == ("-",):
        specs = [line for line in sys.stdin.read().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    store = open_and_seed(loaded)
    try:
        return Editing(loaded, store, verb, again=again).run(specs, as_json=as_json)
    finally:
        store.close()


def _add_verb(verb: str, metavar: str, help_text: str) -> None:
    """One verb of the queue's language as a subcommand."""

    @cli_errors
    def run(profile: str, as_json: bool, words: tuple[str, ...] = (), again: bool = False) -> int:
        return _run_verb(verb, profile, words, as_json=as_json, again=again)

    command: Any = click.pass_obj(run)
    if verb in ADDING:
        command = click.option("--again", is_flag=True, help="Also when the same work is there already.")(command)
    if metavar:
        command = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar=metavar)(command)
    command = json_option()(command)
    settings: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}
    queue.command(verb, help=help_text, context_settings=dict(settings))(command)


for _verb, (_metavar, _help) in VERBS.items():
    _add_verb(_verb, _metavar, _help)
