"""`ddconsole results PROFILE list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option
from ddconsole.cli.report import clean, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.cli.results.shelf import Shelf
    from ddconsole.core.plateau import Standing

COLUMNS = ("id", "outcome", "config", "tok/s e2e", "decode", "τ", "coding", "vs chain", "boots", "what happened")


@click.command("list")
@click.argument("ids", metavar="[ID|SWEEP]...", nargs=-1)
@json_option()
@click.pass_obj
@cli_errors
def list_(profile: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Show every finished attempt, or those named, oldest first, and how the configs stand to each other."""
    from ddconsole.cli.results.shelf import open_shelf
    from ddconsole.cli.table import print_table

    with open_shelf(profile) as whole:
        shelf = whole.only(ids)
        if as_json:
            print_json(document(shelf))
        elif shelf.items:
            rows = [_row(item, len(shelf.known.boots(item))) for item in shelf.items]
            print_table(COLUMNS, rows, right=frozenset({"tok/s e2e", "decode", "τ", "boots"}))
            _print_findings(shelf)
        else:
            click.echo(f"nothing was measured yet; `ddconsole run {shelf.name}` works on the queue")


def document(shelf: Shelf) -> dict[str, Any]:
    """The document of `results P list --json`."""
    from ddconsole.core.documents import results_document
    from ddconsole.core.drift import drifts
    from ddconsole.core.plateau import standings

    found = standings(shelf.known)
    return results_document(shelf.name, shelf.revision, shelf.items) | {
        "standings": [standing.to_json() | {"confirm": confirm_commands(shelf, standing)} for standing in found],
        "drift": [drift.to_json() for drift in shelf.known.once(drifts)],
    }


def confirm_commands(shelf: Shelf, standing: Standing) -> list[str]:
    """The commands that queue the longer suite for the best three and their control; none where that was done."""
    best, control = _to_confirm(shelf, standing)
    return [f"ddconsole queue {shelf.name} clone {id_} suite=confirm" for id_ in [*best, *control]]


def _to_confirm(shelf: Shelf, standing: Standing) -> tuple[list[str], list[str]]:
    """Ids of the best and of their control; imported ones cannot be run here."""
    from ddconsole.core.plateau import confirm_candidates

    chosen = confirm_candidates(standing, shelf.everything, shelf.trained_block_size)
    ids = [str(item["id"]) for item in chosen.best], [str(one["id"]) for one in (chosen.control,) if one is not None]
    best, control = ([id_ for id_ in group if ":" not in id_] for group in ids)
    return best, control


def _print_findings(shelf: Shelf) -> None:
    """Below the table: who is fastest or that nobody is, drift, and what to confirm. Nothing for a lone config."""
    from ddconsole.core.drift import drifts
    from ddconsole.core.plateau import standings

    several = [standing for standing in standings(shelf.known) if len(standing.order) > 1]
    lines = [standing.text for standing in several]
    lines += [drift.text for drift in shelf.known.once(drifts) if drift.pct_per_hour is not None]
    lines += [command for standing in several for command in _confirm_lines(shelf, standing)]
    if lines:
        click.echo()
    for line in lines:
        click.echo(clean(line))


def _confirm_lines(shelf: Shelf, standing: Standing) -> list[str]:
    best, control = _to_confirm(shelf, standing)
    named = [
        f"the best ({', '.join(best)})" if best else "",
        f"their control ({', '.join(control)})" if control else "",
    ]
    what = " and ".join(filter(None, named))
    return [f"to confirm {what}:", *(f"  {line}" for line in confirm_commands(shelf, standing))] if what else []


def _row(item: Mapping[str, Any], boots: int) -> tuple[str, ...]:
    from ddconsole.cli.results.words import against, attempt_name, coding_score, label
    from ddconsole.cli.table import number

    return (
        attempt_name(item),
        item["outcome"],
        label(item),
        number(item.get("tok_s_e2e")),
        number(item.get("tok_s_decode")),
        number(item.get("tau"), 2),
        coding_score(item),
        against(item.get("vs_reference")),
        str(boots) if item.get("tok_s_e2e") else "—",
        item["failure"]["what"] if item.get("failure") else "",
    )
