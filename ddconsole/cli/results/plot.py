"""`ddconsole results PROFILE plot`: plots in plain characters."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option
from ddconsole.cli.report import clean, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.stepcost import CostCurve

KINDS = ("speed", "budget")
MOST_WIDTH = 100


@click.command("plot")
@click.option("--kind", type=click.Choice((*KINDS, "all")), default="all", show_default=True)
@click.option("--width", type=click.IntRange(30, 400), help="Characters of a line; the terminal's by default.")
@json_option()
@click.pass_obj
@cli_errors
def plot(profile: str, kind: str, width: int | None, as_json: bool) -> None:
    """Draw tok/s over τ, and step time and τ over the budget. The HTML export has them as SVG."""
    from ddconsole.cli.results.shelf import open_shelf
    from ddconsole.core.boots import is_ranked
    from ddconsole.core.documents import head
    from ddconsole.core.stepcost import cost_curves

    with open_shelf(profile) as shelf:
        shown = [item for item in shelf.items if is_ranked(item) and item.get("tau")] if kind != "budget" else []
        curves = shelf.known.once(cost_curves) if kind != "speed" else ()
        boots = [len(shelf.known.boots(item)) for item in shown]
        document = head(shelf.name, shelf.revision)
    if as_json:
        keys = ("id", "attempt", "tau", "tok_s_e2e", "config")
        points = [
            {key: item.get(key) for key in keys} | {"boots": count} for item, count in zip(shown, boots, strict=True)
        ]
        print_json(document | {"speed": points, "step_cost": [curve.to_json() for curve in curves]})
        return
    inside = (width or min(shutil.get_terminal_size().columns, MOST_WIDTH)) - 12
    if kind != "budget":
        _draw_speed(shown, boots, inside)
    if kind != "speed":
        _draw_curves(curves, inside)


def _draw_speed(shown: Sequence[Mapping[str, Any]], boots: Sequence[int], width: int) -> None:
    """A point for each result; behind its rate how many boots its config has."""
    from ddconsole.cli.results.words import attempt_name, label
    from ddconsole.report.textplot import Point, scatter

    points = [
        Point(
            item["tau"],
            item["tok_s_e2e"],
            f"{attempt_name(item):<6} {item['tok_s_e2e']:7.1f} tok/s  "
            f"{count} boot{' ' if count == 1 else 's'}  {label(item)}",
        )
        for item, count in zip(shown, boots, strict=True)
    ]
    for line in scatter(points, "τ (ΣC/ΣV)", "tok/s e2e at c=1", width=width):
        click.echo(clean(line))


def _draw_curves(curves: Sequence[CostCurve], width: int) -> None:
    from ddconsole.core.stepcost import MIN_BUDGETS
    from ddconsole.report.textplot import Point, scatter

    if not curves:
        click.echo(f"no budget curve: it needs {MIN_BUDGETS} budgets of otherwise equal trees")
    for curve in curves:
        click.echo()
        click.echo(clean(f"{curve.label}: measured points, joined by straight lines"))
        for title, values in (
            ("step time, ms", [point.step_ms.value for point in curve.points]),
            ("τ (ΣC/ΣV)", [point.tau.value for point in curve.points]),
            ("tok/s decode", [point.rate for point in curve.points]),
        ):
            points = [
                Point(point.budget, value, f"B {point.budget:<4} {value:8.2f}  {', '.join(point.ids)}")
                for point, value in zip(curve.points, values, strict=True)
            ]
            for line in scatter(points, "budget B", title, width=width, height=9, joined=True):
                click.echo(clean(line))
        for line in (*(segment.text for segment in curve.segments), curve.text):
            click.echo(clean(line))
