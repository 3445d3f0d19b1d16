"""`ddconsole results PROFILE VERB …`: what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, open_and_seed
from ddconsole.cli.report import clean, print_json
from ddconsole.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.adapters.store import SqliteStore

COLUMNS = ("id", "outcome", "config", "tok/s e2e", "decode", "τ", "coding", "vs chain", "what happened")


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.pass_context
def results(ctx: click.Context, profile: str) -> None:
    """What was measured on PROFILE."""
    ctx.obj = profile
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@results.command("list")
@json_option()
@click.pass_obj
@cli_errors
def list_(profile: str, as_json: bool) -> None:
    """Show every finished attempt, oldest first."""
    from ddconsole.cli.table import print_table
    from ddconsole.core.documents import results_document

    loaded = load_profile(profile)
    store = open_and_seed(loaded)
    try:
        items, revision = _compared(loaded, store.results(loaded.name)), store.queue(loaded.name).revision
    finally:
        store.close()
    if as_json:
        print_json(results_document(loaded.name, revision, items))
    elif items:
        print_table(COLUMNS, [_row(item) for item in items], right=frozenset({"tok/s e2e", "decode", "τ"}))
    else:
        click.echo(f"nothing was measured yet; `ddconsole run {loaded.name}` works on the queue")


@results.command("show")
@click.argument("id_", metavar="ID")
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt; the latest by default.")
@json_option()
@click.pass_obj
@cli_errors
def show(profile: str, id_: str, attempt: int | None, as_json: bool) -> None:
    """Show everything that is known of one result: verdict, phases, passes, requests."""
    from ddconsole.core.documents import head

    loaded = load_profile(profile)
    store = open_and_seed(loaded)
    try:
        document = head(loaded.name, store.queue(loaded.name).revision) | _whole(store, loaded, id_, attempt)
    finally:
        store.close()
    if as_json:
        print_json(document)
    else:
        _print_result(document)


def _compared(loaded: LoadedProfile, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    from ddconsole.core.compare import compared

    return compared(items, loaded.profile.engine.known_block_size)


def _whole(store: SqliteStore, loaded: LoadedProfile, id_: str, attempt: int | None) -> dict[str, Any]:
    """The result with its phases, pass summaries and requests.

    Raises:
        UsageError: there is no such result.
    """
    from ddconsole.core.ports.store import AttemptKey

    profile = loaded.name
    found = [item for item in _compared(loaded, store.results(profile)) if item["id"] == id_]
    chosen = [item for item in found if attempt is None or item["attempt"] == attempt]
    if not chosen:
        raise _no_result(store, profile, id_, [item["attempt"] for item in found])
    key = AttemptKey(profile, id_, chosen[-1]["attempt"])
    return {
        "item": chosen[-1],
        "attempts": [item["attempt"] for item in found],
        "phases": store.phases(key),
        "passes": store.finished_passes(key),
        "requests": [record.to_json(with_text=True) for record in store.records(key)],
    }


def _no_result(store: SqliteStore, profile: str, id_: str, attempts: Sequence[int]) -> UsageError:
    if attempts:
        return UsageError(f"{id_} has no such attempt", advice=f"it has {', '.join(map(str, attempts))}")
    item = next((item for item in store.queue(profile).items if item.id == id_), None)
    if item is None:
        return UsageError(f"{id_} is no experiment of {profile}", advice=f"`ddconsole results {profile} list`")
    return UsageError(f"{id_} has no result: it is {item.state.name}", advice=f"`ddconsole queue {profile} list`")


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    from ddconsole.cli.table import number

    attempt = item.get("attempt") or 1
    coding = item.get("coding")
    return (
        item["id"] + (f" #{attempt}" if attempt > 1 else ""),
        item["outcome"],
        _label(item),
        number(item.get("tok_s_e2e")),
        number(item.get("tok_s_decode")),
        number(item.get("tau"), 2),
        f"{coding['passed']}/{coding['total']}" if coding else "—",
        _against(item.get("vs_reference")),
        item["failure"]["what"] if item.get("failure") else "",
    )


def _label(item: Mapping[str, Any]) -> str:
    from ddconsole.core.config import Config

    return Config.from_json(item["config"]).label() if item.get("config") else "—"


def _against(reference: Mapping[str, Any] | None) -> str:
    """`+12 % ± 3 of E11`."""
    if not reference or reference.get("delta_pct") is None:
        return "—"
    interval = "" if reference.get("ci_pct") is None else f" ± {reference['ci_pct']:.0f}"
    return f"{reference['delta_pct']:+.0f} %{interval} of {reference['id']}"


def _print_result(document: Mapping[str, Any]) -> None:
    item = document["item"]
    click.echo(clean(f"{item['id']} attempt {item['attempt']} · {item['outcome']} · {_label(item)}"))
    click.echo(clean(f"  {item.get('verdict') or 'no verdict'}"))
    if item.get("failure"):
        _print_failure(item["failure"])
    for name, seconds in document["phases"].items():
        click.echo(f"  {name:<18} {seconds:8.1f} s")
    for name, repeats in document["passes"].items():
        for number, summary in enumerate(repeats, start=1):
            click.echo(clean(f"  {name} {number}: " + _flat(summary)))
            for line in (*map(_level_line, summary.get("levels", ())), *map(_task_line, summary.get("tasks", ()))):
                click.echo(clean(f"    {line}"))
    failed = sum(request["error"] is not None for request in document["requests"])
    click.echo(f"  {len(document['requests'])} requests, {failed} failed; --json has them whole")


def _level_line(level: Mapping[str, Any]) -> str:
    """One concurrency level of a throughput pass."""
    parts = [f"c={level['concurrency']}", f"{level['output_tok_s'] or 0:.1f} tok/s output"]
    if level.get("tok_s_decode"):
        parts.append(f"{level['tok_s_decode']:.1f} decode")
    if level.get("tau"):
        parts.append(f"τ {level['tau']:.2f} (ΣC/ΣV, {level['tau_n']} requests)")
    parts += [
        f"{label} p50 {level[name]['p50']:.1f} p99 {level[name]['p99']:.1f} ms"
        for label, name in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"))
        if level.get(name) and level[name].get("p50") is not None
    ]
    return " · ".join(parts) + (" · ⚠ the client was near its limit" if level.get("client_saturated") else "")


def _task_line(task: Mapping[str, Any]) -> str:
    """One task of a coding pass."""
    return f"{task['id']}: {task['verdict']}" + (f": {task['detail']}" if task.get("detail") else "")


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
