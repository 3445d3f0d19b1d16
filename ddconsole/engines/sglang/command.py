"""From a config to the command that runs it: the profile says how each knob is spelled."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.config import Algorithm, effective_topk
from ddconsole.core.errors import UsageError
from ddconsole.core.masking import Masker
from ddconsole.core.ports import LaunchPlan
from ddconsole.core.profile import TopkKnob

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Knob, Knobs, Profile

KNOBS: Final = ("block_size", "budget", "topk", "window")
"""Names of the knobs, as Config and the profile have them."""

MODEL_FLAG: Final = "--model-path"
DRAFTER_FLAG: Final = "--speculative-draft-model-path"
HOST: Final = "127.0.0.1"
"""The engine listens on the host's loopback alone; we come through the ssh connection."""

_TIED = re.compile(r"\s*(block_size|budget|topk|window)\s*(?:([+*-])\s*([0-9]{1,9}))?\s*")


@dataclass(slots=True)
class Spelling:
    """What the knobs of one config come to: flags with their words, environment, and JSON flags field by field."""

    flags: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    json_flags: dict[str, dict[str, Any]] = field(default_factory=dict)


def launch_plan(profile: Profile, config: Config, port: int, secrets: Mapping[str, str]) -> LaunchPlan:
    """The command for `config` on `port`.

    Raises:
        UsageError: the config asks for what this engine's spelling of the knobs cannot give, or a word holds a NUL.
    """
    spelled = spell(profile.knobs, config)
    args = merged_args(profile, config)
    for flag, fields in spelled.json_flags.items():
        spelled.flags[flag] = json.dumps(_json_base(args.pop(arg_name(flag), None), flag) | fields, sort_keys=True)
    argv = [
        *profile.engine.command,
        *(MODEL_FLAG, profile.engine.model),
        *_words(algorithm_flags(profile, config)),
        *_words(spelled.flags.items()),
        *_arg_words(args),
        *("--host", HOST, "--port", str(port)),
    ]
    env = {"PYTHONUNBUFFERED": "1"} | profile.engine.env | spelled.env
    _check_words(argv, {**env, **secrets})
    words = shlex.join([*(f"{name}={value}" for name, value in sorted(env.items())), *argv])
    shown = Masker(tuple(secrets.values())).text(words)
    return LaunchPlan(argv=tuple(argv), env=env, secret_env=dict(secrets), port=port, shown=shown)


def _check_words(argv: Sequence[str], variables: Mapping[str, str]) -> None:
    """No process can be given a NUL: what stands behind it would silently be lost. Values may be secrets: no echo."""
    behind = zip(("the command", *argv), argv, strict=False)
    named = [f"the word behind {before}" for before, word in behind if "\0" in word]
    named += [f"the environment variable {name}" for name, value in variables.items() if "\0" in value]
    if named:
        raise UsageError(
            f"{named[0]} holds a NUL character, which no process can be given",
            advice="take it out of the profile, the spec, or the file that the secret comes from",
        )


def _words(pairs: Any) -> Iterator[str]:
    for pair in pairs:
        yield from pair


# --- knobs


def spell(knobs: Knobs, config: Config) -> Spelling:
    """The knobs that `config` sets, as the profile spells them."""
    spelled = Spelling()
    for name in KNOBS:
        value = getattr(config, name)
        if value is not None:
            _spell_one(spelled, name, getattr(knobs, name), value, config)
    return spelled


def _spell_one(spelled: Spelling, name: str, knob: Knob, value: int, config: Config) -> None:
    if knob.flag is not None:
        spelled.flags[knob.flag] = str(value)
    elif knob.env is not None:
        spelled.env[knob.env] = str(value)
    elif knob.json_field is not None:
        flag, _, key = knob.json_field.partition(":")
        spelled.json_flags.setdefault(flag, {})[key] = value
    elif isinstance(knob, TopkKnob) and knob.cap_env is not None:
        spelled.env[knob.cap_env] = str(value)
    else:
        _check_fixed(name, knob, value, config)


def _check_fixed(name: str, knob: Knob, value: int, config: Config) -> None:
    """Refuse a value that a knob without a spelling of its own cannot have."""
    fixed, because = fixed_value(knob, config)
    if fixed is None or fixed == value:
        return
    raise UsageError(
        f"{name}={value} cannot be asked of this engine: {name} is {fixed}, {because}",
        advice=f"leave {name} out, or give knobs.{name} a flag or an env in the profile if this engine has one",
    )


def fixed_value(knob: Knob, config: Config) -> tuple[int | None, str]:
    """The one value that a tied, derived or unspelled knob has for `config`, and why; None when it may be any."""
    if knob.tied is not None:
        return tied_value(knob.tied, config), f"tied to {knob.tied}"
    if isinstance(knob, TopkKnob) and knob.derived is not None and config.budget is not None:
        return effective_topk(config, knob.derived), f"derived from the budget ({knob.derived})"
    return knob.default, "its only value in this profile"


def tied_value(expression: str, config: Config) -> int | None:
    """`block_size - 1` for `config`; None when the other knob is not set.

    Raises:
        UsageError: the profile's expression is not NAME, NAME + N, NAME - N or NAME * N.
    """
    match = _TIED.fullmatch(expression)
    if match is None:
        raise UsageError(f"tied: {expression!r} is not understood", advice="write it as `block_size - 1`")
    base = getattr(config, match[1])
    if base is None or match[2] is None:
        return None if base is None else int(base)
    number = int(match[3])
    return int({"+": base + number, "-": base - number, "*": base * number}[match[2]])


# --- the algorithm and the drafter


def algorithm_value(profile: Profile, algorithm: Algorithm) -> str | None:
    """The algorithm flag's value; None leaves the flag out."""
    value: str | None = getattr(profile.knobs.algorithm, algorithm.value)
    return value


def algorithm_flags(profile: Profile, config: Config) -> Iterator[tuple[str, str]]:
    """The flags that choose the algorithm and name the drafter.

    Raises:
        UsageError: chain or tree without a drafter in the profile.
    """
    value = algorithm_value(profile, config.algorithm)
    if value is not None:
        yield profile.knobs.algorithm.flag, value
    if config.algorithm is Algorithm.OFF:
        return
    if profile.engine.drafter is None:
        raise UsageError(
            f"algorithm={config.algorithm} needs a drafter, and the profile names none",
            advice="set engine.drafter in the profile",
        )
    yield DRAFTER_FLAG, profile.engine.drafter


# --- further arguments


def arg_name(name: str) -> str:
    """A long flag's name without dashes, `_` and `-` alike."""
    return name.lstrip("-").replace("_", "-")


def reserved_args(profile: Profile) -> dict[str, str]:
    """Flags that the console sets itself, by what sets them."""
    owned = {MODEL_FLAG: "engine.model", DRAFTER_FLAG: "engine.drafter", "--host": "the console", "--port": "the port"}
    owned[profile.knobs.algorithm.flag] = "algorithm"
    for name in KNOBS:
        flag = getattr(profile.knobs, name).flag
        if flag is not None:
            owned[flag] = name
    return {arg_name(flag): owner for flag, owner in owned.items()}


def merged_args(profile: Profile, config: Config) -> dict[str, str | None]:
    """The profile's further arguments with the config's over them, by name.

    Raises:
        UsageError: one of them is a flag that a knob or the console sets.
    """
    merged = {arg_name(name): value for name, value in profile.engine.args.items()}
    merged |= {arg_name(name): value for name, value in config.args}
    for name, owner in reserved_args(profile).items():
        if name in merged:
            raise UsageError(f"--{name} is set by {owner}, not as an argument", advice=f"remove arg.{name}")
    return merged


def _arg_words(args: Mapping[str, str | None]) -> Iterator[str]:
    """`true` is a bare flag; `false` and null leave it out."""
    for name, value in args.items():
        if value is None or value == "false":
            continue
        yield f"--{name}"
        if value != "true":
            yield value


def _json_base(text: str | None, flag: str) -> dict[str, Any]:
    """The object that an argument gives a JSON flag before the knobs' fields are put in."""
    if text is None:
        return {}
    try:
        base = json.loads(text)
    except ValueError:
        base = None
    if not isinstance(base, dict):
        raise UsageError(f"{flag} takes a JSON object, since a knob is one of its fields; got {text!r}")
    return base
