"""What a spec is read against: the profile's defaults and ranges, and the queue that it speaks about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm, Config, TopkRule
from ddconsole.core.queue.values import Queue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.profile import Knob, Profile

SHORT_NAMES = {"block_size": "b", "budget": "B", "topk": "K", "window": "W"}
"""Knobs by their long names, with the short ones. Keys are case-sensitive."""

KNOBS_OF: dict[Algorithm, tuple[str, ...]] = {
    Algorithm.OFF: (),
    Algorithm.CHAIN: ("block_size", "window"),
    Algorithm.TREE: ("block_size", "budget", "topk", "window"),
}
"""What each algorithm has."""

OWN_ARGUMENTS = {
    "port": "the console chooses the port (profile: engine.port)",
    "host": "the engine listens on the host's loopback",
    "model-path": "the model belongs to the profile (engine.model)",
    "speculative-draft-model-path": "the drafter belongs to the profile (engine.drafter)",
}
"""Arguments that an experiment cannot give."""

TIE = re.compile(r"\s*(block_size|budget|topk|window)\s*(?:([-+*])\s*([0-9]{1,9})\s*)?")
"""What a tied knob follows: `block_size - 1`."""


@dataclass(frozen=True, slots=True)
class KnobRule:
    """What a profile says of one knob.

    Attributes:
        low, high: what may be asked for, both included.
        default: the profile's default, None when it leaves that to the engine.
        tied: `block_size - 1` when it follows another knob and cannot be set.
        fixed: why it cannot be set, or empty.
    """

    low: int = 1
    high: int = 1_000_000
    default: int | None = None
    tied: str | None = None
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class SpecContext:
    """Everything that a spec's meaning depends on.

    Attributes:
        defaults: the profile's default config: where `add`, `next` and `sweep` start.
        knobs: rules by long name.
        rule: how the engine comes to its K.
        queue: resolves `E14`, `S3` and the running sweep.
        suites: passes by suite, in the order in which they are run.
        passes: every pass there is.
        default_suite: suite of an experiment that names none.
        reserved: arguments that cannot be given, with the reason.
        repeats: by suite, of an experiment that does not say its own; 1 where a suite is not in it.
        narrow_window: read a window below the block size, for a doctor that says what it does; a queue refuses it.
    """

    defaults: Config
    knobs: Mapping[str, KnobRule]
    rule: TopkRule = TopkRule.AS_ASKED
    queue: Queue = field(default_factory=Queue)
    suites: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"quick": ("coding", "throughput")})
    passes: tuple[str, ...] = ("coding", "throughput", "quality")
    default_suite: str = "quick"
    reserved: Mapping[str, str] = field(default_factory=lambda: dict(OWN_ARGUMENTS))
    narrow_window: bool = False
    repeats: Mapping[str, int] = field(default_factory=dict)

    def repeats_of(self, suite: str) -> int:
        """How often a new experiment of a suite is measured."""
        return self.repeats.get(suite, 1)

    @classmethod
    def of(cls, profile: Profile, queue: Queue) -> SpecContext:
        """The context of a profile and its queue as it stands."""
        rules = {name: _rule(getattr(profile.knobs, name)) for name in SHORT_NAMES}
        return cls(
            defaults=default_config(Algorithm(profile.knobs.algorithm.default), rules),
            knobs=rules,
            rule=profile.knobs.topk.rule,
            queue=queue,
            suites={"quick": profile.passes.quick.names(), "confirm": profile.passes.confirm.names()},
            reserved=_reserved(profile),
            repeats={"quick": profile.passes.quick.repeats, "confirm": profile.passes.confirm.repeats},
        )


def default_config(algorithm: Algorithm, rules: Mapping[str, KnobRule]) -> Config:
    """The config that a profile's defaults come to.

    Raises:
        ValueError: the algorithm needs a value for which the profile has no default.
    """
    values: dict[str, int | None] = {}
    for name in KNOBS_OF[algorithm]:
        rule = rules[name]
        values[name] = rule.default if rule.tied is None else tied_value(rule.tied, values)
    return config_of(algorithm, values)


def config_of(algorithm: Algorithm, values: Mapping[str, int | None], args: tuple[tuple[str, str], ...] = ()) -> Config:
    """A config of the knobs that `algorithm` has; values of other knobs are passed over.

    Raises:
        ValueError: a value that the algorithm needs is not there.
    """
    own = {name: values.get(name) for name in KNOBS_OF[algorithm]}
    return Config(
        algorithm,
        block_size=own.get("block_size"),
        budget=own.get("budget"),
        topk=own.get("topk"),
        window=own.get("window"),
        args=args,
    )


def tied_value(tied: str, values: Mapping[str, int | None]) -> int | None:
    """What `block_size - 1` comes to; None when the knob that it follows is not set.

    Raises:
        ValueError: it is no such expression.
    """
    found = TIE.fullmatch(tied)
    if found is None:
        raise ValueError(f"expected a knob and a number, such as `block_size - 1`; got {tied!r}")
    name, sign, text = found.groups()
    base = values.get(name)
    if base is None or sign is None:
        return base
    number = int(text)
    return {"-": base - number, "+": base + number, "*": base * number}[sign]


def _rule(knob: Knob) -> KnobRule:
    spelled = any(
        way is not None for way in (knob.flag, knob.env, knob.json_field, knob.tied, getattr(knob, "cap_env", None))
    )
    fixed = "" if spelled else "the profile does not say how the engine is told"
    if knob.tied is not None:
        fixed = f"it follows {knob.tied} in this profile"
    elif not spelled and getattr(knob, "derived", None) is not None:
        fixed = "this engine derives it, and the profile names no way to cap it"
    return KnobRule(low=knob.min, high=knob.max, default=knob.default, tied=knob.tied, fixed=fixed)


def _reserved(profile: Profile) -> dict[str, str]:
    """Arguments that the console gives itself, by their names without dashes."""
    taken = dict(OWN_ARGUMENTS)
    taken[profile.knobs.algorithm.flag.lstrip("-")] = "it is spelled algorithm=…"
    for name in SHORT_NAMES:
        flag = getattr(profile.knobs, name).flag
        if flag is not None:
            taken[flag.lstrip("-").replace("_", "-")] = f"it is spelled {name}=…"
    return taken
