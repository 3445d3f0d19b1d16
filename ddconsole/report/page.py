"""Results as one HTML page that holds everything it needs: no script, no request, light, dark and on paper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ddconsole.core.compare import name_of
from ddconsole.core.plateau import config_label
from ddconsole.report import levels, plots, svg
from ddconsole.report.svg import clean
from ddconsole.report.tables import versus_text, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ddconsole.report.book import Book, Entry

STYLE = (
    """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --muted: #5b6675; --grid: #dfe4ea; --panel: #f5f7f9;
  --a: #0a6fb8; --b: #b4540a; --c: #2d7d46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181e; --ink: #e4e9ef; --muted: #9aa7b6; --grid: #2d3641;
  --panel: #1b2129; --a: #5fb3f0; --b: #f0a45d; --c: #73c68b; --bad: #ff8a80; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --muted: #444; --grid: #ccc; --panel: #fff;
  --a: #0a4f85; --b: #8a3f06; --c: #1f5c32; --bad: #8c1d18; } details::details-content {
  content-visibility: visible; block-size: auto; } .wide { overflow: visible; } table { font-size: .72rem; }
  td.num, th.num { white-space: normal; } figure, tr, .note { break-inside: avoid; } @page { size: A4 landscape;
  margin: 12mm; } body { max-width: none; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.muted, figcaption { color: var(--muted); font-size: .9rem; }
.note { background: var(--panel); border-left: 4px solid var(--a); padding: .5rem .9rem; margin: .4rem 0; }
.note.warn { border-left-color: var(--b); } .bad { color: var(--bad); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--grid); vertical-align: top;
  overflow-wrap: break-word; }
td:nth-child(2) { min-width: 9rem; } th { color: var(--muted); font-weight: 600; }
td.num, th.num { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel);
  padding: .6rem .9rem; font-size: .85rem; } summary { cursor: pointer; padding: .2rem 0; }
"""
    + svg.STYLE
)

RESULT_COLUMNS = (
    ("id", False), ("config", False), ("tok/s e2e (95 %)", True), ("decode", True), ("τ ΣC/ΣV (95 %)", True),
    ("step ms (95 %)", True), ("τ / step", True), ("coding", True), ("against its chain", False), ("boots", True),
    ("outcome", False),
)  # fmt: skip


def to_html(book: Book) -> str:
    """The whole page."""
    sections = [
        *_head(book),
        *_findings(book),
        *_plots(book),
        *_results(book),
        *_levels(book),
        *_checks(book),
        *_recipes(book),
    ]
    title = f"ddconsole: results of {book.profile}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{clean(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )


def _head(book: Book) -> Iterable[str]:
    hosts = sorted({str(entry.item["measured_on"]) for entry in book.entries if entry.item.get("measured_on")})
    engines = sorted({str(entry.item["engine_version"]) for entry in book.entries if entry.item.get("engine_version")})
    facts = [f"{len(book.entries)} results", *hosts, *(f"engine {engine}" for engine in engines)]
    yield f"<h1>Results of {clean(book.profile)}</h1>"
    yield f'<p class="muted">{clean(" · ".join(facts))} · ddconsole {clean(book.version)} · {clean(book.made_at)}</p>'


def _findings(book: Book) -> Iterable[str]:
    yield "<h2>What it says</h2>"
    for standing in book.standings:
        yield _note(standing.text)
        for versus in standing.against_best[:3]:
            yield f'<p class="muted">{clean(versus.text)}</p>'
    if not book.standings:
        yield '<p class="muted">Nothing passed yet.</p>'
    for drift in book.drifts:
        looked = drift.pct_per_hour is not None
        yield _note(drift.text, warn=drift.found) if looked else f'<p class="muted">{clean(drift.text)}</p>'
    for curve in book.curves:
        yield _note(curve.text)


def _plots(book: Book) -> Iterable[str]:
    figures = [
        (plots.against_reference(book.entries), "Each config against the chain that it has to beat, 95 % intervals."),
        (
            plots.speed_over_tau(book.entries),
            "Speed over acceptance; whiskers are 95 % intervals by prompts and boots.",
        ),
        *((plots.step_cost(curve), _cost_caption(curve.label)) for curve in book.curves),
        (
            plots.drift(book),
            "Configs that were measured more than once: what changes here is the host, not the config.",
        ),
    ]
    shown = [(drawing, caption) for drawing, caption in figures if drawing is not None]
    if shown:
        yield "<h2>Plots</h2>"
    for drawing, caption in shown:
        yield f'<figure class="wide">{drawing}<figcaption>{clean(caption)}</figcaption></figure>'
    for curve in book.curves:
        lines = "".join(f"<li>{clean(segment.text)}</li>" for segment in curve.segments)
        yield f'<p class="muted">{clean(curve.label)}, from budget to budget:</p><ul>{lines}</ul>'


def _cost_caption(label: str) -> str:
    return f"Where the time goes, {label}: straight lines between measured budgets, since kernels have cliffs."


def _results(book: Book) -> Iterable[str]:
    yield "<h2>Results</h2>"
    rows = [_row(_result_cells(entry), RESULT_COLUMNS) for entry in book.entries]
    yield _table(
        "At concurrency 1. τ is Σ completion tokens over Σ verify steps of this run's requests;"
        " tok/s e2e is ΣC/ΣE2E; decode leaves the first token out; τ / step is what decode comes to.",
        RESULT_COLUMNS,
        rows,
    )
    for entry in book.entries:
        failure = entry.item.get("failure")
        if failure:
            yield f'<p class="bad">{clean(name_of(entry.item))}: {clean(failure.get("what"))}</p>'
            evidence = "\n".join(str(line) for line in failure.get("evidence") or ())
            yield (f"<pre>{clean(evidence)}</pre>" if evidence else "") + f"<p>→ {clean(failure.get('advice'))}</p>"


def _result_cells(entry: Entry) -> tuple[str, ...]:
    item = entry.item
    coding = item.get("coding") or {}
    tau, step = item.get("tau"), item.get("step_ms")
    return (
        name_of(item),
        config_label(item),
        with_interval(entry, "tok_s_e2e", 1),
        with_interval(entry, "tok_s_decode", 1),
        with_interval(entry, "tau", 2),
        with_interval(entry, "step_ms", 1),
        f"{tau / step * 1000:.1f}" if tau and step else "—",
        f"{coding['passed']}/{coding['total']}" if coding.get("total") else "—",
        versus_text(item.get("vs_reference")),
        str(entry.boots),
        str(item.get("outcome")),
    )


def _levels(book: Book) -> Iterable[str]:
    rows = [_row(cells, levels.RATE_HEADS) for cells in levels.rate_rows(book)]
    if rows:
        yield "<h2>Concurrency levels</h2>"
        yield _table(levels.CAPTION, levels.RATE_HEADS, rows)
        waits = [_row(cells, levels.LATENCY_HEADS) for cells in levels.latency_rows(book)]
        yield _table(levels.LATENCY_CAPTION, levels.LATENCY_HEADS, waits)


def _checks(book: Book) -> Iterable[str]:
    rows = [_row(cells, levels.CHECK_HEADS) for cells in levels.check_rows(book)]
    if rows:
        yield "<h2>Beside the engine's own figures</h2>"
        caption = "Ours come from this run's answers alone; each of the engine's covers what stands beside it."
        yield _table(caption, levels.CHECK_HEADS, rows)


def _recipes(book: Book) -> Iterable[str]:
    told = [entry for entry in book.entries if entry.recipe]
    if told:
        yield "<h2>Recipes</h2>"
        yield '<p class="muted">What each number was made with; secrets are masked.</p>'
    for entry in told:
        text = json.dumps(entry.recipe, indent=2, ensure_ascii=False, sort_keys=True)
        yield f"<details><summary>{clean(name_of(entry.item))}</summary><pre>{clean(text)}</pre></details>"


def _note(words: str, *, warn: bool = False) -> str:
    return f'<p class="note{" warn" if warn else ""}">{clean(words)}</p>'


def _table(caption: str, columns: Sequence[tuple[str, bool]], rows: Sequence[str]) -> str:
    heads = "".join(f'<th scope="col"{_css(right)}>{clean(name)}</th>' for name, right in columns)
    return (
        f'<p class="muted">{clean(caption)}</p><div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(cells: Sequence[str], columns: Sequence[tuple[str, bool]]) -> str:
    shown = "".join(f"<td{_css(right)}>{_cell(cell)}</td>" for cell, (_, right) in zip(cells, columns, strict=True))
    return f"<tr>{shown}</tr>"


def _cell(cell: str) -> str:
    """What stands in brackets goes below: intervals, counts of boots."""
    value, *more = cell.split(" (")
    return clean(value) + "".join(f'<br><span class="muted">({clean(one)}</span>' for one in more)


def _css(right: bool) -> str:
    return ' class="num"' if right else ""
