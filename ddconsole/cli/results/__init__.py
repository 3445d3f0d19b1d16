"""`ddconsole results PROFILE VERB …`: what was measured. One file a verb."""

from __future__ import annotations

import click

from ddconsole.cli.results.compare import compare
from ddconsole.cli.results.export import export
from ddconsole.cli.results.gate import gate
from ddconsole.cli.results.importing import import_
from ddconsole.cli.results.listing import list_
from ddconsole.cli.results.plot import plot
from ddconsole.cli.results.show import show


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.pass_context
def results(ctx: click.Context, profile: str) -> None:
    """What was measured on PROFILE.

    A result is named by its experiment (E11), a later attempt as E11#2, one of another profile as ct200:E11, an
    imported one by the import's name, as night:E11.
    """
    ctx.obj = profile
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


for command in (list_, show, compare, gate, plot, export, import_):
    results.add_command(command)
