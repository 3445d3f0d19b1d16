"""`ddconsole results PROFILE gate --baseline ID --max-loss 3%`: a result as an exit code."""

from __future__ import annotations

import click

from ddconsole.cli.common import cli_errors, json_option
from ddconsole.cli.report import clean, print_json
from ddconsole.core.errors import UsageError

FIGURES = ("tok_s_e2e", "tok_s_decode", "tau")


@click.command("gate")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--baseline", required=True, metavar="ID", help="The result that must not be lost against.")
@click.option("--max-loss", default="3%", show_default=True, help="The loss that is allowed.")
@click.option("--on", "figure_name", type=click.Choice(FIGURES), default=FIGURES[0], show_default=True)
@click.option("--strict", is_flag=True, help="What is not distinguishable fails too.")
@json_option()
@click.pass_obj
@cli_errors
def gate(
    profile: str, id_: str | None, baseline: str, max_loss: str, figure_name: str, strict: bool, as_json: bool
) -> int:
    """Exit with 0 when ID (the newest result by default) holds its own against the baseline, with 1 when not.

    What is not distinguishable from the baseline passes with a note. Too little data is a failure with its reason.
    """
    from ddconsole.cli.results.shelf import open_shelf
    from ddconsole.core import boots
    from ddconsole.core import gate as rules
    from ddconsole.core.documents import head

    loss = rules.parse_loss(max_loss)
    figure = next(figure for figure in boots.FIGURES if figure.name == figure_name)
    with open_shelf(profile) as shelf:
        theirs = shelf.find(baseline)
        others = [item for item in shelf.items if item is not theirs and not item.get("imported")]
        if id_ is None and not others:
            raise UsageError(f"there is no result besides {baseline}", advice="name the one to judge")
        mine = shelf.find(id_) if id_ is not None else others[-1]
        verdict = rules.gate(mine, theirs, shelf.known, max_loss_pct=loss, strict=strict, figure=figure)
        document = head(shelf.name, shelf.revision) | {
            "id": mine["id"],
            "baseline": theirs["id"],
            "figure": figure.name,
            "max_loss_pct": loss,
            "strict": strict,
            "gate": verdict.to_json(),
        }
    if as_json:
        print_json(document)
    else:
        click.echo(clean(f"{'passed' if verdict.passed else 'FAILED'}: {verdict.text}"))
    return 0 if verdict.passed else 1
