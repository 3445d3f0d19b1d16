"""Text that does harm when it is passed on as it came: one corpus for every screen, table, message, export and file."""

from __future__ import annotations

import re

HOSTILE: dict[str, str] = {
    "clipboard": "\x1b]52;c;cm0gLXJmIH4K\x07end",
    "clipboard, other end": "\x1b]52;c;cm0gLXJmIH4K\x1b\\end",
    "title": "\x1b]0;owned\x07end",
    "title, never closed": "\x1b]2;owned",
    "hyperlink": "\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\ me",
    "cursor": "a\x1b[2J\x1b[1;1H\x1b[31mmoved\x1b[?1049l\x1b[6nend",
    "device": "\x1bP$qm\x1b\\\x1b_Gf=32;AAAA\x1b\\\x1bcend",
    "c1 csi": "\x9b2J\x9b31mend",
    "c1 osc": "\x9d52;c;aGk=\x9cend \x90dcs\x9c",
    "controls": "a\x00b\x07c\x08\x08d\x0be\x0cf\x0e\x0fg\x7f",
    "new lines": "one\r\ntwo\nthree\rfour\x85five\u2028six\u2029seven",
    "bidi": "safe\u202egnp.exe\u202c \u2066a\u2069 \u200f\u200e\u061c",
    "zero width": "pay\u200bload\ufeff\u2060\u00ad\U000e0041\U000e0042",
    "rich markup": "[bold red]x[/] [/] [link=https://evil.example]y[/link] [@click=app.quit]z[/]",
    "rank": "[TP0] list[int] [/bin/sh] \\[x] $error {{braces}} %s",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;]]>",
    "markdown": "| a | b |\n|---|\n# head ![x](https://evil.example/i.png) <b>`x`</b> [a](javascript:x)",
    "formula": "=cmd|' /C calc'!A0",
    "formula, plus": "+1+cmd|' /C calc'!A0",
    "formula, minus": "-2+3",
    "formula, at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula behind blanks": " \t=HYPERLINK(\"https://evil.example\")",
    "formula, wide": "\uff1d1+1",
    "csv": 'a,"b",\n"=1+1"\r\n=2',
    "shell": "$(reboot) `reboot` ; reboot & | 'x' \"y\" \\ ~ * ? !x",
    "path": "../../../etc/passwd\x00.png",
    "surrogate": "\ud800 alone \udfff",
    "wide": "漢字 table 🧪👩\u200d🔬 e\u0301\u0301\u0301 ﷽",
    "long line": "x" * 50_000,
    "long word of marks": "e" + "\u0301" * 5_000,
    "empty": "",
}  # fmt: skip
"""Name to text."""

_HARMFUL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f"  # C0 and C1, the tab apart
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # direction, lines, and what nobody sees
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def harmful(text: str, *, lines: bool = False) -> list[str]:
    """Characters of `text` that may not reach a terminal, as code points; `lines` allows line ends."""
    found = sorted(set(_HARMFUL.findall(text)) - ({"\n"} if lines else set()))
    return [f"U+{ord(char):04X}" for char in found]
