"""The flags that a launch will use, each with what in the profile or the config asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.engines.sglang.command import (
    DRAFTER_FLAG,
    KNOBS,
    MODEL_FLAG,
    algorithm_flags,
    merged_args,
    spell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Profile


@dataclass(frozen=True, slots=True)
class Asked:
    """One flag of the command line.

    Attributes:
        value: None for a bare flag.
        origin: where it can be changed: `knobs.window.flag`, `engine.args.page-size`.
        knob: the knob that it spells, or empty.
    """

    flag: str
    value: str | None
    origin: str
    knob: str = ""


def asked_flags(profile: Profile, config: Config) -> Iterator[Asked]:
    """Every flag of the launch.

    Raises:
        UsageError: the config cannot be spelled.
    """
    yield Asked(MODEL_FLAG, profile.engine.model, "engine.model")
    for flag, value in algorithm_flags(profile, config):
        origin = "engine.drafter" if flag == DRAFTER_FLAG else f"knobs.algorithm.{config.algorithm.value}"
        yield Asked(flag, value, origin, "" if flag == DRAFTER_FLAG else "algorithm")
    owners = _knob_flags(profile)
    spelled = spell(profile.knobs, config)
    for flag, value in spelled.flags.items():
        yield Asked(flag, value, f"knobs.{owners.get(flag, '?')}.flag", owners.get(flag, ""))
    for flag in spelled.json_flags:
        yield Asked(flag, "{}", "a knob's json_field")
    for name, given in merged_args(profile, config).items():
        if given not in (None, "false") and f"--{name}" not in spelled.json_flags:
            yield Asked(f"--{name}", None if given == "true" else given, f"engine.args.{name}")
    yield Asked("--host", "127.0.0.1", "ddconsole")
    yield Asked("--port", "0", "ddconsole")


def _knob_flags(profile: Profile) -> dict[str, str]:
    """Knobs by the flag that spells them."""
    flags = ((getattr(profile.knobs, name).flag, name) for name in KNOBS)
    return {flag: name for flag, name in flags if flag is not None}
