"""Which class serves which kind of engine and of launcher; the profile says which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.ports import NoAsker
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.launch.service import ServiceLauncher
from ddconsole.engines.launch.systemd import SystemdLauncher
from ddconsole.engines.sglang.engine import SglangEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ddconsole.core.ports import Asker, Engine, Launcher
    from ddconsole.core.profile import Profile

KINDS: Final[dict[str, Callable[[Profile, Mapping[str, str]], Engine]]] = {"sglang": SglangEngine}
"""Engines by `engine.kind` of the profile."""


def make_engine(profile: Profile, secrets: Mapping[str, str]) -> Engine:
    """The engine that the profile describes; `secrets` are its values, read already."""
    return KINDS[profile.engine.kind](profile, secrets)


def make_launcher(profile: Profile, asker: Asker | None = None, *, take_over: bool = False) -> Launcher:
    """The launcher that the profile names.

    `asker` asks for consent where the profile's `take_over` is `ask`; `take_over` is consent given already.
    """
    section = profile.launcher
    place = (section.state_dir, section.stop_grace_s)
    if section.kind == "process":
        return ProcessLauncher(*place)
    if section.unit is None:
        return SystemdLauncher(*place, scope=section.scope, log=section.log)
    return ServiceLauncher(
        section.unit,
        asker or NoAsker(),
        *place,
        take_over="yes" if take_over and section.take_over != "no" else section.take_over,
        scope=section.scope,
        log=section.log,
    )
