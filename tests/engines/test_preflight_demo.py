"""The demo host answers every question of a preflight as a real one would."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.adapters.profile_file import load_profile
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.finding_codes import TOPICS
from ddconsole.demo.home import command_environment, prepare_home
from ddconsole.engines.sglang.preflight import preflight


async def test_nothing_stands_against_a_launch_and_every_topic_has_its_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight cards of compute capability 12.0 with peer-to-peer, on two NUMA nodes; 64 and 3 shards; flags read."""
    prepare_home(tmp_path / "home")
    for name, value in command_environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    host = LocalHost()
    profile = load_profile("demo").profile
    found = await preflight(profile, host, Config(Algorithm.TREE, 8, 12, 6, 2048), 31_999)
    await host.close()
    assert found.blocking == ()
    codes = {finding.code for finding in found.findings}
    assert not codes & {"no-nvidia-smi", "check-failed", "jit-cold", "shard-missing", "help-unreadable", "no-ddtree"}
    assert {one.topic for one in found.checked} == set(TOPICS) - {"preflight"}
    facts = found.facts
    assert (facts["target"]["shards"], facts["drafter"]["shards"], len(facts["cards"])) == (64, 3, 8)
    assert all(card["clocks.max.sm"] and card["clocks.sm"] and card["clocks.mem"] for card in facts["cards"])
    assert len(facts["drafter"]["config_sha256"]) == 64
    assert facts["engine"]["version"] == "0.5.23+ddtree"
    assert facts["peer_to_peer"] is True
    assert facts["topology"] == {"NODE": 12, "SYS": 16}
    assert set(facts["numa_of_cards"].values()) == {"0", "1"}
