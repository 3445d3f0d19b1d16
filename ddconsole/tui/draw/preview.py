"""What a line of the queue's language would come to, in lines: pure."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from ddconsole.tui import theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.formats import about, number
from ddconsole.tui.text import fit_content, join, styled, wrap, wrap_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.content import Content

    from ddconsole.core.spec import Duplicate, Planned
    from ddconsole.runner.intents import Plan
    from ddconsole.runner.preview import Control

    Describe = Callable[[str], str]

INDENT = "    "
DERIVED_LINES = 4
"""Lines that one note on a value may take."""
STATE_SIGNS = {"held": "‖ held", "running": "▶ running", "removed": "✘ removed", "idea": "idea"}


def preview_lines(plan: Plan, width: int, room: int, describe: Describe) -> list[Content]:
    """Headline, experiments with their derivation, price, doubles, and the control that is missing.

    At most `room` lines: of many experiments the first ones, and how many more there are.
    `describe` gives what is known of an experiment that is there already, `139.0 tok/s, τ 4.61`.
    """
    head = _headline(plan, width)
    tail = _notes(plan, width) + _control(plan.preview.control, width)
    items = _items(plan, width, describe)
    left = max(1, room - len(head) - len(tail))
    if sum(map(len, items)) > left:
        return [*head, *_shortened(plan, width, left), *tail][:room]
    return [*head, *chain.from_iterable(items), *tail][:room]


def _shortened(plan: Plan, width: int, left: int) -> list[Content]:
    """A line each, a double marked at its end; where that is too much as well, how many more there are."""
    _, doubles = _beside(plan)
    pairs = list(zip_longest(_in_order(plan), doubles))
    bare = [_short_item(item, double, width) for item, double in pairs if item is not None]
    if len(bare) <= left:
        return bare
    unseen = pairs[left - 1 :]
    there = sum(double is not None for _, double in unseen)
    text = f"{INDENT}… and {len(unseen)} more" + (f", {there} of them there already" if there else "")
    return [*bare[: left - 1], styled(text, theme.WARN if there else theme.MUTED)]


def _short_item(item: Mapping[str, Any], double: Duplicate | None, width: int) -> Content:
    line = _item_line(item)
    if double is None:
        return fit_content(line, width).rstrip()
    mark = styled(f"= {double.id} {double.state}", theme.WARN)
    return join([fit_content(line, min(line.cell_length, width - mark.cell_length - 2)), mark], "  ")


def _headline(plan: Plan, width: int) -> list[Content]:
    """What enter would do, and what it costs."""
    seen = plan.preview
    parts = [styled(_deed(plan), "bold")]
    if seen.command.grid:
        parts.append(styled(seen.command.grid))
    if seen.command.drafts and any(item.config is not None for item in seen.items):
        parts.append(styled(about(seen.total_s), theme.MUTED))
        parts.append(styled("1 engine start" if seen.boots == 1 else f"{seen.boots} engine starts", theme.MUTED))
    elif seen.changes_price:
        parts.append(styled(f"{about(abs(seen.more_s))} {'more' if seen.more_s > 0 else 'less'}", theme.MUTED))
    lines = wrap(parts, width - 2, " · ")
    return [
        fit_content(styled("→ " if index == 0 else "  ", theme.ACCENT) + line, width).rstrip()
        for index, line in enumerate(lines)
    ]


def _deed(plan: Plan) -> str:
    """The command in words, with how many experiments it makes."""
    seen = plan.preview
    count = len(seen.command.drafts)
    if count:
        where = {"next": " in front", "after": " behind it", "after!": " behind it, if it passes"}
        noun = "idea" if seen.command.verb == "idea" else "experiment"
        return f"{count} {noun}{'' if count == 1 else 's'}{where.get(seen.command.verb, '')}"
    if plan.undoes:
        return f"{seen.command.verb}: {plan.undoes}"
    return seen.command.text


def _items(plan: Plan, width: int, describe: Describe) -> list[list[Content]]:
    """Each experiment: its line, then how its values came about and the work that is the same."""
    planned, doubles = _beside(plan)
    return [
        _item(item, one, double, width, describe)
        for item, one, double in zip_longest(_in_order(plan), planned, doubles)
        if item is not None
    ]


def _in_order(plan: Plan) -> Sequence[dict[str, Any]]:
    """New ones by their number, as the command made them; others as they stand in the queue."""
    if plan.preview.command.drafts:
        return sorted(plan.items, key=lambda item: int(str(item["id"])[1:]))
    return plan.items


def _beside(plan: Plan) -> tuple[Sequence[Planned | None], Sequence[Duplicate | None]]:
    """The derivation and the double of each experiment of `_in_order`."""
    seen = plan.preview
    if seen.command.drafts:
        return seen.command.preview, seen.doubles
    by_id = {one.source: (one, double) for one, double in zip(seen.command.preview, seen.doubles, strict=False)}
    pairs = [by_id.get(item["id"], (None, None)) for item in plan.items]
    return [one for one, _ in pairs], [double for _, double in pairs]


def _item(
    item: Mapping[str, Any], planned: Planned | None, double: Duplicate | None, width: int, describe: Describe
) -> list[Content]:
    lines = [fit_content(_item_line(item), width)]
    room = width - len(INDENT)
    derived = _derived(planned) if planned is not None else []
    lines += [styled(INDENT) + line for line in wrap(_no_wider(derived, room), room, " · ")]
    if double is not None:
        lines.append(fit_content(styled(INDENT) + _double(double, describe), width))
    return lines


def _no_wider(parts: Sequence[Content], width: int) -> list[Content]:
    """The parts, of which one that is wider than a line is broken at its words."""
    return [
        piece
        for part in parts
        for piece in (
            [part]
            if part.cell_length <= width
            else [styled(line, theme.MUTED) for line in wrap_words(part.plain, width, DERIVED_LINES)]
        )
    ]


def _item_line(item: Mapping[str, Any]) -> Content:
    parts = [styled(str(item.get("id")).ljust(4), theme.STRONG)]
    if item.get("config"):
        parts.append(draw_config.line(item["config"], item.get("effective"), gap=" "))
        parts.append(draw_config.extras(item["config"]))
    else:
        parts.append(styled(item.get("note") or "", theme.MUTED))
    parts.append(styled(STATE_SIGNS.get(str(item.get("state")), ""), theme.MUTED))
    repeats = int(item.get("repeats") or 1)
    parts.append(styled(f"×{repeats}" if repeats > 1 else "", theme.MUTED))
    parts.append(styled(f"“{item['note']}”" if item.get("config") and item.get("note") else "", theme.MUTED))
    if item.get("estimate_s") is not None and item.get("state") == "queued":
        parts.append(styled(about(float(item["estimate_s"])), theme.MUTED))
    parts += [finding_mark(finding) for finding in item.get("findings") or [] if finding.get("level") != "note"]
    return join([part for part in parts if part.cell_length], "  ")


def finding_mark(finding: Mapping[str, Any]) -> Content:
    """A finding with its sign."""
    glyph, style = {"block": ("✘", theme.BAD), "warn": ("⚠", theme.WARN)}.get(
        str(finding.get("level")), ("·", theme.MUTED)
    )
    return styled(f"{glyph} {finding.get('text', '')}", style)


def _derived(planned: Planned) -> list[Content]:
    """How the values came about, effective K among them; the verify width before and after; the density."""
    parts = [styled(note, theme.MUTED) for note in planned.notes]
    before, after = planned.before, planned.effective
    if before is not None and after is not None and before.verify_width != after.verify_width:
        parts.append(styled(f"N {before.verify_width} → {after.verify_width}", theme.MUTED))
    density = None if planned.draft.config is None else planned.draft.config.density
    if parts and density is not None:
        parts.append(styled(f"B/L {number(density, 2)}", theme.MUTED))
    return parts


def _notes(plan: Plan, width: int) -> list[Content]:
    """What else there is to say: what `after` means, what an undo could not bring back."""
    said = [*plan.preview.command.notes, *([plan.preview.after.notice] if plan.preview.after.notice else [])]
    return [
        styled("· " if index == 0 else "  ", theme.MUTED) + styled(line, theme.MUTED)
        for note in said
        for index, line in enumerate(wrap_words(note, width - 2, 2))
    ]


def standing_lines(plan: Plan, width: int, describe: Describe) -> list[Content]:
    """Of a single experiment: its price, findings, and the same work that is there already."""
    seen = plan.preview
    boot = "it starts an engine" if seen.boots else "the engine before it is kept"
    lines = [styled(f"{about(seen.total_s)}, {boot}", theme.MUTED)] if plan.items else []
    for item in plan.items[:1]:
        lines += [finding_mark(finding) for finding in item.get("findings") or []]
    lines += [_double(double, describe) for double in seen.doubles if double is not None]
    if seen.control is not None and seen.control.draft.config is not None:
        lines.append(styled(f"⚠ its control, {seen.control.draft.config.label()}, was never measured here", theme.WARN))
    return [fit_content(line, width).rstrip() for line in lines]


def _double(double: Duplicate, describe: Describe) -> Content:
    known = describe(double.id)
    return styled(f"= {double.id} {double.state}" + (f": {known}" if known else ""), theme.WARN)


def _control(control: Control | None, width: int) -> list[Content]:
    """The offer of the chain that has to be beaten."""
    if control is None or control.draft.config is None:
        return []
    what = f"never measured here: {control.draft.config.label()}, which a tree has to beat"
    offer = f"^o queues it in front as well, {about(control.seconds)}"
    return [
        fit_content(styled("⚠ ", theme.WARN) + styled(what, theme.WARN), width).rstrip(),
        fit_content(styled("  → ", theme.ACCENT) + styled(offer), width).rstrip(),
    ]


def refusal_lines(
    what: str, advice: str, column: int | None, idea: str | None, width: int, *, quiet: bool = False
) -> list[Content]:
    """A caret under the column, the reason, and what to do. `quiet` while it is still being typed."""
    tone = theme.MUTED if quiet else theme.BAD
    lines = []
    if column is not None and column <= width:
        lines.append(styled(" " * (column - 1) + "^", f"bold {tone}"))
    sign = "… " if quiet else "✘ "
    said = wrap_words(what, width - 2, 3)
    lines += [styled(sign if index == 0 else "  ", tone) + styled(line, tone) for index, line in enumerate(said)]
    if advice:
        told = wrap_words(advice, width - 2, 3)
        lines += [styled("→ " if index == 0 else "  ", theme.ACCENT) + styled(line) for index, line in enumerate(told)]
    if idea is not None:
        lines.append(styled("→ ", theme.ACCENT) + styled("^o", f"bold {theme.ACCENT}") + styled(" keeps it as an idea"))
    return lines


def result_words(results: Sequence[Mapping[str, Any]], id_: str) -> str:
    """The figures of an experiment that was measured, `139.0 tok/s, τ 4.61`; empty when there are none."""
    found = next((one for one in reversed(results) if one.get("id") == id_ and one.get("tok_s_e2e") is not None), None)
    if found is None:
        return ""
    return f"{number(found['tok_s_e2e'], 1)} tok/s, τ {number(found.get('tau'), 2)}"
