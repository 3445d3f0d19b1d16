"""Names of launches: safe on any host, and no two alike."""

from __future__ import annotations

import re

import pytest

from ddconsole.core.ports import AttemptKey
from ddconsole.runner.slot import launch_name


@pytest.mark.parametrize("profile", ["ct200", "my prof", "prüf", "_x", "…", "a" * 300, "-rf", "../../etc"])
def test_any_profile_gives_a_name_that_a_host_can_take(profile: str) -> None:
    """A folder's name of letters, digits and dashes, short enough for any file system."""
    name = launch_name(AttemptKey(profile, "E1", 1))
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{1,90}", name)


def test_consoles_that_share_a_host_never_share_a_launch() -> None:
    """The same profile, experiment and attempt on two laptops, one account on the host."""
    key = AttemptKey("ct200", "E1", 1)
    assert len({launch_name(key) for _ in range(100)}) == 100
