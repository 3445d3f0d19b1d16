"""One config from what was typed and what it starts from, with the derivation in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, Config, Effective, effective_config, matched_budget
from ddconsole.core.spec.context import KNOBS_OF, SHORT_NAMES, SpecContext, config_of, tied_value
from ddconsole.core.spec.types import RefusedSpec, Spot
from ddconsole.core.spec.values import Value, half_up

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from ddconsole.core.spec.words import Word


DEFAULT_NAME = "the profile's default"


@dataclass(frozen=True, slots=True)
class Source:
    """What a spec starts from.

    Attributes:
        base: whose values stand where nothing is typed.
        name: how it is called in a refusal, `E14`.
        reference: what `match` matches; None when there is nothing to match.
        id: the experiment, or None for the profile's default.
        late: `base=best`: the values that are not typed are known at start only.
    """

    base: Config
    name: str
    reference: Config | None = None
    id: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """One value for each key of a spec, and the words that they stand in."""

    values: Mapping[str, Value]
    words: Mapping[str, Word]


@dataclass(frozen=True, slots=True)
class Derived:
    """A config, and how it came about."""

    config: Config
    notes: tuple[str, ...]


def derive(source: Source, chosen: Chosen, context: SpecContext) -> Derived:
    """The config that the chosen values make of the source.

    Raises:
        RefusedSpec: a knob that the algorithm does not have, a relative value without what it relates to, a value
            outside its range.
    """
    algorithm = _algorithm(source, chosen)
    numbers = _inherited(source, algorithm, chosen, context)
    how: dict[str, str] = {}
    for name in KNOBS_OF[algorithm]:
        value = chosen.values.get(name)
        if value is not None:
            numbers[name], how[name] = _resolved(name, value, numbers, source, chosen, context)
    for name in KNOBS_OF[algorithm]:
        tied = context.knobs[name].tied
        if tied is not None:
            numbers[name], how[name] = tied_value(tied, numbers), f"follows {tied}"
    _check_complete(algorithm, numbers, chosen)
    if not context.narrow_window:
        _check_window(numbers, chosen)
    config = config_of(algorithm, numbers, _arguments(source.base, chosen))
    return Derived(config, _notes(source, config, how, context))


def effective_of(config: Config, context: SpecContext) -> Effective:
    """What the engine makes of it."""
    return effective_config(config, context.rule)


def _algorithm(source: Source, chosen: Chosen) -> Algorithm:
    """The algorithm, after a look at whether it has every knob that was typed."""
    value = chosen.values.get("algorithm")
    algorithm = Algorithm(value.text) if value is not None else source.base.algorithm
    for name in SHORT_NAMES:
        if name in chosen.values and name not in KNOBS_OF[algorithm]:
            whose = f"algorithm={algorithm}" if value is not None else f"{source.name} is algorithm={algorithm} and"
            advice = "leave it out" if value is not None else "name an algorithm that has it: algorithm=tree"
            raise RefusedSpec(chosen.words[name].spot(), f"{whose} has no {name}", advice)
    return algorithm


def _inherited(source: Source, algorithm: Algorithm, chosen: Chosen, context: SpecContext) -> dict[str, int | None]:
    """The source's values; knobs that its algorithm does not have are filled from the profile's defaults."""
    numbers: dict[str, int | None] = {}
    for name in KNOBS_OF[algorithm]:
        rule = context.knobs[name]
        own = name in KNOBS_OF[source.base.algorithm]
        numbers[name] = getattr(source.base, name) if own else rule.default
    return numbers


def _resolved(
    name: str, value: Value, numbers: Mapping[str, int | None], source: Source, chosen: Chosen, context: SpecContext
) -> tuple[int | None, str]:
    """What a value comes to, and why where that is not plain."""
    if value.kind == "auto":
        return None, "left to the engine"
    number, how = int(value.number), ""
    if value.relative:
        b = numbers["block_size"]
        assert b is not None
        if source.late and (value.kind == "match" or "block_size" not in chosen.values):
            what = "the reference" if value.kind == "match" else "the block size"
            reason = f"{value.text} relates to {what}, and base=best is known only when it starts"
            raise RefusedSpec(value.spot, reason, "give a number" + (", or type b=…" if value.kind == "times" else ""))
        if value.kind == "match":
            number, how = _matched(value, b, source)
        else:
            number, how = half_up(value.number * b), f"{value.text}: {_plain(value.number)} × {b}"
    rule = context.knobs[name]
    if not rule.low <= number <= rule.high:
        came = f"{value.text} comes to {number:,}, which" if how else f"{name} {number:,}"
        raise RefusedSpec(value.spot, f"{came} is outside {rule.low} to {rule.high:,}", "the profile sets this range")
    return number, how


def _matched(value: Value, block_size: int, source: Source) -> tuple[int, str]:
    """The budget of the reference's density."""
    reference = source.reference
    if reference is None:
        reason = "match needs an experiment to match, and this spec follows or names none"
        if source.name != DEFAULT_NAME:
            reason = f"{source.name} is an idea without a config, so there is nothing to match"
        raise RefusedSpec(value.spot, reason, "write `after E14 …` or `clone E14 …`, or give a number")
    if reference.budget is None or reference.block_size is None or reference.density is None:
        reason = f"{source.name} is algorithm={reference.algorithm} and has no budget to match"
        raise RefusedSpec(value.spot, reason, "give a number or a multiple of b, or name a tree")
    if reference.block_size < 2 or block_size < 2:
        raise RefusedSpec(value.spot, "a block size below 2 drafts nothing, so it has no density", "give a number")
    number = matched_budget(reference.budget, reference.block_size, block_size)
    return number, f"match: {reference.density:.2f} per position"


def _check_complete(algorithm: Algorithm, numbers: Mapping[str, int | None], chosen: Chosen) -> None:
    """A drafter has a block size and a tree a budget."""
    for name in ("block_size", "budget"):
        if name in KNOBS_OF[algorithm] and numbers.get(name) is None:
            word = chosen.words.get("algorithm")
            spot = word.spot() if word is not None else Spot(1, 1)
            reason = f"algorithm={algorithm} needs a {name}, and the profile has no default for it"
            raise RefusedSpec(spot, reason, f"say {SHORT_NAMES[name]}=…")


def _check_window(numbers: Mapping[str, int | None], chosen: Chosen) -> None:
    """The drafter's window holds at least one block."""
    window, b = numbers.get("window"), numbers.get("block_size")
    if window is None or b is None or window >= b:
        return
    value = chosen.values.get("window") or chosen.values.get("block_size")
    if value is not None:
        reason = f"window {window} is less than the block size {b}"
        raise RefusedSpec(value.spot, reason, f"the window holds at least one block: W={b} or more")


def _arguments(base: Config, chosen: Chosen) -> tuple[tuple[str, str], ...]:
    """The base's engine arguments with the typed ones; an empty value leaves one out."""
    args = dict(base.args)
    for key, value in chosen.values.items():
        if key.startswith("arg."):
            args[key[len("arg.") :]] = value.text
    return tuple(sorted((name, text) for name, text in args.items() if text))


def _notes(source: Source, config: Config, how: Mapping[str, str], context: SpecContext) -> tuple[str, ...]:
    """What changed against the source and why, then what the engine makes of K."""
    base = source.base
    notes: list[str] = []
    if source.id is not None and config.algorithm is not base.algorithm:
        notes.append(f"algorithm {base.algorithm} → {config.algorithm}")
    for name, short in SHORT_NAMES.items():
        new, old = getattr(config, name), getattr(base, name)
        changed = source.id is not None and new != old and old is not None and new is not None
        if changed or how.get(name):
            step = f"{short} {old} → {new}" if changed else f"{short} {'auto' if new is None else new}"
            notes.append(step + (f" ({how[name]})" if how.get(name) else ""))
    return tuple(notes + _tree_notes(source, config, context))


def _tree_notes(source: Source, config: Config, context: SpecContext) -> list[str]:
    """The effective K, and a budget that cannot reach the depth."""
    if config.algorithm is not Algorithm.TREE:
        return []
    notes: list[str] = []
    new = effective_of(config, context).topk
    tree = source.id is not None and source.base.algorithm is Algorithm.TREE and source.base != config
    if tree:
        notes.append(f"effective K {effective_of(source.base, context).topk} → {new}")
    elif new != config.topk:
        notes.append(f"effective K {new}")
    if config.topk is not None and new != config.topk:
        notes[-1] += f" ({config.topk} is a cap)"
    if config.budget is not None and config.depth is not None and config.budget < config.depth:
        notes.append(f"B {config.budget} is below the depth {config.depth}: no path can reach its end")
    return notes


def _plain(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):g}"
