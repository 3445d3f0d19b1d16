"""Levels and cross-checks of results as cells: what the HTML page, Markdown and the columns of the CSV share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.compare import name_of
from ddconsole.core.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ddconsole.report.book import Book, Entry

PLAIN = (
    "output_tok_s", "requests_per_s", "goodput_per_s", "tok_s_e2e", "tok_s_decode", "tau", "step_ms", "requests",
    "failed", "cold", "warm", "round_trip_ms", "client_cpu_share",
)  # fmt: skip
"""Figures of a level that are one number."""

SPREADS = ("ttft_ms", "ttft_warm_ms", "ttfo_ms", "ttft_from_due_ms", "tpot_ms", "itl_ms", "e2e_ms")
"""Figures of a level that are distributions."""

RANKS = ("p50", "p90", "p95", "p99")

NAMES = (("id", False), ("pass", False), ("level", True))

RATE_HEADS = (
    *NAMES, ("requests", True), ("output tok/s", True), ("req/s", True), ("goodput /s", True), ("decode", True),
    ("τ", True), ("step ms", True), ("client CPU", True),
)  # fmt: skip
"""Columns of the table of what levels brought, and whether each is a number."""

LATENCY_HEADS = (*NAMES, *((f"{name} ms", True) for name in ("TTFT", "TTFO", "TPOT", "ITL", "E2E")))
"""Columns of the table of what their requests waited."""

CAPTION = "Every level of every pass and repeat; failed requests enter no figure."

LATENCY_CAPTION = (
    "Latencies are p50 / p90 / p95 / p99."
    " TTFT, TTFO and E2E are of requests that did not find their prompt in the cache, where there are such; the TTFT of"
    " those that did is called warm. A TTFT holds one round trip of the tunnel."
)

CHECK_HEADS = (
    ("id", False), ("pass", False), ("what", False), ("ours", True), ("the engine's", True), ("difference", True),
    ("verdict", False), ("where from, and what it covers", False),
)  # fmt: skip
"""Columns of a table of cross-checks."""

VERDICTS = {True: "agrees", False: "⚠ disagrees", None: "for comparison only"}


def levels_of(entry: Entry) -> Iterable[tuple[str, int, Mapping[str, Any]]]:
    """(pass, repeat, level) of every concurrency level that has a counted request."""
    for name, repeats in entry.passes.items():
        for repeat, summary in enumerate(repeats, start=1):
            for level in summary.get("levels", ()):
                if level.get("requests", 0) > level.get("failed", 0):
                    yield name, repeat, {"round_trip_ms": summary.get("round_trip_ms")} | level


def label_of(level: Mapping[str, Any]) -> str:
    """`c=4`, `2/s poisson`; older results only have their concurrency."""
    return str(level.get("label") or f"c={level['concurrency']}")


def rate_rows(book: Book) -> Iterator[tuple[str, ...]]:
    """The cells under `RATE_HEADS`, a row for each level. What stands in brackets is said beside the figure."""
    for names, level in _named_levels(book):
        yield (*names, *_rate_cells(level))


def latency_rows(book: Book) -> Iterator[tuple[str, ...]]:
    """The cells under `LATENCY_HEADS`, a row for each level."""
    for names, level in _named_levels(book):
        yield (*names, _ttft(level), *(_ranks(level.get(key)) for key in ("ttfo_ms", "tpot_ms", "itl_ms", "e2e_ms")))


def _named_levels(book: Book) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for entry in book.entries:
        for name, repeat, level in levels_of(entry):
            yield (name_of(entry.item), f"{name} {repeat}", label_of(level)), level


def _rate_cells(level: Mapping[str, Any]) -> tuple[str, ...]:
    failed = f" ({level['failed']} failed)" if level.get("failed") else ""
    share = level.get("client_cpu_share")
    client = "—" if share is None else f"{share:.0%}" + (" ⚠ near its limit" if level.get("client_saturated") else "")
    return (
        f"{level['requests']}{failed}",
        figure(level.get("output_tok_s"), 1),
        figure(level.get("requests_per_s"), 2),
        figure(level.get("goodput_per_s"), 2),
        figure(level.get("tok_s_decode"), 1),
        figure(level.get("tau"), 2),
        figure(level.get("step_ms"), 1),
        client,
    )


def _ttft(level: Mapping[str, Any]) -> str:
    """With its round trip, and the warm requests' where those are apart."""
    warm, trip = level.get("ttft_warm_ms"), level.get("round_trip_ms")
    apart = warm and level.get("prefix") != "warm"
    beside = [f"warm {_ranks(warm)}"] if apart else ["warm"] if warm else []
    beside += [] if trip is None else [f"round trip {trip:.1f}"]
    return " ".join((_ranks(level.get("ttft_ms")), *(f"({one})" for one in beside)))


def check_rows(book: Book) -> Iterator[tuple[str, ...]]:
    """The cells under `CHECK_HEADS`: the engine's own figures beside ours."""
    for entry in book.entries:
        for name, repeats in entry.passes.items():
            for repeat, summary in enumerate(repeats, start=1):
                for one in summary.get("cross_check") or ():
                    yield (name_of(entry.item), f"{name} {repeat}", *_check_cells(one))


def _check_cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    off = one.get("off_pct")
    return (
        str(one["name"]),
        f"{one['ours']:.6g}",
        f"{one['theirs']:.6g}",
        "—" if off is None else f"{round(off, 1) + 0.0:+.1f} %",  # no -0.0
        VERDICTS[one["agrees"]],
        f"{one['source']}: {one['scope']}",
    )


def level_columns(entries: Sequence[Entry]) -> dict[int, dict[str, float]]:
    """By the place of each entry, its levels' figures by column: `throughput.c=4.ttft_ms.p99`.

    Of several repeats each figure is their median, as a result's own latencies are.
    """
    return {place: _columns_of(entry) for place, entry in enumerate(entries)}


def _columns_of(entry: Entry) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for name, _, level in levels_of(entry):
        for figure_name, value in _figures(level):
            found.setdefault(f"{name}.{label_of(level)}.{figure_name}", []).append(value)
    return {column: round(percentile(values, 0.5) or 0.0, 4) for column, values in found.items()}


def _figures(level: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name in PLAIN:
        if level.get(name) is not None:
            yield name, level[name]
    for name in SPREADS:
        for rank in RANKS:
            value = (level.get(name) or {}).get(rank)
            if value is not None:
                yield f"{name}.{rank}", value


def figure(value: float | None, digits: int) -> str:
    """A number, or a dash where it is not known."""
    return "—" if value is None else f"{value:.{digits}f}"


def _ranks(spread: Mapping[str, Any] | None) -> str:
    return " / ".join(figure(spread.get(rank), 1) for rank in RANKS) if spread else "—"
