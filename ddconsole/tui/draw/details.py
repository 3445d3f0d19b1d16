"""All that is known of one experiment of the queue, in lines: pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import is_ranked, same_work
from ddconsole.core.plateau import standings
from ddconsole.tui import theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.draw.preview import finding_mark
from ddconsole.tui.formats import about, delta, number
from ddconsole.tui.text import join, styled, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.content import Content

LABEL_CELLS = 12


def details_lines(item: Mapping[str, Any], results: Sequence[Mapping[str, Any]], width: int) -> list[Content]:
    """Config, what the engine makes of it, passes, price, origin, findings with their text, and earlier attempts."""
    config, effective = item.get("config") or {}, item.get("effective") or {}
    lines: list[Content] = []
    if config:
        lines.append(_line("config", join([draw_config.line(config, effective), draw_config.extras(config)], "  ")))
        positions = effective.get("verify_width")
        lines.append(_line("verifies", styled(f"{positions} positions a step" if positions else "")))
    passes = " ".join(item.get("passes") or ())
    repeats = int(item.get("repeats") or 1)
    lines.append(_line("passes", styled(f"{passes}{f' ×{repeats}' if repeats > 1 else ''} ({item.get('suite', '')})")))
    if item.get("estimate_s") is not None:
        source = item.get("estimate_source") or ""
        lines.append(_line("takes", styled(f"{about(float(item['estimate_s']))}, by {source}" if source else "")))
    lines += [
        _line("state", styled(_state(item))),
        _line("origin", styled(_origin(item.get("origin") or {}))),
        _line("added", styled(" ".join(part for part in (_when(item), item.get("author") or "") if part))),
        _line("note", styled(item.get("note") or "")),
    ]
    lines += [_line("finding", finding_mark(finding)) for finding in item.get("findings") or []]
    mine = [one for one in results if one.get("id") == item.get("id")]
    for one in mine:
        lines += [_line("measured", _result(one)), _line("", _versus(one.get("vs_reference")))]
    lines += [_line("standing", styled(text)) for text in _standings(mine, results)]
    return [part for line in lines if line.plain[LABEL_CELLS:].strip() for part in _wrapped(line, width)]


def _wrapped(line: Content, width: int) -> list[Content]:
    """What is longer than the room goes on below its value, not below its label."""
    label, value = line[:LABEL_CELLS], line[LABEL_CELLS:]
    words = [value[start:end] for start, end in _words(value.plain)]
    rows = wrap(words, max(10, width - LABEL_CELLS), " ")
    return [(label if index == 0 else styled(" " * LABEL_CELLS)) + row for index, row in enumerate(rows)]


def _words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def _line(label: str, value: Content) -> Content:
    return styled(label.ljust(LABEL_CELLS), theme.MUTED) + value


def _state(item: Mapping[str, Any]) -> str:
    parts = [str(item.get("state") or "")]
    parts += [f"rank {item['rank']}"] if item.get("rank") else []
    parts += [f"sweep {item['sweep']}"] if item.get("sweep") else []
    parts += [f"starts only if {item['requires']} passes"] if item.get("requires") else []
    return ", ".join(parts)


def _origin(origin: Mapping[str, Any]) -> str:
    text = str(origin.get("text") or origin.get("verb") or "")
    after = origin.get("after")
    return f"{text} (from {after})" if after and after not in text else text


def _when(item: Mapping[str, Any]) -> str:
    return str(item.get("created_at") or "")[:16].replace("T", " ")


def _versus(found: Mapping[str, Any] | None) -> Content:
    """Faster, slower or not distinguishable, in words, with the prompts and the boots behind it."""
    if not found or found.get("delta_pct") is None:
        return styled("")
    boots = found.get("boots")
    counts = f" ({found.get('pairs')} prompts, {boots[0]} + {boots[1]} boots)" if boots else ""
    word = str(found.get("word") or "")
    said = (
        f"{word} {'from' if word.startswith('not') else 'than'} {found.get('id')}: " if word else f"{found.get('id')}: "
    )
    drift = f"; {found['drift']}" if found.get("drift") else ""
    return styled(f"{said}{delta(found['delta_pct'], found.get('ci_pct'))}{counts}{drift}")


def _standings(mine: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who is fastest where this one was measured: one config, or a plateau of several."""
    works = {same_work(one) for one in mine if is_ranked(one)}
    return [found.text for found in standings(results) if same_work(found.best) in works] if works else []


def _result(result: Mapping[str, Any]) -> Content:
    words = [f"attempt {result.get('attempt')} {result.get('outcome')}"]
    if result.get("tok_s_e2e") is not None:
        words.append(f"{number(result['tok_s_e2e'], 1)} tok/s, τ {number(result.get('tau'), 2)}")
    failure = result.get("failure") or {}
    words += [str(failure["what"])] if failure.get("what") else []
    return styled(": ".join(words))
