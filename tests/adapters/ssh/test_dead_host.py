"""A run on a host that dies under it: it ends in its time, says so, and leaves the engine on record."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fakes.scripted import Script, ScriptedLauncher, ScriptedPass, make_bench

from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.ssh import Times
from ddconsole.core import events
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.experiment import Origin
from ddconsole.core.queue import Add, Draft, Place, Remove
from ddconsole.runner.console import Console

if TYPE_CHECKING:
    from pathlib import Path

    from ddconsole.core.ports import Launched, StopProof

pytestmark = pytest.mark.realhost

SOON = Times(connect=5.0, keepalive=2.0, missed=1, ping=3.0, channel=3.0, close=0.3)
END_S = 2.0
"""Stands for the minute of `ddconsole.runner.bench.END_S`."""

MARGIN_S = 15.0
"""What else an end may take: our commands are given up, the connection is closed, the lease is given back."""


class AskingLauncher(ScriptedLauncher):
    """Asks the host before it says that an engine has been stopped."""

    async def stop(self, host: Any, launched: Launched) -> StopProof:
        await host.run(["true"])
        return await super().stop(host, launched)


@pytest.mark.parametrize("death", ["freeze", "cut"])
async def test_a_run_on_a_dead_host_ends_within_its_limit(
    by, start_sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    """Frozen: the line stands and nothing answers. Cut: connections are gone and none can be made."""
    sshd, gate = start_sshd(), asyncio.Event()
    held = ScriptedPass(gate=gate)
    monkeypatch.setattr("ddconsole.runner.claim.RELEASE_S", 0.3)
    monkeypatch.setattr("ddconsole.runner.attempt.build_passes", lambda *_: [held])
    bench = replace(
        make_bench(tmp_path, script := Script()), connector=by(sshd.target(), times=SOON), clock=SystemClock(),
        launcher=AskingLauncher(script), end_s=END_S,
    )  # fmt: skip
    console = Console(bench, lambda text, queue: Remove((text,)))
    seen: list[events.Body] = []
    console.feed.subscribe(lambda event: seen.append(event.body))
    await console.open(telemetry=False)
    await console.edit(Add((Draft(Config(Algorithm.TREE, 8, 12, 6, 2048)),), Origin(), Place()))
    await console.start()
    async with asyncio.timeout(30):
        await held.entered.wait()
    if death == "freeze":
        sshd.freeze()
    else:
        sshd.die()
    started = time.monotonic()
    async with asyncio.timeout(60):
        await console.close(keep_engine=False)
    assert time.monotonic() - started < END_S + MARGIN_S
    warnings = " ".join(body.text for body in seen if isinstance(body, events.Warned))
    assert "does not answer" in warnings
    assert script.stops == []
    assert any(isinstance(body, events.RunFinished) for body in seen)
    assert [body.outcome for body in seen if isinstance(body, events.ExperimentFinished)] == ["interrupted"]
