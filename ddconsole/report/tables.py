"""Results as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import suite_of
from ddconsole.core.compare import name_of
from ddconsole.core.plateau import config_label
from ddconsole.core.tally import round_trip_ms
from ddconsole.report import levels
from ddconsole.report.levels import level_columns, levels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ddconsole.report.book import Book, Entry

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""A cell that begins with one of these, behind blanks too, may be taken for a formula by a spreadsheet; the wide ones
in East Asian versions (OWASP, "CSV Injection")."""

JOINERS = "\u200c\u200d"
"""Unseen characters that emoji and scripts need."""

CSV_COLUMNS = (
    "id", "attempt", "sweep", "outcome", "suite", "algorithm", "block_size", "budget", "topk", "window", "args",
    "effective_topk", "verify_width", "prompts", "temperature", "thinking", "engine_version", "measured_on", "boot_s",
    "coding_passed", "coding_total", "pass_at_1", "tok_s_e2e", "tok_s_e2e_low", "tok_s_e2e_high", "tok_s_decode",
    "tau", "tau_low", "tau_high", "tau_n", "step_ms", "step_ms_low", "step_ms_high", "completion_tokens",
    "verify_steps", "ttft_p50_ms", "round_trip_ms", "tpot_p50_ms", "reference", "vs_reference_pct",
    "vs_reference_low_pct", "vs_reference_high_pct", "vs_reference_word", "boots", "failure_cause", "failure_what",
    "profile_digest", "ddconsole", "started_at", "finished_at",
)  # fmt: skip

MD_HEADS = (
    ("id", False), ("outcome", False), ("config", False), ("tok/s e2e", True), ("decode", True), ("τ (ΣC/ΣV)", True),
    ("step ms", True), ("coding", False), ("vs chain", False), ("boots", True),
)  # fmt: skip


def to_csv(book: Book) -> str:
    """One line a result, units in the names, empty cells for what is unknown. Behind the figures at concurrency 1 stand
    those of every level, under pass, level and figure: `throughput.c=4.output_tok_s`."""
    further = level_columns(book.entries)
    columns = dict.fromkeys(column for figures in further.values() for column in figures)
    rows = [csv_row(entry) | further[place] for place, entry in enumerate(book.entries)]
    return _csv((*CSV_COLUMNS, *columns), rows)


def levels_csv(book: Book, naming: Callable[[Mapping[str, Any]], dict[str, Any]]) -> str:
    """One line a concurrency level, its fields under another tool's names; nested ones joined by a dot."""
    rows = []
    for entry in book.entries:
        for name, repeat, level in levels_of(entry):
            head = {"id": entry.item["id"], "attempt": entry.item.get("attempt"), "pass": name, "repeat": repeat}
            rows.append(head | _flat(naming(level)))
    columns = tuple(dict.fromkeys(column for row in rows for column in row)) or ("id", "attempt", "pass", "repeat")
    return _csv(columns, rows)


def levels_json(book: Book, names: str, naming: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Every concurrency level under another tool's names. What is no quantity of theirs is left out."""
    return {
        "schema": 1,
        "names": names,
        "profile": book.profile,
        "exported_at": book.made_at,
        "levels": [
            {"id": entry.item["id"], "attempt": entry.item.get("attempt"), "pass": name, "repeat": repeat}
            | {"concurrency": level["concurrency"], names: naming(level)}
            for entry in book.entries
            for name, repeat, level in levels_of(entry)
        ],
    }


def csv_row(entry: Entry) -> dict[str, Any]:
    """The cells of one result, by column."""
    item, config = entry.item, entry.item.get("config") or {}
    effective, workload = item.get("effective") or {}, item.get("workload") or {}
    coding, versus, failure = item.get("coding") or {}, item.get("vs_reference") or {}, item.get("failure") or {}
    row = {name: item.get(name) for name in CSV_COLUMNS} | {name: config.get(name) for name in CSV_COLUMNS[5:10]}
    row |= {name: workload.get(name) for name in ("prompts", "temperature", "thinking")}
    for figure, (low, high) in entry.intervals.items():
        row |= {f"{figure}_low": round(low, 4), f"{figure}_high": round(high, 4)}
    return row | {
        "suite": suite_of(item),
        "args": " ".join(f"{name}={value}" for name, value in sorted((config.get("args") or {}).items())),
        "effective_topk": effective.get("topk"),
        "verify_width": effective.get("verify_width"),
        "coding_passed": coding.get("passed"),
        "coding_total": coding.get("total"),
        "reference": versus.get("id"),
        "vs_reference_pct": versus.get("delta_pct"),
        "vs_reference_low_pct": versus.get("low_pct"),
        "vs_reference_high_pct": versus.get("high_pct"),
        "vs_reference_word": versus.get("word"),
        "boots": entry.boots,
        "round_trip_ms": round_trip_ms(entry.passes),
        "failure_cause": failure.get("cause"),
        "failure_what": failure.get("what"),
        "profile_digest": entry.recipe.get("profile_digest"),
        "ddconsole": entry.recipe.get("ddconsole"),
    }


def guarded(value: Any) -> Any:
    """A cell that no spreadsheet runs: text that begins like a formula gets an apostrophe; numbers stay numbers."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = "".join(letter if _is_seen(letter) else " " for letter in value)
    begins = value[0] in "\t\r\n" or text.lstrip()[:1] in tuple(FORMULA) if value else False
    return f"'{text}" if begins else text


def _is_seen(letter: str) -> bool:
    """No control, direction mark or line separator; a line end stays, for a cell may have several lines."""
    return letter == "\n" or letter in JOINERS or unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp")


def to_markdown(book: Book) -> str:
    """For a pull request: how the configs stand, drift and step cost, the results, their levels, the cross-checks."""
    lines = [f"### {_md(book.profile)}: {len(book.entries)} results", ""]
    lines += [f"- {_md(standing.text)}" for standing in book.standings]
    lines += [f"- {_md(drift.text)}" for drift in book.drifts if drift.pct_per_hour is not None]
    lines += [f"- {_md(curve.text)}" for curve in book.curves]
    lines += ["", *_md_table(MD_HEADS, map(_md_cells, book.entries)), ""]
    lines.append(
        "Concurrency 1; intervals are 95 %, prompts resampled in pairs, boots counted apart."
        f" ddconsole {_md(book.version)}, {_md(book.made_at)}."
    )
    return "\n".join([*lines, *_md_levels(book), ""])


def _md_levels(book: Book) -> Iterable[str]:
    """What stood at every level, and beside the engine's own figures; nothing where there is none."""
    rates, checks = list(levels.rate_rows(book)), list(levels.check_rows(book))
    if rates:
        yield from ("", "#### Levels", "", *_md_table(levels.RATE_HEADS, rates), "", levels.CAPTION, "")
        yield from (*_md_table(levels.LATENCY_HEADS, levels.latency_rows(book)), "", levels.LATENCY_CAPTION)
    if checks:
        yield from ("", "#### Beside the engine's own figures", "", *_md_table(levels.CHECK_HEADS, checks))


def _md_table(heads: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; columns of numbers stand at the right."""
    names, rule = (name for name, _ in heads), ("--:" if right else "---" for _, right in heads)
    return [f"| {' | '.join(cells)} |" for cells in (names, rule, *(map(_md, row) for row in rows))]


def versus_text(versus: Mapping[str, Any] | None) -> str:
    """`+12.4 % ± 3.1 of E11, faster (1 + 3 boots)`."""
    if not versus or versus.get("delta_pct") is None:
        return "—"
    interval = "" if versus.get("ci_pct") is None else f" ± {versus['ci_pct']:.1f}"
    boots = versus.get("boots")
    counts = f" ({boots[0]} + {boots[1]} boots)" if boots else ""
    word = f", {versus['word']}" if versus.get("word") else ""
    return f"{versus['delta_pct']:+.1f} %{interval} of {versus['id']}{word}{counts}"


def with_interval(entry: Entry, name: str, digits: int) -> str:
    """`149.8 (141.2 to 158.9)`; a dash where it was not measured."""
    value = entry.item.get(name)
    if value is None:
        return "—"
    interval = entry.intervals.get(name)
    bounds = "" if interval is None else f" ({interval[0]:.{digits}f} to {interval[1]:.{digits}f})"
    return f"{value:.{digits}f}{bounds}"


def _md_cells(entry: Entry) -> tuple[str, ...]:
    item = entry.item
    coding = item.get("coding") or {}
    return (
        name_of(item),
        str(item.get("outcome")),
        config_label(item),
        with_interval(entry, "tok_s_e2e", 1),
        with_interval(entry, "tok_s_decode", 1),
        with_interval(entry, "tau", 2),
        with_interval(entry, "step_ms", 1),
        f"{coding['passed']}/{coding['total']}" if coding.get("total") else "—",
        versus_text(item.get("vs_reference")) if not item.get("failure") else str(item["failure"].get("what")),
        str(entry.boots),
    )


def _md(text: str) -> str:
    """Text that stays text in a table cell of Markdown."""
    plain = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    for sign in "\\`*_[]<>|#":
        plain = plain.replace(sign, f"\\{sign}")
    return plain


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([guarded(column) for column in columns])  # a level's label may come from an imported file
    writer.writerows([guarded(row.get(column)) for column in columns] for row in rows)
    return out.getvalue()


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            flat[name] = value
    return flat
