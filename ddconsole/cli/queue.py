"""`ddconsole queue PROFILE VERB …`: look at the queue and edit it, also while another process works on it."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, open_and_seed, standard_lines
from ddconsole.cli.report import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.order import By

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
    "cancel": ("ID", "End the running experiment, in whichever process it runs."),
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
    from ddconsole.adapters.paths import Paths
    from ddconsole.adapters.run_lock import run_lock
    from ddconsole.cli.queue_view import print_queue
    from ddconsole.runner.outlook import Outlook

    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        view = Outlook(loaded.name, loaded.profile, store.phase_history(loaded.name))
        document = view.document(store.queue(loaded.name), datetime.now(UTC), with_removed=all_)
    document["runner_alive"] = run_lock(Paths.from_environment().state, loaded.profile.host).is_held()
    if as_json:
        print_json(document)
    else:
        print_queue(document, with_ended=all_)


@queue.command("history")
@json_option()
@click.pass_obj
@cli_errors
def history(profile: str, as_json: bool) -> None:
    """Show what undo and redo would do, step by step."""
    from ddconsole.cli.queue_history import show

    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        show(loaded.name, store.queue(loaded.name), as_json=as_json)


@queue.command("order")
@click.option(
    "--by", type=click.Choice(["restarts", "information", "drift"]), default="restarts", help="What it is for."
)
@click.option(
    "--every", type=click.IntRange(1, 1000), default=4, show_default=True, help="drift: most others between anchors."
)
@click.option("--accept", is_flag=True, help="Put the queue into this order; undo takes it back.")
@click.option("--seen", type=click.IntRange(min=0), help="With --accept: the revision that you looked at.")
@json_option()
@click.pass_obj
@cli_errors
def order(profile: str, by: By, every: int, accept: bool, seen: int | None, as_json: bool) -> None:
    """Propose another order, and say what it saves.

    restarts puts equal engines side by side. information puts the controls first, then always what is farthest from
    all that is known by then. drift puts short repeats of one config, the control where there is one, between the
    others, so that results tell whether the host changed meanwhile. Nothing is changed until it is accepted.
    """
    from ddconsole.cli.queue_order import Ordering

    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        Ordering(loaded, store, by, every).run(accept=accept, seen=seen, as_json=as_json)


@queue.command("export")
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of stdout.")
@click.pass_obj
@cli_errors
def export(profile: str, ids: tuple[str, ...], output: Path | None) -> None:
    """Write waiting experiments as one YAML document, to be edited and imported."""
    from ddconsole.cli.queue_file import export_queue

    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        export_queue(loaded, store, ids, output)


@queue.command("import")
@click.argument("file", metavar="FILE|-", type=click.Path(allow_dash=True))
@click.option("--again", is_flag=True, help="Also new ones whose work is there already.")
@click.option("--dry-run", is_flag=True, help="Show what it would do, and change nothing.")
@json_option()
@click.pass_obj
@cli_errors
def import_(profile: str, file: str, again: bool, dry_run: bool, as_json: bool) -> int:
    """Take an edited export in: all of it as one step, or nothing.

    Values, notes, held and the order are as the document says. An entry that was deleted removes its experiment, an
    entry without an id is new.
    """
    from ddconsole.cli.queue_file import import_queue

    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        return import_queue(loaded, store, file, again=again, dry_run=dry_run, as_json=as_json)


def _run_verb(verb: str, profile: str, words: tuple[str, ...], *, as_json: bool, **wishes: Any) -> int:
    """Read the words, apply the edit, and show what it did. Returns the exit code."""
    from ddconsole.cli.queue_edit import Editing, Wishes

    loaded = load_profile(profile)
    specs: list[tuple[str, ...] | str] = [words]
    if verb in ADDING and words == ("-",):
        specs = [*standard_lines()]
    with contextlib.closing(open_and_seed(loaded)) as store:
        return Editing(loaded, store, verb, Wishes(**wishes)).run(specs, as_json=as_json)


ADDING_OPTIONS = (
    click.option("--again", is_flag=True, help="Also when the same work is there already."),
    click.option("--new", "new_only", is_flag=True, help="Of a sweep only what is not there already."),
    click.option("--with-control", is_flag=True, help="Put the missing control of a tree in front."),
    click.option("--intent", default="", metavar="KEY", help="Taken once, however often it is sent with this KEY."),
)


def _add_verb(verb: str, metavar: str, help_text: str) -> None:
    """One verb of the queue's language as a subcommand."""

    @cli_errors
    def run(profile: str, as_json: bool, words: tuple[str, ...] = (), **wishes: Any) -> int:
        return _run_verb(verb, profile, words, as_json=as_json, **wishes)

    command: Any = click.pass_obj(run)
    for option in ADDING_OPTIONS if verb in ADDING else ():
        command = option(command)
    if metavar:
        command = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar=metavar)(command)
    command = click.option("--dry-run", is_flag=True, help="Show what it would do, and change nothing.")(command)
    command = json_option()(command)
    settings: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}
    queue.command(verb, help=help_text, context_settings=dict(settings))(command)


for _verb, (_metavar, _help) in VERBS.items():
    _add_verb(_verb, _metavar, _help)
