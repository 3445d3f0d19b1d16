"""One query loop of nvidia-smi: started again with backoff when it dies or hangs; one bad card hides no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from fakes.clock import VirtualClock

from ddconsole.core.errors import HostError
from ddconsole.core.events import GpuSampled, Warned
from ddconsole.core.gpu import QUERY_FIELDS
from ddconsole.core.gpu_load import LinksUnderLoad
from ddconsole.core.ports import Completed
from ddconsole.runner.telemetry import LAST_RETRY_S, SILENT_S, watch_gpus

HANG = None
"""In a script: no byte until the stream is closed."""

Script = Sequence[bytes | float | Exception | None]


def row(index: int, **cells: str) -> bytes:
    """A row of the query."""
    good = {
        "index": str(index),
        "uuid": f"GPU-{index}",
        "name": "card",
        "utilization.gpu": "90",
        "memory.used": "88000",
        "pcie.link.gen.current": "5",
        "pcie.link.width.current": "16",
        "pci.bus_id": f"00000000:0{index}:00.0",
        "mig.mode.current": "Disabled",
    }
    return (", ".join((good | cells).get(name, "1") for name in QUERY_FIELDS) + "\n").encode()


class Run:
    """One run of nvidia-smi: bytes, seconds of waiting, HANG, or an error.

    What comes at once takes no time, however slow this machine is: the clock stands until the script waits.
    """

    def __init__(self, script: Script, clock: VirtualClock) -> None:
        self.script = script
        self.clock = clock
        self.closed = asyncio.Event()
        clock.busy += 1

    async def chunks(self) -> AsyncIterator[bytes]:
        for step in self.script:
            if isinstance(step, bytes):
                yield step
                continue
            self.clock.busy -= 1
            try:
                await (self.clock.sleep(step) if isinstance(step, float) else self.closed.wait())
            finally:
                self.clock.busy += 1

    async def close(self) -> None:
        self.closed.set()
        self.clock.busy -= 1


MEMINFO = "MemTotal:       127600748 kB\nMemAvailable:   118566368 kB\n"


class World:
    """A host that plays its runs in order, and the journal and session around the loop."""

    def __init__(self, *runs: Script | Exception) -> None:
        self.clock = VirtualClock()
        self.runs = list(runs)
        self.argvs: list[tuple[str, ...]] = []
        self.streams: list[Run] = []
        self.started_at: list[float] = []
        self.shown: list[GpuSampled] = []
        self.posted: list[Warned] = []
        self.asked: list[tuple[str, ...]] = []
        self.meminfo: str | Exception = MEMINFO
        self.under_load = LinksUnderLoad()
        self.over = asyncio.Event()

    async def stream(self, argv: Sequence[str]) -> Run:
        self.argvs.append(tuple(argv))
        self.started_at.append(self.clock.monotonic())
        if not self.runs:
            self.over.set()
            await asyncio.Event().wait()
        run = self.runs.pop(0)
        if isinstance(run, Exception):
            raise run
        self.streams.append(Run(run, self.clock))
        return self.streams[-1]

    async def on_host(self, step: Callable[[Any], Awaitable[Any]]) -> Any:
        return await step(self)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        self.asked.append(tuple(argv))
        if isinstance(self.meminfo, Exception):
            raise self.meminfo
        return Completed(0, self.meminfo)

    def show(self, body: GpuSampled) -> None:
        self.shown.append(body)

    def post(self, body: Warned) -> None:
        self.posted.append(body)

    async def play(self) -> World:
        """Until all runs are over and one more was asked for."""
        watch = asyncio.create_task(watch_gpus(self, self, self.clock))  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            await asyncio.wait({watch, asyncio.ensure_future(self.over.wait())}, return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
        return self

    def cards(self, which: int = -1) -> list[tuple[int, bool]]:
        """Index, and whether it is lost, of each card in one of the shown ticks."""
        return [(card["index"], bool(card["lost"])) for card in self.shown[which].gpus]


TICK = row(0) + row(1)


async def test_a_loop_that_dies_is_started_again() -> None:
    """Its cards are shown as long as it lives, and after."""
    world = await World([TICK, TICK], [TICK, TICK]).play()
    assert len(world.argvs) == 3
    assert world.cards() == [(0, False), (1, False)]
    assert all(stream.closed.is_set() for stream in world.streams)


async def test_the_pause_grows_while_it_does_not_stay_and_starts_anew_after_a_good_run() -> None:
    """A program that prints one tick and dies is not started every second for ever."""
    dying: list[Script] = [[TICK, TICK]] * 8
    world = await World(*dying, [TICK, TICK, 20.0, TICK], [TICK]).play()
    assert world.started_at[8] - world.started_at[7] == LAST_RETRY_S
    assert world.started_at[9] - world.started_at[8] == pytest.approx(21.0)


async def test_a_loop_that_hangs_is_ended_and_started_again() -> None:
    """The stream is closed, so that nothing of it stays on the host."""
    world = await World([TICK, TICK, HANG], [TICK, TICK]).play()
    assert world.streams[0].closed.is_set()
    assert world.started_at[1] - world.started_at[0] >= SILENT_S
    assert any("said nothing for 30 s" in (body.problem or "") for body in world.shown)


async def test_a_slow_first_answer_is_no_hang() -> None:
    """Without persistence mode eight cards take over ten seconds."""
    world = await World([SILENT_S - 1.0, TICK, SILENT_S - 1.0, TICK]).play()
    assert all(body.problem is None for body in world.shown)


async def test_of_a_burst_only_the_newest_is_now() -> None:
    """Thirty buffered ticks are one moment."""
    world = await World([TICK * 30]).play()
    assert len(world.shown) == 1


@pytest.mark.parametrize("run", [HostError("no such program", evidence=("nvidia-smi: not found",)), []])
async def test_a_host_without_nvidia_smi_says_so_and_is_asked_again(run: Any) -> None:
    """It may come up later."""
    world = await World(run, [TICK, TICK]).play()
    assert "nvidia-smi" in (world.shown[0].problem or "")
    assert world.cards() == [(0, False), (1, False)]


async def test_error_text_is_shown_as_it_is() -> None:
    """A driver mismatch, by its name and remedy, until it is gone."""
    world = await World([b"Failed to initialize NVML: Driver/library version mismatch\n"], [TICK, TICK]).play()
    assert (world.shown[0].problem or "").endswith("reload the driver or reboot the host")
    assert world.shown[-1].problem is None


async def test_a_field_that_this_driver_does_not_know_is_left_out_of_the_next_run() -> None:
    """The others are read as before."""
    short = b"".join(b", ".join(line.split(b", ")[:-1]) + b"\n" for line in TICK.splitlines())
    world = await World([b'Field "mig.mode.current" is not a valid field to query.\n'], [short, short]).play()
    assert "mig.mode.current" not in " ".join(world.argvs[1])
    assert world.cards() == [(0, False), (1, False)]


async def test_a_card_that_ends_nvidia_smi_does_not_hide_the_others() -> None:
    """It is named by its bus alone; the others are asked without it, and it stands among them as lost."""
    lost = b"Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system\n"
    world = await World([TICK, TICK, lost], [row(0), row(0)], [TICK, TICK]).play()
    assert world.argvs[1][3:5] == ("-i", "0")
    assert "-i" not in world.argvs[2]
    assert [(0, False), (1, True)] in [world.cards(which) for which in range(len(world.shown))]


async def test_links_are_read_while_the_cards_work() -> None:
    """For the record of the attempt."""
    world = await World([TICK, TICK]).play()
    assert world.under_load.to_json() == [{"index": n, "gen": 5, "width": 16} for n in (0, 1)]


async def test_a_number_that_is_none_is_warned_of_once_over_all_runs() -> None:
    """Once for each card and field, however often it comes and however often nvidia-smi is started."""
    odd = row(0, **{"utilization.gpu": "9223372036854776000"}) + row(1, **{"power.draw": "-4"})
    world = await World([odd, odd, odd], [odd, odd]).play()
    assert [body.text.split(" is outside")[0] for body in world.posted] == [
        "GPU 0: nvidia-smi's utilization.gpu 9223372036854776000",
        "GPU 1: nvidia-smi's power.draw -4",
    ]
    assert world.shown[-1].gpus[0]["utilization_pct"] is None
    assert world.shown[-1].gpus[1]["power_w"] is None


UNIFIED = row(0, name="NVIDIA GB10", **{"memory.used": "[N/A]", "memory.total": "[N/A]"})


async def test_a_card_without_memory_of_its_own_shows_the_hosts_read_now_and_then() -> None:
    """Not with every tick, and with its source."""
    world = await World([UNIFIED, 1.0, UNIFIED, 1.0, UNIFIED, 1.0, UNIFIED, 1.0, UNIFIED]).play()
    card = world.shown[-1].gpus[0]
    assert (card["memory_total_mib"], card["memory_used_mib"], card["memory_source"]) == (
        124_610,
        8_822,
        "/proc/meminfo",
    )
    assert world.asked == [("cat", "/proc/meminfo")] * 2


async def test_memory_of_the_host_that_cannot_be_read_is_unknown() -> None:
    """The card is shown all the same."""
    world = World([UNIFIED, UNIFIED])
    world.meminfo = HostError("`cat` did not end within 5 s")
    card = (await world.play()).shown[-1].gpus[0]
    assert (card["utilization_pct"], card["memory_total_mib"], card["memory_source"]) == (90, None, None)


async def test_a_card_with_memory_of_its_own_never_has_the_hosts_asked() -> None:
    """Whatever it says of itself: here its cells are unreadable."""
    hidden = row(0, **{"memory.used": "[N/A]", "memory.total": "[N/A]"})
    world = await World([hidden, hidden]).play()
    assert world.asked == []
    assert world.shown[-1].gpus[0]["memory_total_mib"] is None
