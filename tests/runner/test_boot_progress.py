"""What is told of a boot: the bars, and in silent stretches the signs of life, the estimate and the limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fakes.scripted import PROFILE, Script
from runner.world import Opened, tree

from ddconsole.core import events
from ddconsole.core.progress import BootProgress, Phase, ShardBar
from ddconsole.runner.boot_progress import ProgressTeller
from ddconsole.runner.estimates import phase_medians


def teller_of(progress: BootProgress, *, spoke_at: float = 1000.0) -> tuple[ProgressTeller, Any]:
    """A teller over a log that stands at `progress`."""
    follower: Any = SimpleNamespace(tracker=SimpleNamespace(progress=progress), spoke_at=spoke_at)
    activity: Any = SimpleNamespace(read=310_000_000_000, per_s=8.5e8, gpu_mib=lambda: 52_000, grown_mib=48_000)
    activity.grows = False
    past = phase_medians([{"load_target": 370.0}, {"load_target": 374.0, "kv": 2.0}, {"load_target": 380.0}])
    return ProgressTeller(PROFILE, follower, activity, 480.0, past, began=1000.0), follower


def test_a_silent_stretch_is_told_with_all_that_is_known() -> None:
    """Age of the last byte and its limit, bytes, GPU memory, what the phase took before, who is waited for."""
    silent = BootProgress(Phase.LOAD_TARGET, target=ShardBar(64, 64, 0.0), waits_for=("TP3",))
    teller, _ = teller_of(silent, spoke_at=1362.0)
    teller.body(1027.0)
    body = teller.body(1400.0)
    assert (body.silent_s, body.stall_s) == (38.0, 30.0)
    assert (body.bytes_read, body.read_per_s) == (310_000_000_000, 850_000_000)
    assert (body.gpu_mib, body.gpu_grown_mib) == (52_000, 48_000)
    assert (body.phase_s, body.phase_estimate_s) == (373.0, 374.0)
    assert (body.elapsed_s, body.eta_s) == (400.0, 80.0)
    assert body.waits_for == ["TP3"]


def test_a_phase_counts_from_when_it_was_first_seen() -> None:
    """And a phase that was never measured has no estimate."""
    teller, follower = teller_of(BootProgress(Phase.LOAD_TARGET))
    teller.body(1010.0)
    follower.tracker.progress = BootProgress(Phase.GRAPHS)
    assert teller.body(1050.0).phase_s == 0
    body = teller.body(1061.5)
    assert (body.phase, body.phase_s, body.phase_estimate_s) == ("graphs", 11.5, None)


def test_the_bar_is_never_promised_to_end_after_the_boot() -> None:
    """History says that little is left; the bar knows better."""
    teller, _ = teller_of(BootProgress(Phase.LOAD_TARGET, target=ShardBar(10, 64, 600.0)))
    assert teller.body(1460.0).eta_s == 600.0


async def test_a_stall_says_how_long_it_was_silent_and_what_moved(world: Opened) -> None:
    """The limit of the phase is the profile's; bytes and GPU memory are the evidence for slow or dead."""
    async with world(Script(boots=["hangs"])) as w:
        await w.add(tree())
        await w.drain()
        (finished,) = w.of(events.ExperimentFinished)
        failure = finished.failure  # type: ignore[attr-defined]
        assert failure["cause"] == "stalled"
        assert "in load_target (limit 30 s)" in failure["what"]
        assert "bytes read" in failure["evidence"][-1]
        told = w.of(events.BootProgressed)
        assert any(body.silent_s > 20 and body.stall_s == 30.0 for body in told)  # type: ignore[attr-defined]


async def test_the_second_boot_is_told_what_its_phases_took_in_the_first(world: Opened) -> None:
    """The estimate comes from this host's own history."""
    async with world() as w:
        await w.add(tree(12), tree(16))
        await w.drain()
        loading = [body for body in w.of(events.BootProgressed) if body.phase == "load_target"]  # type: ignore[attr-defined]
        estimates = [body.phase_estimate_s for body in loading]  # type: ignore[attr-defined]
        assert estimates[0] is None
        assert estimates[-1] == 361.0
