"""SVG elements and frames: text in, text out. Colours are CSS classes: one drawing serves light, dark and paper.

Every colour has a second sign (a shape, a dash), for it is never the only one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.report.scale import Scale

STYLE = """
svg { font: 12px system-ui, sans-serif; max-width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); } svg .muted { fill: var(--muted); }
svg .grid { stroke: var(--grid); stroke-width: 1; } svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .a { stroke: var(--a); fill: var(--a); } svg .b { stroke: var(--b); fill: var(--b); }
svg .c { stroke: var(--c); fill: var(--c); } svg .n { stroke: var(--muted); fill: var(--muted); }
svg .line { fill: none; stroke-width: 2; } svg .dash { stroke-dasharray: 5 4; }
svg .whisker { stroke-width: 1.5; opacity: .6; } svg .hollow { fill: var(--paper); stroke-width: 1.5; }
svg .band { stroke: none; opacity: .18; }
"""
"""What a page that holds these drawings needs, beside the colours `--ink --muted --grid --paper --a --b --c`."""


def clean(text: object) -> str:
    """Text as XML character data: escaped, without characters that XML 1.0 forbids."""
    shown = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in str(text))
    return escape(shown, quote=True)


def number(value: float) -> str:
    """A coordinate in tenths."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: object, *, anchor: str = "start", style: str = "") -> str:
    """Words at a place."""
    css = f' class="{style}"' if style else ""
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{css}>{clean(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line."""
    return f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" class="{style}"/>'


def path(points: Sequence[tuple[float, float]], style: str) -> str:
    """Straight lines from point to point."""
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polyline points="{places}" class="line {style}"/>'


def mark(x: float, y: float, shape: str, style: str, title: object) -> str:
    """A mark with a title for the pointer: `circle`, `square` or `diamond`."""
    if shape == "circle":
        body = f'<circle cx="{number(x)}" cy="{number(y)}" r="5" class="{style}">'
    elif shape == "square":
        body = f'<rect x="{number(x - 4.5)}" y="{number(y - 4.5)}" width="9" height="9" class="{style}">'
    else:
        corners = ((x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y))
        places = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        body = f'<polygon points="{places}" class="{style}">'
    tag = body[1 : body.index(" ")]
    return f"{body}<title>{clean(title)}</title></{tag}>"


def rect(x: float, y: float, width: float, height: float, style: str) -> str:
    """A filled box."""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 1))}" height="{number(max(height, 1))}"'
        f' class="{style}"/>'
    )


@dataclass(slots=True)
class Drawing:
    """A drawing that grows element by element; `title` is what a screen reader says."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def add(self, *parts: str) -> None:
        """Draw on top."""
        self.parts += parts

    def axes(self, across: Scale, up: Scale, x_title: str, y_title: str) -> None:
        """Grid, ticks and titles of a frame whose scales hold pixels."""
        left, right, bottom, top = across.start, across.end, up.start, up.end
        for tick in up.ticks():
            y = up.at(tick)
            self.add(
                line(left, y, right, y, "grid"), text(left - 6, y + 4, up.label(tick), anchor="end", style="muted")
            )
        for tick in across.ticks():
            x = across.at(tick)
            self.add(line(x, bottom, x, bottom + 4, "axis"))
            self.add(text(x, bottom + 18, across.label(tick), anchor="middle", style="muted"))
        self.add(line(left, bottom, right, bottom, "axis"), text(left - 6, top - 10, y_title, style="muted"))
        if x_title:
            self.add(text(right, bottom + 34, x_title, anchor="end", style="muted"))

    def svg(self) -> str:
        """The element."""
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}" width="{number(self.width)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{number(self.height)}" role="img">'
            f"<title>{clean(self.title)}</title>{''.join(self.parts)}</svg>"
        )
