"""A config as people compare them: knobs always in the same order and at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.tui import theme
from ddconsole.tui.text import join, styled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.content import Content

KNOBS = (("b", "block_size"), ("B", "budget"), ("K", "topk"), ("W", "window"))
"""Short and long names, in the order in which they are always shown."""


def knob_text(config: Mapping[str, Any], effective: Mapping[str, Any] | None, key: str) -> str:
    """A knob's value as the engine uses it; `auto` where it was left to the engine; empty where there is none."""
    asked = config.get(key)
    if left_open(config, effective, key):
        return "auto"
    used = (effective or {}).get(key)
    value = asked if used is None else used
    return "" if value is None else str(value)


def left_open(config: Mapping[str, Any], effective: Mapping[str, Any] | None, key: str) -> bool:
    """The knob was left to the engine: what it takes may be another value in another version."""
    return key in config and config[key] is None and (effective or {}).get(key) is not None


def asked_otherwise(config: Mapping[str, Any], effective: Mapping[str, Any] | None, key: str) -> str:
    """Where the engine's value is not the asked one: ` (cap 6)` for K, ` (asked 2048)`, ` (24)` for `auto`."""
    asked, used = config.get(key), (effective or {}).get(key)
    if left_open(config, effective, key):
        return f" ({used})"
    if asked is None or used is None or asked == used:
        return ""
    return f" (cap {asked})" if key == "topk" else f" (asked {asked})"


def line(
    config: Mapping[str, Any], effective: Mapping[str, Any] | None = None, *, gap: str = "  ", caps: bool = True
) -> Content:
    """`tree b 8 B 12 K 2 (cap 6) W 2048`, names muted and values plain."""
    parts = [styled(config.get("algorithm", ""), theme.STRONG)]
    for name, key in KNOBS:
        value = knob_text(config, effective, key)
        if value:
            otherwise = styled(asked_otherwise(config, effective, key) if caps else "", theme.MUTED)
            parts.append(styled(f"{name} ", theme.MUTED) + styled(value) + otherwise)
    return join(parts, gap)


def extras(config: Mapping[str, Any]) -> Content:
    """Further engine arguments, `page-size=1`."""
    args = config.get("args") or {}
    return styled(" ".join(f"{name}={value}" for name, value in args.items()), theme.MUTED)
