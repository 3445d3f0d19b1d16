"""The form's rules, pure: what was typed becomes a config, or a reason for each field that cannot be read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Algorithm, Config, effective_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.config import Effective
    from ddconsole.core.profile import Knob, Knobs

NUMBERS = ("block_size", "budget", "topk", "window", "repeats")
"""Fields that hold a whole number, in the form's order."""

SHORT = {"b": "block_size", "B": "budget", "K": "topk", "W": "window"}
"""Short names of the knobs, in the form's order."""

MOST_REPEATS = 100


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands in the form, as text."""

    algorithm: str
    numbers: Mapping[str, str]
    passes: tuple[str, ...]
    note: str = ""
    args: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What it means. `config` is None when `problems` has a reason for a field."""

    config: Config | None = None
    effective: Effective | None = None
    passes: tuple[str, ...] = ()
    repeats: int = 1
    note: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)


def knob_of(knobs: Knobs, name: str) -> Knob:
    """The knob of that long name."""
    found: Knob = getattr(knobs, name)
    return found


def settable(knobs: Knobs, name: str) -> bool:
    """The profile says how the engine is told this knob, and it does not follow another one."""
    knob = knob_of(knobs, name)
    ways = (knob.flag, knob.env, knob.json_field, getattr(knob, "cap_env", None))
    return knob.tied is None and any(way is not None for way in ways)


def used_by(algorithm: str) -> frozenset[str]:
    """The number fields that an algorithm has."""
    always = frozenset({"repeats"})
    drafting = always | {"block_size", "window"}
    return {"off": always, "chain": drafting}.get(algorithm, drafting | {"budget", "topk"})


def hint(knobs: Knobs, name: str, *, short: bool = False) -> str:
    """Range and default of a field, `2–32, default 8`; `short` is the range alone."""
    if name == "repeats":
        return f"1–{MOST_REPEATS}"
    knob = knob_of(knobs, name)
    if knob.tied:
        return f"follows {knob.tied}"
    if not settable(knobs, name):
        return "the engine's own"
    default = "" if knob.default is None or short else f", default {knob.default}"
    return f"{knob.min}–{knob.max}{default}"


def defaults(knobs: Knobs, passes: tuple[str, ...], repeats: int = 1) -> Typed:
    """The form of a new experiment."""
    numbers = {name: _text(knob_of(knobs, name).default) for name in NUMBERS[:4]}
    return Typed(knobs.algorithm.default, numbers | {"repeats": str(repeats)}, passes)


def of_item(item: Mapping[str, Any], knobs: Knobs, passes: tuple[str, ...]) -> Typed:
    """The form of an experiment in the queue; knobs that its algorithm lacks show their defaults."""
    config = item.get("config") or {}
    plain = defaults(knobs, passes)
    numbers = {name: _text(config.get(name)) or plain.numbers[name] for name in NUMBERS[:4]}
    used = used_by(str(config.get("algorithm") or plain.algorithm))
    numbers |= {name: _text(config.get(name)) for name in NUMBERS[:4] if config and name in used}
    return Typed(
        algorithm=str(config.get("algorithm") or plain.algorithm),
        numbers=numbers | {"repeats": _text(item.get("repeats") or 1)},
        passes=tuple(item.get("passes") or passes),
        note=str(item.get("note") or ""),
        args=tuple(sorted((str(name), str(value)) for name, value in (config.get("args") or {}).items())),
    )


def read(typed: Typed, knobs: Knobs) -> Read:
    """Understand the form. A field that the algorithm lacks is not looked at."""
    problems: dict[str, str] = {}
    numbers: dict[str, int | None] = {}
    for name in NUMBERS:
        if name in used_by(typed.algorithm):
            numbers[name] = _number(name, typed.numbers.get(name, ""), knobs, problems)
    if not typed.passes:
        problems["passes"] = "choose at least one"
    _cross_check(numbers, problems)
    if problems:
        return Read(problems=problems)
    config = Config(
        algorithm=Algorithm(typed.algorithm),
        block_size=numbers.get("block_size"),
        budget=numbers.get("budget"),
        topk=numbers.get("topk"),
        window=numbers.get("window"),
        args=typed.args,
    )
    effective = effective_config(config, knobs.topk.rule)
    return Read(config, effective, typed.passes, numbers["repeats"] or 1, typed.note.strip())


def as_line(read: Read, knobs: Knobs, edited: str | None) -> str:
    """The same in the queue's language, to be looked up: `edit E3 algorithm=tree b=8 …`; empty with a problem."""
    config = read.config
    if config is None:
        return ""
    words = [f"edit {edited}" if edited else "add", f"algorithm={config.algorithm.value}"]
    for name in NUMBERS[:4]:
        if name in used_by(config.algorithm.value) and settable(knobs, name):
            value = getattr(config, name)
            words.append(f"{name}={'auto' if value is None else value}")
    words += [shlex.quote(f"arg.{name}=" + value.replace(",", "\\,")) for name, value in config.args]
    words += [f"passes={','.join(read.passes)}", f"repeats={read.repeats}"]
    return " ".join(words)


def edit_line(item: Mapping[str, Any], knobs: Knobs) -> str:
    """An experiment as the line that would edit it: `edit E16 algorithm=tree b=16 B=26 …`. An idea has no values."""
    config = item.get("config")
    if not config:
        return f"edit {item.get('id')} "
    words = [f"edit {item.get('id')}", f"algorithm={config.get('algorithm')}"]
    for short, name in SHORT.items():
        if name in used_by(str(config.get("algorithm"))) and settable(knobs, name):
            words.append(f"{short}={_text(config.get(name)) or 'auto'}")
    args = (config.get("args") or {}).items()
    words += [shlex.quote(f"arg.{name}=" + str(value).replace(",", "\\,")) for name, value in args]
    return " ".join([*words, *([f"repeats={item['repeats']}"] if int(item.get("repeats") or 1) > 1 else [])])


def first_field(typed: Typed, knobs: Knobs) -> str:
    """The first knob that matters: where the cursor begins."""
    used = used_by(typed.algorithm)
    return next((name for name in NUMBERS[:4] if name in used and settable(knobs, name)), "passes")


def _cross_check(numbers: Mapping[str, int | None], problems: dict[str, str]) -> None:
    block, window = numbers.get("block_size"), numbers.get("window")
    if block is not None and window is not None and window < block and "window" not in problems:
        problems["window"] = f"must be at least the block size, {block}"


def _number(name: str, text: str, knobs: Knobs, problems: dict[str, str]) -> int | None:
    """A whole number in its range; empty is the engine's default where there can be one."""
    low, high = (1, MOST_REPEATS) if name == "repeats" else (knob_of(knobs, name).min, knob_of(knobs, name).max)
    text = text.strip()
    if not text and name in ("topk", "window"):
        return None
    try:
        value = int(text)
    except ValueError:
        problems[name] = "a whole number is needed" if text else "must not be empty"
        return None
    if not low <= value <= high:
        problems[name] = f"must be {low} to {high}"
        return None
    return value


def _text(value: object) -> str:
    return "" if value is None else str(value)
