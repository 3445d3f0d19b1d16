"""How long a boot is waited for, as profiles say it."""

from __future__ import annotations

import pytest

from ddconsole.core.profile import STALL_DEFAULTS, InvalidProfileError, Profile, parse_profile
from ddconsole.core.progress import Phase

BASE = {"schema": "1", "host": "h", "engine": {"command": ["x"], "model": "m", "drafter": "d"}}


def profile(**stalls: str) -> Profile:
    """A profile with these limits."""
    return parse_profile(BASE | {"stalls": stalls})


def test_every_phase_of_a_boot_has_a_limit_and_the_boot_one_of_its_own() -> None:
    """None is left to chance; the whole may take as long as several of its phases."""
    boot = {phase.value for phase in Phase} - {"preflight", "stop"}
    assert set(STALL_DEFAULTS) == boot | {"pass", "boot"}
    assert parse_profile(BASE).boot_limit_s == 4 * 3600
    assert parse_profile(BASE).stall_s("ready") > 600, "longer than the first request may take"


def test_each_limit_can_be_set_and_the_others_stay() -> None:
    """`ready` and `boot` among them."""
    mine = profile(ready="120", boot="30000", init="1e3")
    assert (mine.stall_s("ready"), mine.boot_limit_s, mine.stall_s("init")) == (120.0, 30_000.0, 1_000.0)
    assert mine.stall_s("graphs") == STALL_DEFAULTS["graphs"]
    assert set(mine.stalls) == set(STALL_DEFAULTS), "`profiles show --json` tells every value"


def test_an_unknown_phase_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(InvalidProfileError, match="warmup, ready, pass, boot"):
        profile(raedy="120")
