"""The plots of a report: speed over acceptance, step cost over budget, each config against its reference, and drift."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import is_ranked
from ddconsole.core.compare import name_of
from ddconsole.core.drift import hour_of, sessions
from ddconsole.core.plateau import config_label
from ddconsole.report import svg
from ddconsole.report.scale import Scale, scale_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.stepcost import CostCurve
    from ddconsole.report.book import Book, Entry

SHAPES = {"tree": ("circle", "a"), "chain": ("square", "b"), "off": ("diamond", "c")}
"""Shape and colour of an algorithm's marks."""

WIDTH = 720.0


def speed_over_tau(entries: Sequence[Entry]) -> str | None:
    """tok/s end to end over τ at concurrency 1, with 95 % whiskers; None with fewer than two results."""
    shown = [entry for entry in entries if is_ranked(entry.item) and entry.item.get("tau")]
    if len(shown) < 2:
        return None
    drawing = svg.Drawing(WIDTH, 380, "tok/s end to end over acceptance length")
    across = scale_of(_with_bounds(shown, "tau"), 60, WIDTH - 40)
    up = scale_of(_with_bounds(shown, "tok_s_e2e"), 320, 40)
    drawing.axes(across, up, "τ (ΣC/ΣV)", "tok/s e2e at c=1")
    for entry in shown:
        x, y = across.at(entry.item["tau"]), up.at(entry.item["tok_s_e2e"])
        shape, colour = _look(entry.item)
        for name, scale, flat in (("tau", across, True), ("tok_s_e2e", up, False)):
            drawing.add(*_whisker(entry, name, scale, y if flat else x, colour, flat=flat))
        title = f"{name_of(entry.item)} {config_label(entry.item)}: {entry.item['tok_s_e2e']:.1f} tok/s"
        drawing.add(svg.mark(x, y, shape, f"{colour} hollow", f"{title}, τ {entry.item['tau']:.2f}"))
        drawing.add(svg.text(x + 8, y - 7, name_of(entry.item)))
    drawing.add(*_legend(60, 372))
    return drawing.svg()


def step_cost(curve: CostCurve) -> str:
    """Step time and τ over the budget, and what they come to, joined by straight lines through the measured points."""
    drawing = svg.Drawing(WIDTH, 560, f"step cost of {curve.label}")
    budgets = [float(point.budget) for point in curve.points] + [float(one.budget) for one in curve.estimates]
    across = scale_of(budgets, 60, WIDTH - 40)
    steps = [(float(p.budget), p.step_ms.value, p.step_ms.low, p.step_ms.high) for p in curve.points]
    taus = [(float(p.budget), p.tau.value, p.tau.low, p.tau.high) for p in curve.points]
    _curve(drawing, across, steps, (150, 40), "step time, ms", "b", "square")
    _curve(drawing, across, taus, (320, 210), "τ (ΣC/ΣV)", "a", "circle")
    rates = [point.rate for point in curve.points] + [bound for one in curve.estimates for bound in (one.low, one.high)]
    up = scale_of(rates, 500, 380)
    drawing.axes(
        across, up, "budget B (verify width B + 1)", "tok/s decode ≈ τ / step time; ◇ estimate with its spread"
    )
    places = [(across.at(point.budget), up.at(point.rate)) for point in curve.points]
    drawing.add(svg.path(places, "c"))
    for point, (x, y) in zip(curve.points, places, strict=True):
        drawing.add(svg.mark(x, y, "circle", "c", f"B {point.budget}: {point.rate:.1f} tok/s decode"))
    for one in curve.estimates:
        x = across.at(one.budget)
        drawing.add(svg.rect(x - 5, up.at(one.high), 10, up.at(one.low) - up.at(one.high), "band c"))
        drawing.add(svg.mark(x, up.at(one.rate), "diamond", "c hollow", one.text))
    return drawing.svg()


def against_reference(entries: Sequence[Entry]) -> str | None:
    """Each config's difference to the chain it has to beat, with its 95 % interval; None where nothing was compared."""
    shown = [entry for entry in entries if _delta(entry.item) is not None]
    if not shown:
        return None
    height = 70 + 26 * len(shown)
    drawing = svg.Drawing(WIDTH, height, "difference to the reference chain")
    bounds = [0.0] + [value for entry in shown for value in _bounds(entry.item["vs_reference"])]
    across = scale_of(bounds, 250, WIDTH - 40)
    for tick in across.ticks():
        drawing.add(svg.line(across.at(tick), 30, across.at(tick), height - 34, "grid"))
        drawing.add(svg.text(across.at(tick), height - 16, f"{across.label(tick)} %", anchor="middle", style="muted"))
    drawing.add(svg.line(across.at(0), 24, across.at(0), height - 34, "axis"))
    drawing.add(svg.text(across.at(0), 16, "as fast as its reference chain", anchor="middle", style="muted"))
    for row, entry in enumerate(shown):
        drawing.add(*_forest_row(entry.item, across, 44 + 26 * row))
    return drawing.svg()


def drift(book: Book) -> str | None:
    """tok/s of every config that was measured more than once, over the hours of its session; None where none was."""
    lines = [line for session in sessions(entry.item for entry in book.entries) for line in _repeats(session)]
    if not lines:
        return None
    drawing = svg.Drawing(WIDTH, 300, "repeated configs over the hours of a session")
    across = scale_of([hour for _, points in lines for hour, _ in points], 60, WIDTH - 120)
    up = scale_of([rate for _, points in lines for _, rate in points], 240, 40)
    drawing.axes(across, up, "hours since the session's first result", "tok/s e2e")
    for index, (label, points) in enumerate(lines):
        colour = "abc"[index % 3]
        places = [(across.at(hour), up.at(rate)) for hour, rate in points]
        drawing.add(svg.path(places, f"{colour} dash"))
        drawing.add(*(svg.mark(x, y, "circle", colour, label) for x, y in places))
        drawing.add(svg.text(places[-1][0] + 9, places[-1][1] + 4, label))
    return drawing.svg()


def _repeats(session: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[float, float]]]]:
    """(label, points of hour and tok/s) of each config that stands in the session more than once."""
    from ddconsole.core.boots import same_engine

    begun = min(hour_of(item) or 0.0 for item in session)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for item in session:
        groups.setdefault(same_engine(item), []).append(item)
    return [
        (name_of(group[0]), [((hour_of(item) or 0.0) - begun, float(item["tok_s_e2e"])) for item in group])
        for group in groups.values()
        if len(group) > 1
    ]


def _curve(
    drawing: svg.Drawing,
    across: Scale,
    points: Sequence[tuple[float, float, float | None, float | None]],
    pixels: tuple[float, float],
    title: str,
    colour: str,
    shape: str,
) -> None:
    """One measured curve with its whiskers, in its own frame."""
    values = [value for _, *found in points for value in found if value is not None]
    up = scale_of(values, *pixels, wanted=4)
    drawing.axes(across, up, "", title)
    drawing.add(svg.path([(across.at(budget), up.at(value)) for budget, value, _, _ in points], colour))
    for budget, value, low, high in points:
        x = across.at(budget)
        if low is not None and high is not None:
            drawing.add(svg.line(x, up.at(low), x, up.at(high), f"{colour} whisker"))
        drawing.add(svg.mark(x, up.at(value), shape, f"{colour} hollow", f"B {budget:.0f}: {value:.2f}"))


def _forest_row(item: Mapping[str, Any], across: Scale, y: float) -> list[str]:
    versus = item["vs_reference"]
    low, value, high = _bounds(versus)
    told = versus.get("word") in ("faster", "slower")
    colour = "n" if not told else "a" if versus["word"] == "faster" else "b"
    shape, _ = _look(item)
    parts = [svg.text(0, y + 4, f"{name_of(item)} {config_label(item)}"[:40])]
    if high > low:
        parts.append(svg.line(across.at(low), y, across.at(high), y, f"{colour} whisker"))
    title = f"{value:+.1f} % of {versus['id']}, {versus.get('word') or 'no interval'}"
    return [*parts, svg.mark(across.at(value), y, shape, colour if told else f"{colour} hollow", title)]


def _whisker(entry: Entry, name: str, scale: Scale, other: float, colour: str, *, flat: bool) -> list[str]:
    interval = entry.intervals.get(name)
    if interval is None:
        return []
    low, high = (scale.at(bound) for bound in interval)
    return [svg.line(low, other, high, other, f"{colour} whisker")] if flat else [
        svg.line(other, low, other, high, f"{colour} whisker")
    ]  # fmt: skip


def _legend(x: float, y: float) -> list[str]:
    parts = []
    for name, (shape, colour) in SHAPES.items():
        parts += [svg.mark(x, y - 4, shape, f"{colour} hollow", name), svg.text(x + 10, y, name, style="muted")]
        x += 70
    return parts


def _look(item: Mapping[str, Any]) -> tuple[str, str]:
    return SHAPES.get(str((item.get("config") or {}).get("algorithm")), ("circle", "n"))


def _with_bounds(entries: Sequence[Entry], name: str) -> list[float]:
    values = [float(entry.item[name]) for entry in entries]
    return values + [bound for entry in entries for bound in entry.intervals.get(name, ()) if math.isfinite(bound)]


def _delta(item: Mapping[str, Any]) -> float | None:
    versus = item.get("vs_reference") or {}
    return versus.get("delta_pct") if is_ranked(item) else None


def _bounds(versus: Mapping[str, Any]) -> tuple[float, float, float]:
    """(low, value, high); the value thrice where there is no interval."""
    value = float(versus["delta_pct"])
    low, high = versus.get("low_pct"), versus.get("high_pct")
    return (value if low is None else float(low)), value, (value if high is None else float(high))
