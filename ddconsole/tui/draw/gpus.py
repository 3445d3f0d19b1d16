"""All cards in one picture: as much of each as the room allows, from a full row down to a strip of heat."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textual.content import Content

from ddconsole.tui import theme
from ddconsole.tui.formats import DASH, bar, number, percent, share, spark
from ddconsole.tui.text import fit_content, join, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Card = Mapping[str, Any]
    History = Mapping[int, Sequence[float | None]]

MIB_PER_GIB = 1024

HOT_C = 85.0
"""A temperature from which a card is marked."""

GAP = "  "
"""Between two columns of cards."""

MOST_SPARK, MOST_BAR = 10, 16


@dataclass(frozen=True, slots=True)
class Shape:
    """Cells that one card's parts get; 0 or False leaves a part out. A spark stands right before its number."""

    spark: int = 0
    bar: int = 0
    memory: bool = False
    power: bool = False
    temperature: bool = False

    @property
    def width(self) -> int:
        """Cells of a card's row."""
        optional = [(self.memory, MEMORY), (self.power, POWER), (self.temperature, TEMPERATURE)]
        parts = [INDEX, self.spark + NUMBER, self.bar + NUMBER + bool(self.bar)]
        parts += [cells for shown, cells in optional if shown]
        return sum(parts) + len(parts) - 1


INDEX, NUMBER, MEMORY, POWER, TEMPERATURE = 2, 4, 7, 4, 3
"""Cells of an index, a percentage, GiB, watts and degrees."""

SHAPES = (
    Shape(spark=8, bar=6, memory=True, power=True, temperature=True),
    Shape(spark=5, bar=5, power=True, temperature=True),
    Shape(spark=3, bar=3, temperature=True),
    Shape(spark=1, temperature=True),
    Shape(spark=1),
)
"""From the fullest to the barest; the first that fits is taken, and grows into the room that is left."""


def gpus(cards: Sequence[Card], history: History, width: int, height: int) -> list[Content]:
    """The lines of the panel, at most `height`, each at most `width` cells."""
    if not cards or width <= 0 or height <= 0:
        return []
    found = layout(len(cards), width, height)
    if found is None:
        return strip(cards, width)[:height]
    columns, shape = found
    rows = math.ceil(len(cards) / columns)
    body = [join([card_row(card, history, shape) for card in cards[row::rows][:columns]], GAP) for row in range(rows)]
    if rows < height:
        heads = [head(shape)] * min(columns, len(cards))
        body.insert(0, join(heads, GAP))
    return (body + memory_note(cards, width))[:height]


def memory_note(cards: Sequence[Card], width: int) -> list[Content]:
    """Whose memory it is where cards have none of their own; a line, or none."""
    source = next((card["memory_source"] for card in cards if card.get("memory_source")), None)
    return [] if source is None else [fit_content(styled(f"unified memory: the host's ({source})", theme.MUTED), width)]


def layout(count: int, width: int, height: int) -> tuple[int, Shape] | None:
    """Columns of cards and the shape of each; None where not even the barest shape has room."""
    for shape in SHAPES:
        for columns in range(1, count + 1):
            cell = (width - len(GAP) * (columns - 1)) // columns
            if shape.width > cell:
                break
            if math.ceil(count / columns) <= height:
                return columns, grown(shape, cell)
    return None


def grown(shape: Shape, cell: int) -> Shape:
    """The shape with its spark and bar grown into `cell` cells."""
    spare = cell - shape.width
    for_bar = min(spare // 2, MOST_BAR - shape.bar) if shape.bar else 0
    for_spark = min(spare - for_bar, MOST_SPARK - shape.spark)
    return replace(shape, spark=shape.spark + for_spark, bar=shape.bar + for_bar)


def head(shape: Shape) -> Content:
    """Names over the columns, placed as the numbers are."""
    parts = ["#".rjust(INDEX), "util".rjust(shape.spark + NUMBER) if shape.spark < 4 else _over("util", shape.spark)]
    parts.append(_over("mem", shape.bar + 1) if shape.bar else "mem".rjust(NUMBER))
    parts += ["GiB".rjust(MEMORY)] if shape.memory else []
    parts += ["W".rjust(POWER)] if shape.power else []
    parts += ["°C".rjust(TEMPERATURE)] if shape.temperature else []
    return styled(" ".join(parts), theme.MUTED)


def _over(name: str, cells: int) -> str:
    """A name that begins where the picture before the number begins."""
    return name.ljust(cells + NUMBER)


def card_row(card: Card, history: History, shape: Shape) -> Content:
    """One card in exactly the cells of its shape."""
    index, used = int(card.get("index", 0)), memory_share(card)
    past = history.get(index) or [card.get("utilization_pct")]
    trace = Content.styled(spark(past, shape.spark), theme.TRACE)
    parts = [
        styled(str(index).rjust(INDEX), theme.MUTED),
        trace + _number(percent(card.get("utilization_pct")), NUMBER),
        _memory_bar(used, shape.bar) + _number(percent(None if used is None else used * 100), NUMBER),
    ]
    if shape.memory:
        parts.append(_number(_gib(card), MEMORY))
    if shape.power:
        parts.append(_number(number(card.get("power_w")), POWER))
    if shape.temperature:
        parts.append(_temperature(card.get("temperature_c")))
    return join(parts, " ")


def _memory_bar(used: float | None, cells: int) -> Content:
    if not cells:
        return Content("")
    filled, rest = bar(used, cells)
    return Content.styled(filled, theme.ACCENT) + Content.styled(rest, theme.TRACK) + Content(" ")


def _gib(card: Card) -> str:
    """Used of total, `84/96`."""
    used, total = card.get("memory_used_mib"), card.get("memory_total_mib")
    if used is None and total is None:
        return DASH
    return "/".join(number(None if mib is None else mib / MIB_PER_GIB) for mib in (used, total))


def _number(text: str, width: int) -> Content:
    return styled(text.rjust(width), theme.MUTED if text == DASH else "")


def _temperature(value: float | None) -> Content:
    hot = value is not None and value >= HOT_C
    return styled(f"{'!' if hot else ''}{number(value)}".rjust(TEMPERATURE), theme.WARN if hot else _tone(value))


def _tone(value: float | None) -> str:
    return theme.MUTED if value is None else ""


def memory_share(card: Card) -> float | None:
    """Used of total, 0 to 1; None where either is unknown."""
    return share(card.get("memory_used_mib"), card.get("memory_total_mib"))


def strip(cards: Sequence[Card], width: int) -> list[Content]:
    """One cell a card: utilization and memory as heights, with the extremes in numbers."""
    utilization = [card.get("utilization_pct") for card in cards]
    memory = [None if (used := memory_share(card)) is None else used * 100 for card in cards]
    hottest = _most([card.get("temperature_c") for card in cards])
    power = [value for card in cards if (value := card.get("power_w")) is not None]
    cells = min(len(cards), max(width - 26, 4))
    first = _strip_line("util", utilization, cells, percent)
    second = _strip_line("mem", memory, cells, percent)
    if power:
        first += styled(f"  {sum(power):.0f} W", theme.MUTED)
    if hottest is not None:
        second += Content("  ") + _temperature(hottest) + styled(" °C", theme.MUTED)
    return [fit_content(first, width), fit_content(second, width)]


def _strip_line(name: str, values: Sequence[float | None], cells: int, form: Any) -> Content:
    shown = values[:cells]
    return (
        styled(f"{name:<5}", theme.MUTED)
        + Content.styled(spark(shown, len(shown)), theme.TRACE)
        + styled(f" max {form(_most(values)):>4}")
    )


def _most(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None
