"""Which class serves which kind of engine and of launcher; the profile says which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import UsageError
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.sglang.engine import SglangEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ddconsole.core.ports import Engine, Launcher
    from ddconsole.core.profile import Profile

KINDS: Final[dict[str, Callable[[Profile, Mapping[str, str]], Engine]]] = {"sglang": SglangEngine}
"""Engines by `engine.kind` of the profile."""


def make_engine(profile: Profile, secrets: Mapping[str, str]) -> Engine:
    """The engine that the profile describes; `secrets` are its values, read already."""
    return KINDS[profile.engine.kind](profile, secrets)


def make_launcher(profile: Profile) -> Launcher:
    """The launcher that the profile names.

    Raises:
        UsageError: a kind that this version does not have.
    """
    section = profile.launcher
    if section.kind != "process":
        raise UsageError(
            f"launcher kind {section.kind} is not in this version", advice="use `launcher: {kind: process}`"
        )
    return ProcessLauncher(section.state_dir, section.stop_grace_s)
