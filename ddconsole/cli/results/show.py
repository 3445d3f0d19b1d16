"""`ddconsole results PROFILE show ID`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option
from ddconsole.cli.report import clean, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.cli.results.shelf import Shelf

DIFF_LINES = 60
"""Lines of an answer's difference that are printed; --json has it whole."""


@click.command("show")
@click.argument("id_", metavar="ID")
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt; the latest by default.")
@json_option()
@click.pass_obj
@cli_errors
def show(profile: str, id_: str, attempt: int | None, as_json: bool) -> None:
    """Show everything that is known of one result: verdict, phases, passes, failed tasks, requests, recipe."""
    from ddconsole.cli.results.shelf import open_shelf
    from ddconsole.core.documents import head

    with open_shelf(profile) as shelf:
        document = head(shelf.name, shelf.revision) | whole(shelf, shelf.find(id_, attempt))
    if as_json:
        print_json(document)
    else:
        _print_result(document)


def whole(shelf: Shelf, item: dict[str, Any]) -> dict[str, Any]:
    """The result with its phases, pass summaries, requests, recipe, and failed answers beside the control's."""
    from ddconsole.report.book import make_book

    entry = make_book(shelf.name, "", "", [shelf.entry(item, with_requests=True)]).entries[0]
    return {
        "item": item,
        "attempts": shelf.attempts(item["id"]),
        "intervals": {name: list(bounds) for name, bounds in entry.intervals.items()},
        "phases": dict(entry.phases),
        "passes": dict(entry.passes),
        "recipe": dict(entry.recipe),
        "host_facts": entry.recipe.get("host_facts") or {},
        "answer_diffs": answer_diffs(shelf, item, entry.passes, entry.requests),
        "requests": list(entry.requests),
    }


def answer_diffs(
    shelf: Shelf,
    item: dict[str, Any],
    passes: Mapping[str, Sequence[Mapping[str, Any]]],
    requests: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """For each task that failed: the answer against the control's, as a unified diff."""
    from ddconsole.core.answers import diff_failed
    from ddconsole.core.compare import reference_of

    control = reference_of(item, shelf.items, shelf.trained_block_size)
    if control is None or not any(summary.get("tasks") for summary in passes.get("coding") or ()):
        return []
    theirs = shelf.entry(dict(control), with_requests=True)
    return diff_failed(passes["coding"], requests, theirs.requests, str(item["id"]), str(control["id"]))


def _print_result(document: Mapping[str, Any]) -> None:
    from ddconsole.cli.results.words import label
    from ddconsole.core.level_words import pass_lines

    item = document["item"]
    click.echo(clean(f"{item['id']} attempt {item['attempt']} · {item['outcome']} · {label(item)}"))
    click.echo(clean(f"  {item.get('verdict') or 'no verdict'}"))
    if item.get("failure"):
        _print_failure(item["failure"])
    for line in (*_interval_lines(document), *_versus_lines(item)):
        click.echo(clean(f"  {line}"))
    for name, seconds in document["phases"].items():
        click.echo(f"  {name:<18} {seconds:8.1f} s")
    for name, repeats in document["passes"].items():
        for number, summary in enumerate(repeats, start=1):
            click.echo(clean(f"  {name} {number}: " + _flat(summary)))
            for line in (*pass_lines(summary), *map(_task_line, summary.get("tasks", ()))):
                click.echo(clean(f"    {line}"))
    _print_diffs(document["answer_diffs"])
    failed = sum(request["error"] is not None for request in document["requests"])
    click.echo(f"  {len(document['requests'])} requests, {failed} failed; --json has them whole, with the recipe")


def _interval_lines(document: Mapping[str, Any]) -> list[str]:
    """The figures at concurrency 1 with their intervals, and what decode is made of."""
    from ddconsole.core.boots import measurements_of

    item, intervals = document["item"], document["intervals"]
    words = [
        f"{title} {item[name]:.{digits}f} ({intervals[name][0]:.{digits}f} to {intervals[name][1]:.{digits}f})"
        for name, title, digits in (("tok_s_e2e", "tok/s e2e", 1), ("tau", "τ", 2), ("step_ms", "step ms", 1))
        if name in intervals
    ]
    boots = len(measurements_of(item))
    known = f"{boots} boot{'' if boots == 1 else 's'}" + (
        "" if boots > 1 else ", so what a restart changes is not in it"
    )
    lines = [f"95 % at c=1: {', '.join(words)}; {known}"] if words else []
    tau, step, decode = item.get("tau"), item.get("step_ms"), item.get("tok_s_decode")
    if tau and step and decode:
        lines.append(f"decode {decode:.1f} tok/s ≈ τ {tau:.2f} / step {step:.1f} ms")
    return lines


def _versus_lines(item: Mapping[str, Any]) -> list[str]:
    from ddconsole.cli.results.words import against

    versus = item.get("vs_reference")
    if not versus:
        return []
    boots = versus.get("boots")
    counts = f" ({versus['pairs']} prompts, {boots[0]} + {boots[1]} boots)" if boots else ""
    return [f"{against(versus)}{counts}" + (f"; {versus['drift']}" if versus.get("drift") else "")]


def _task_line(task: Mapping[str, Any]) -> str:
    """One answer of a coding pass, with the tests that it failed."""
    line = f"{task['id']}: {task['verdict']}" + (f": {task['detail']}" if task.get("detail") else "")
    further = len(task.get("failures") or ()) - 1
    return line + (f" (and {further} further tests)" if further > 0 else "")


def _print_diffs(diffs: Sequence[Mapping[str, Any]]) -> None:
    for one in diffs:
        click.echo(clean(f"  {one['task']}: its answer against {one['control']}'s"))
        for line in one["diff"][:DIFF_LINES]:
            click.echo(clean(f"    {line}"))
        if len(one["diff"]) > DIFF_LINES:
            click.echo(f"    … {len(one['diff']) - DIFF_LINES} further lines in --json")


def _print_failure(failure: Mapping[str, Any]) -> None:
    click.echo(clean(f"  {failure['cause']}: {failure['what']}"))
    for line in failure["evidence"]:
        click.echo(clean(f"    | {line}"))
    if failure["advice"]:
        click.echo(clean(f"    → {failure['advice']}"))


def _flat(summary: Mapping[str, Any]) -> str:
    """The plain values of a summary in one line."""
    plain = {name: value for name, value in summary.items() if isinstance(value, (int, float, str))}
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )
