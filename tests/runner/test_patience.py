"""How long a boot is waited for, against an engine that is asked every second and logs each question."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.clock import VirtualClock
from fakes.scripted import NoStream, Script
from runner.world import Opened, World, tree

from ddconsole.core import events
from ddconsole.core.ports import Launched
from ddconsole.core.profile import Profile
from ddconsole.core.progress import BootProgress, Download, Phase, ShardBar
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.runner.activity import Io
from ddconsole.runner.patience import DOWNLOADING, LONGEST_LOOK_S, PERHAPS, Patience, doing, may_download

STAMP = "[2026-12-02 14:00:00 TP0] "
MAIN = "[2026-12-02 14:00:00] "
INIT = f"{STAMP}Init parallel begin.\n"
WARMUP = f"{STAMP}Load weight begin.\n{MAIN}INFO:     Application startup complete.\n"
FIRED = f"{MAIN}The server is fired up and ready to roll!\n"
POLL = f'{MAIN}INFO:     127.0.0.1:51450 - "GET /ready HTTP/1.1" 503 Service Unavailable\n'
OOM = (
    f"{STAMP}Scheduler hit an exception: Traceback (most recent call last):\n"
    f"{STAMP}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 3 has a total capacity of"
    " 94.97 GiB of which 1.10 GiB is free.\n"
)
LIMIT_S = 20.0
BOOT_LIMIT_S = 120.0


class Growing(NoStream):
    """A log that begins with `text` and grows by a line each second, for as long as it is followed."""

    def __init__(self, text: str, line: Callable[[float], str], clock: Any) -> None:
        super().__init__()
        self._text, self._line, self._clock = text, line, clock

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._text:
            yield self._text.encode()
        while True:
            await self._clock.sleep(1.0)
            if line := self._line(self._clock.monotonic()):
                yield line.encode()


def log_is(world: World, text: str, line: Callable[[float], str] = lambda at: POLL) -> None:
    """Put such a log and a real tracker behind the scripted launcher and engine."""
    launcher: Any = world.bench.launcher
    engine: Any = world.bench.engine

    async def follow(host: Any, launched: Launched, offset: int) -> Growing:
        return Growing(text[offset:], line, world.bench.clock)

    launcher.follow, engine.tracker = follow, BootLog


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every silence has a limit of 20 s, and a whole boot one of 120 s."""
    monkeypatch.setattr("ddconsole.core.profile.Profile.stall_s", lambda self, phase: LIMIT_S)
    monkeypatch.setattr("ddconsole.core.profile.Profile.boot_limit_s", BOOT_LIMIT_S)


async def failure_of(world: World) -> dict[str, Any]:
    """How the one experiment failed."""
    await world.add(tree())
    await asyncio.wait_for(world.drain(), 60)
    failure: dict[str, Any] = world.of(events.ExperimentFinished)[0].failure  # type: ignore[attr-defined]
    return failure


def seconds_in(failure: dict[str, Any]) -> float:
    """The first number of seconds that a failure names: how long it was waited for."""
    found = re.search(r"(\d+) s ", failure["what"])
    assert found is not None
    return float(found[1])


def progressed(world: World) -> list[Any]:
    """What was told of the boot."""
    return list(world.of(events.BootProgressed))


@pytest.mark.parametrize(
    ("text", "phase"), [(WARMUP, "warmup"), (WARMUP + FIRED, "ready")], ids=["warm-up", "fired up"]
)
async def test_a_hang_behind_the_open_port_ends_though_its_log_grows_by_our_own_polls(
    world: Opened, text: str, phase: str
) -> None:
    """Each question is an access line; were it life, the longest silence, that of a JIT, would have no age."""
    async with world(Script(boots=["hangs"])) as w:
        log_is(w, text)
        failure = await failure_of(w)
        assert (failure["cause"], failure["phase"]) == ("stalled", phase)
        assert LIMIT_S <= seconds_in(failure) < LIMIT_S + 5
        assert max(body.silent_s for body in progressed(w)) > LIMIT_S - 5


async def test_an_engine_that_talks_for_ever_ends_at_the_limit_of_the_whole_boot(world: Opened) -> None:
    """It is never silent, and never ready; the limit was told all the while."""
    async with world(Script(boots=["hangs"])) as w:
        log_is(w, INIT, lambda at: f"{STAMP}still at it: {at}\n")
        failure = await failure_of(w)
        assert (failure["cause"], failure["phase"]) == ("boot-limit", "init")
        assert f"limit of a whole boot {BOOT_LIMIT_S:.0f} s" in failure["what"]
        assert "stalls.boot" in failure["advice"]
        assert any("still at it" in line for line in failure["evidence"])
        assert BOOT_LIMIT_S <= seconds_in(failure) < BOOT_LIMIT_S + 5
        assert {body.limit_s for body in progressed(w)} == {BOOT_LIMIT_S}


def hang(world: World, question: str, die_after_s: float | None) -> list[float]:
    """`question` to the engine is never answered; while it is asked the process dies. Returns when it died."""
    engine, died = world.bench.engine, list[float]()

    async def never(*_: Any) -> Any:
        if die_after_s is not None:
            await world.bench.clock.sleep(die_after_s)
            died.append(world.bench.clock.monotonic())
            world.script.living.clear()
        await asyncio.Event().wait()

    setattr(engine, question, never)
    return died


@pytest.mark.parametrize(
    "question", ["ready", "identify", "speculates"], ids=["/ready", "/server_info", "the first request"]
)
async def test_death_ends_a_question_that_hangs(world: Opened, question: str) -> None:
    """A health check may take 25 s and the first request 600 s; nobody waits for a dead engine's answer."""
    async with world() as w:
        log_is(w, WARMUP + FIRED + OOM)
        died = hang(w, question, die_after_s=9.0)
        failure = await failure_of(w)
        assert (failure["cause"], failure["phase"]) == ("gpu-oom", "ready")
        finished = next(event for event in w.seen if isinstance(event.body, events.ExperimentFinished))
        since = w.bench.clock.now() - finished.t
        seen_s = w.bench.clock.monotonic() - since.total_seconds() - died[0]
        assert seen_s < 10.0, "a second until the look, two for the last lines of the log, and what the store takes"
        told = [body.elapsed_s for body in progressed(w)]
        assert max(told) >= 8.0, "progress goes on being told"
        assert max(b - a for a, b in pairwise(told)) < 5.0


@pytest.mark.parametrize("question", ["ready", "speculates"])
async def test_a_question_that_hangs_for_ever_ends_at_the_limit_of_ready(world: Opened, question: str) -> None:
    """The engine lives and says nothing more."""
    async with world() as w:
        log_is(w, WARMUP + FIRED)
        hang(w, question, die_after_s=None)
        failure = await failure_of(w)
        assert (failure["cause"], failure["phase"]) == ("stalled", "ready")
        assert "limit 20 s" in failure["what"]


async def test_slow_answers_do_not_pile_up_and_are_no_error(world: Opened) -> None:
    """`/health` takes 12 s a call and says "not yet" twice: one question at a time, and then the boot goes on."""
    async with world() as w:
        log_is(w, WARMUP + FIRED, lambda at: f"{MAIN}busy\n")
        engine: Any = w.bench.engine
        asked, open_now, most = 0, 0, 0

        async def ready(base_url: str) -> bool:
            nonlocal asked, open_now, most
            asked, open_now = asked + 1, open_now + 1
            most = max(most, open_now)
            await w.bench.clock.sleep(12.0)
            open_now -= 1
            return asked == 3

        engine.ready = ready
        await w.add(tree())
        await asyncio.wait_for(w.drain(), 60)
        assert w.outcomes() == ["passed"]
        assert (asked, most, open_now) == (3, 1, 0)


async def test_a_silent_init_whose_files_grow_is_a_download_and_no_stall(
    world: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """600 GB without a bar: it is said, for as long as files grow; when they stop it is a hang."""
    async with world(Script(boots=["hangs"])) as w:
        log_is(w, INIT, lambda at: "")
        clock, looks, pulled_s = w.bench.clock, list[float](), 60.0

        async def io_of(host: Any, launched: Launched) -> Io:
            looks.append(clock.monotonic())
            return Io(1_000, int(100e6 * min(looks[-1] - looks[0], pulled_s)))

        monkeypatch.setattr("ddconsole.runner.activity.io_of", io_of)
        failure = await failure_of(w)
        assert (failure["cause"], failure["phase"]) == ("stalled", "init")
        assert looks[-1] - looks[0] > pulled_s + LIMIT_S - 10
        assert "6.0 GB written" in failure["evidence"][-1]
        guessed = [body for body in progressed(w) if body.doing == PERHAPS]
        assert guessed
        assert all(body.silent_s >= 10 for body in guessed)
        assert not [body for body in progressed(w) if body.silent_s < 10 and body.doing]


async def test_a_download_with_a_bar_is_told_and_keeps_the_boot_alive(world: Opened) -> None:
    """Its bar is a sign of life; its bytes are no shards."""

    states = iter(range(1, 61))

    def bar(at: float) -> str:
        done = next(states, None)
        return "" if done is None else f"a.bin:   1%|    | {done / 1000:.3f}G/892G [00:03<00:26, 30.3MB/s]\r"

    async with world(Script(boots=["hangs"])) as w:
        log_is(w, INIT, bar)
        failure = await failure_of(w)
        assert failure["cause"] == "stalled"
        told = [body for body in progressed(w) if body.download is not None]
        assert {body.doing for body in told} == {DOWNLOADING}
        assert told[-1].elapsed_s > 60 + LIMIT_S / 2
        assert told[-1].download["bytes_total"] == 892_000_000_000
        assert told[-1].download["bytes"] == 60_000_000
        assert all(body.target is None for body in told)


def patience(silent_s: float, *, grew_at: float | None = None, phase: Phase = Phase.INIT) -> tuple[Patience, Any]:
    """A patience with a log that has been silent for so long."""
    clock: Any = VirtualClock()
    tracker = SimpleNamespace(progress=BootProgress(phase))
    follower: Any = SimpleNamespace(silent_s=lambda: silent_s, tracker=tracker, recent=["the last line"])
    activity: Any = SimpleNamespace(grew_at=grew_at, grows=False, words=lambda: "nothing read")
    profile = Profile.model_validate({"schema": "1", "host": "h", "engine": {"command": ["x"], "model": "m"}})
    return Patience(profile, follower, activity, clock), clock


def test_an_engine_that_was_kept_is_not_silent_since_its_own_boot() -> None:
    """It only measured for hours, which logs routine; the next experiment's patience begins with it."""
    waits, clock = patience(7_200.0, phase=Phase.READY)
    assert waits.exhausted() is None
    clock.seconds += LIMIT_S + 1
    failure = waits.exhausted()
    assert failure is not None
    assert failure.cause == "stalled"


def test_what_an_engine_does_in_the_proof_is_not_blamed_for_the_silence_before() -> None:
    """`/ready` came late, and then the first request takes its time."""
    waits, clock = patience(7_200.0, phase=Phase.READY)
    clock.seconds += LIMIT_S - 1
    waits.renew()
    clock.seconds += 2
    assert waits.exhausted() is None


def test_an_outage_does_not_count_for_the_limit_of_the_whole_boot() -> None:
    """A laptop that slept over night saw none of it."""
    waits, clock = patience(0.0)
    clock.seconds += 30_000.0
    assert waits.exhausted() is None
    failure = None
    for _ in range(int(BOOT_LIMIT_S / LONGEST_LOOK_S)):
        assert failure is None
        clock.seconds += LONGEST_LOOK_S
        failure = waits.exhausted()
    assert failure is not None
    assert failure.cause == "boot-limit"


@pytest.mark.parametrize(
    ("progress", "may"),
    [
        (BootProgress(Phase.INIT), True),
        (BootProgress(Phase.LOAD_TARGET), True),
        (BootProgress(Phase.LOAD_TARGET, target=ShardBar(0, 64)), False),
        (BootProgress(Phase.LOAD_DRAFT, target=ShardBar(64, 64)), True),
        (BootProgress(Phase.LOAD_DRAFT, target=ShardBar(64, 64), draft=ShardBar(1, 3)), False),
        (BootProgress(Phase.KV), False),
        (BootProgress(Phase.GRAPHS), False),
        (BootProgress(Phase.READY), False),
    ],
)
def test_only_before_its_weights_are_loaded_may_an_engine_be_fetching_them(progress: BootProgress, may: bool) -> None:
    """Later, files that grow are a log or a cache, and no sign of life."""
    assert may_download(progress) is may
    grows: Any = SimpleNamespace(grows=True)
    assert doing(progress, 42.0, grows) == (PERHAPS if may else None)
    assert doing(progress, 3.0, grows) is None


def test_a_download_with_a_bar_is_no_guess() -> None:
    """Whatever the log says beside it."""
    still: Any = SimpleNamespace(grows=False)
    assert doing(BootProgress(download=Download(1, 2)), 0.0, still) == DOWNLOADING
