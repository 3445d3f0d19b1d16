"""`ddconsole results PROFILE compare A B`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option
from ddconsole.cli.report import clean, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.cli.results.shelf import Shelf
    from ddconsole.core.boots import Figure
    from ddconsole.core.compare import Comparison
    from ddconsole.core.difference import Change

PLAIN_FIGURES = (
    ("ttft_p50_ms", "TTFT p50 ms"), ("round_trip_ms", "of it round trip"), ("tpot_p50_ms", "TPOT p50 ms"),
    ("boot_s", "boot s"),
)  # fmt: skip
"""Figures that are shown side by side without an interval."""


@click.command("compare")
@click.argument("a")
@click.argument("b")
@json_option()
@click.pass_obj
@cli_errors
def compare(profile: str, a: str, b: str, as_json: bool) -> None:
    """Put result A beside B: what differs in the config, and what differs in the numbers, with its noise."""
    from ddconsole.cli.results.shelf import open_shelf
    from ddconsole.core.documents import head

    with open_shelf(profile) as shelf:
        mine, theirs = shelf.find(a), shelf.find(b)
        found = head(shelf.name, shelf.revision) | _document(shelf, mine, theirs)
        if as_json:
            print_json(found)
            return
        plain = _plain_figures(shelf, mine, theirs)
        _print(mine, theirs, _changes(shelf, mine, theirs), _comparisons(shelf, mine, theirs), plain)
        _print_curves(shelf, (mine, theirs))


def _document(shelf: Shelf, mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    from ddconsole.core.boots import FIGURES

    found = _comparisons(shelf, mine, theirs)
    return {
        "a": mine["id"],
        "b": theirs["id"],
        "changes": [{"name": one.name, "a": one.a, "b": one.b} for one in _changes(shelf, mine, theirs)],
        "figures": {
            figure.name: {"a": mine.get(figure.name), "b": theirs.get(figure.name)}
            | ({} if found.get(figure.name) is None else found[figure.name].to_json())
            for figure in FIGURES
        }
        | {name: {"a": a, "b": b} for name, _, a, b in _plain_figures(shelf, mine, theirs)},
        "coding": {"a": mine.get("coding"), "b": theirs.get("coding")},
        "where_the_time_goes": decomposition(found),
        "verdict": found["tok_s_e2e"].text if "tok_s_e2e" in found else None,
        "step_cost": [curve.to_json() for curve in _curves(shelf, (mine, theirs))],
    }


def _plain_figures(
    shelf: Shelf, mine: dict[str, Any], theirs: dict[str, Any]
) -> list[tuple[str, str, float | None, float | None]]:
    """(key, title, A's, B's) of what is shown without an interval."""
    from ddconsole.core.tally import round_trip_ms

    a, b = ({**item, "round_trip_ms": round_trip_ms(shelf.entry(item).passes)} for item in (mine, theirs))
    return [(name, title, a.get(name), b.get(name)) for name, title in PLAIN_FIGURES]


def decomposition(found: Mapping[str, Comparison]) -> str | None:
    """`decode +12.0 % = τ +18.0 % ÷ step time +5.4 %`: whether acceptance or cost made the difference."""
    names = ("tok_s_decode", "tau", "step_ms")
    if not all(name in found for name in names):
        return None
    decode, tau, step = (found[name].delta_pct for name in names)
    return f"decode {decode:+.1f} % = τ {tau:+.1f} % ÷ step time {step:+.1f} %"


def _comparisons(shelf: Shelf, mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Comparison]:
    from ddconsole.core.boots import FIGURES
    from ddconsole.core.compare import compare as compare_results

    found = {figure.name: compare_results(mine, theirs, shelf.known, figure) for figure in FIGURES}
    return {name: one for name, one in found.items() if one is not None}


def _changes(shelf: Shelf, mine: dict[str, Any], theirs: dict[str, Any]) -> list[Change]:
    from ddconsole.core.difference import changes

    return changes(mine, theirs, shelf.entry(mine).recipe, shelf.entry(theirs).recipe)


def _curves(shelf: Shelf, items: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The step-cost curves that one of the two stands on."""
    from ddconsole.core.compare import name_of
    from ddconsole.core.stepcost import cost_curves

    names = {name_of(item) for item in items}
    return [curve for curve in shelf.known.once(cost_curves) if any(names & set(point.ids) for point in curve.points)]


def _print(
    mine: Mapping[str, Any],
    theirs: Mapping[str, Any],
    changed: Sequence[Change],
    found: Mapping[str, Comparison],
    plain: Sequence[tuple[str, str, float | None, float | None]],
) -> None:
    from ddconsole.cli.results.words import attempt_name, coding_score, label
    from ddconsole.cli.table import number, print_table
    from ddconsole.core.boots import FIGURES

    a, b = attempt_name(mine), attempt_name(theirs)
    click.echo(clean(f"{a} {label(mine)}  against  {b} {label(theirs)}"))
    click.echo()
    rows = [(one.name, _shown(one.a), _shown(one.b)) for one in changed]
    print_table(("differs", a, b), rows or [("nothing that is recorded", "", "")])
    click.echo()
    figures = [
        (one.title, number(mine.get(one.name), 2), number(theirs.get(one.name), 2), *_told(one, found.get(one.name)))
        for one in FIGURES
    ]
    figures += [(title, number(one, 2), number(other, 2), "", "") for _, title, one, other in plain]
    figures.append(("coding", coding_score(mine), coding_score(theirs), "", ""))
    print_table(("at concurrency 1", a, b, "A against B", "which is"), figures, right=frozenset({a, b}))
    click.echo()
    for line in (found["tok_s_e2e"].text if "tok_s_e2e" in found else "nothing to compare", decomposition(found)):
        if line:
            click.echo(clean(line))


def _told(figure: Figure, comparison: Comparison | None) -> tuple[str, str]:
    """Difference and word; what is no speed is higher or lower."""
    if comparison is None:
        return "—", "—"
    interval = "" if comparison.ci_pct is None else f" ± {comparison.ci_pct:.1f}"
    word = comparison.word
    if word != "not distinguishable" and figure.unit != "tok/s":
        word = "higher" if comparison.delta_pct > 0 else "lower"
    return f"{comparison.delta_pct:+.1f} %{interval}", word


def _print_curves(shelf: Shelf, items: Sequence[Mapping[str, Any]]) -> None:
    for curve in _curves(shelf, items):
        click.echo(clean(f"where the time goes, {curve.label}:"))
        for segment in curve.segments:
            click.echo(clean(f"  {segment.text}"))
        click.echo(clean(f"  {curve.text}"))


def _shown(value: Any) -> str:
    return "—" if value is None else str(value)
