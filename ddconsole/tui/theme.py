"""The console's own looks, one dark and one light, each with one accent. Colours are named here and nowhere else.

Code and `.tcss` speak of tokens. `$muted`, `$faint` and their like are ours; a theme without them takes
`VARIABLE_DEFAULTS`.
"""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

ACCENT: Final = "$accent"
MUTED: Final = "$muted"
FAINT: Final = "$faint"
GOOD: Final = "$good"
WARN: Final = "$caution"
BAD: Final = "$bad"
STRONG: Final = "bold $foreground"
DIM: Final = "$dimmed"
TRACK: Final = "$track"
TRACE: Final = "$trace"

DARK = Theme(
    name="ddconsole-dark",
    primary="#7cb7ff",
    secondary="#9aa7c4",
    accent="#7cb7ff",
    success="#8fd6a0",
    warning="#f2c46d",
    error="#ff7a85",
    foreground="#d7dce8",
    background="#0f1219",
    surface="#151924",
    panel="#1c2230",
    dark=True,
    variables={
        "muted": "#8c96ad",
        "faint": "#39425a",
        "dimmed": "#5a657e",
        "track": "#39425a",
        "trace": "#5b86bd",
        "good": "#8fd6a0",
        "caution": "#f2c46d",
        "bad": "#ff7a85",
        "cursor": "#22304a",
        "footer-key-foreground": "#7cb7ff",
        "input-selection-background": "#7cb7ff 35%",
        "scrollbar": "#2a3246",
        "scrollbar-hover": "#39425a",
        "scrollbar-active": "#7cb7ff",
        "scrollbar-background": "#0f1219",
    },
)

LIGHT = Theme(
    name="ddconsole-light",
    primary="#1f5fc4",
    secondary="#56627c",
    accent="#1f5fc4",
    success="#1d7a3c",
    warning="#8f5b00",
    error="#b81f36",
    foreground="#1c2230",
    background="#fafbfd",
    surface="#f1f3f8",
    panel="#e7ebf3",
    dark=False,
    variables={
        "muted": "#5a6478",
        "faint": "#b9c1d1",
        "dimmed": "#98a1b3",
        "track": "#c3cad8",
        "trace": "#6f95d8",
        "good": "#1d7a3c",
        "caution": "#8f5b00",
        "bad": "#b81f36",
        "cursor": "#d6e4fb",
        "footer-key-foreground": "#1f5fc4",
        "scrollbar": "#c9d0de",
        "scrollbar-hover": "#b9c1d1",
        "scrollbar-active": "#1f5fc4",
        "scrollbar-background": "#fafbfd",
    },
)

THEMES = (DARK, LIGHT)

VARIABLE_DEFAULTS: dict[str, str] = {
    name: DARK.variables[name]
    for name in ("muted", "faint", "dimmed", "track", "trace", "good", "caution", "bad", "cursor")
}
"""Our tokens for a theme that does not know them."""
