"""The `ddconsole` command: a table of nouns and verbs, each imported only when it is used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from ddconsole import __version__
from ddconsole.cli.report import EXIT_INTERRUPTED, tell_unwritable, tell_usage

if TYPE_CHECKING:
    from collections.abc import Sequence


class Entry(NamedTuple):
    """Where a command is, and its one line in `ddconsole --help`."""

    place: str
    help: str


COMMANDS: dict[str, Entry] = {
    "connect": Entry("ddconsole.cli.connect:connect", "Open the screen on PROFILE's host."),
    "run": Entry("ddconsole.cli.run:run", "Work on the queue of PROFILE until it is empty."),
    "queue": Entry("ddconsole.cli.queue:queue", "Look at and edit the queue of PROFILE."),
    "results": Entry("ddconsole.cli.results:results", "What was measured on PROFILE."),
    "profiles": Entry("ddconsole.cli.profiles:profiles", "List, show, check and make profiles."),
    "doctor": Entry("ddconsole.cli.doctor:doctor", "Check host, engine and profile without starting anything."),
    "engine": Entry("ddconsole.cli.engine:engine", "The engine that was started: status, log, stop, restore, promote."),
    "wait": Entry("ddconsole.cli.wait:wait", "Wait until an experiment, a sweep or all work has ended."),
    "events": Entry("ddconsole.cli.events:events", "What happened, as JSON lines."),
    "demo-host": Entry("ddconsole.cli.demo_host:demo_host", "Run the demo GPU host in the foreground."),
}


class LazyCommands(click.Group):
    """Shows the table without importing what is in it, and imports one command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands whose module is there, in the order of the table."""
        return [name for name, entry in COMMANDS.items() if find_spec(entry.place.partition(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ddconsole")
@click.option("--read-only", is_flag=True, help="Look, and change nothing: no edit, no run, no engine ended.")
def cli(read_only: bool) -> None:
    """A terminal console for tuning DDTree speculative decoding on a GPU host that is far away.

    Start with `ddconsole connect demo`: it needs no GPU and no host.
    """
    if read_only:
        from ddconsole.adapters.paths import READ_ONLY_VARIABLE

        os.environ[READ_ONLY_VARIABLE] = "1"


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run a command line (this process's own by default) and leave with its exit code.

    Bad usage is told as JSON where `--json` was asked for, as every other error is.
    """
    words = sys.argv[1:] if words is None else words
    try:
        code = cli.main(list(words), prog_name="ddconsole", standalone_mode=False)
    except click.ClickException as error:
        code = tell_usage(error, as_json="--json" in words)
    except click.Abort:
        code = EXIT_INTERRUPTED
    except OSError as error:
        code = tell_unwritable(error)
    sys.exit(code if isinstance(code, int) else 0)
