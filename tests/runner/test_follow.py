"""The log is followed by offset: whatever is cut, no line is lost and none comes twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes.clock import VirtualClock
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.core.events import Body, FindingSeen, LogLines
from ddconsole.core.ports import AttemptKey, Launched
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.runner.follow import LogFollower

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DATA = Path(__file__).parent.parent / "engines" / "data"
FORK = (DATA / "boot-ddtree-fork-b16-B24-trained-8.log").read_bytes()
ODD = "│ naïve ██ τ ✔\r\n".encode() * 3 + b"\rbar 1\rbar 2\r\n\xff\xfe bad\n" + FORK[:9_000] + "τ=4.81 │ end\n".encode()
LAUNCHED = Launched("process", 42, 42, 1, "b", "t0ken", "/l", "/s", 30000)
KEY = AttemptKey("p", "E1", 1)


class Journal:
    """Remembers what it is given."""

    def __init__(self) -> None:
        self.bodies: list[tuple[Body, AttemptKey | None]] = []

    def show(self, body: Body, key: AttemptKey | None = None) -> None:
        self.bodies.append((body, key))

    post = show

    def of(self, kind: type[Body]) -> list[Any]:
        return [body for body, _ in self.bodies if isinstance(body, kind)]


class Stream:
    """Some bytes in chunks, then the end that the test gave it."""

    def __init__(self, data: bytes, size: int, end: Exception | None) -> None:
        self._data, self._size, self._end = data, size, end

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), self._size):
            yield self._data[start : start + self._size]
        if self._end is not None:
            raise self._end
        await asyncio.Event().wait()

    async def close(self) -> None:
        return


class CutLauncher:
    """Follows a log whose line is cut at each of `cuts`, the last stream staying open."""

    def __init__(self, data: bytes, cuts: list[int], size: int = 700, end: Exception | None = None) -> None:
        self._data, self._cuts, self._size = data, cuts, size
        self._end = end or UnreachableError("cut")
        self.opened = 0

    async def follow(self, host: Any, launched: Launched, offset: int) -> Stream:
        self.opened += 1
        cut = next((cut for cut in self._cuts if cut > offset), None)
        return Stream(self._data[offset:cut], self._size, None if cut is None else self._end)


class Session:
    """Gives a host again after each loss, after `outage_s`."""

    def __init__(self, clock: VirtualClock, outage_s: float = 0.0) -> None:
        self._clock, self._outage_s = clock, outage_s

    async def on_host(self, step: Callable[[Any], Any]) -> Any:
        while True:
            try:
                return await step(None)
            except UnreachableError:
                await self._clock.sleep(self._outage_s)


def follower_of(launcher: CutLauncher, outage_s: float = 0.0) -> tuple[LogFollower, Journal, VirtualClock]:
    clock, journal = VirtualClock(), Journal()
    session: Any = Session(clock, outage_s)
    sink: Any = journal
    starts: Any = launcher
    return LogFollower(session, starts, LAUNCHED, BootLog(), sink, clock), journal, clock


async def until(clock: VirtualClock, condition: Callable[[], bool]) -> None:
    """Let virtual time pass until the condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await clock.sleep(0.05)


async def followed(data: bytes, cuts: list[int], size: int, end: Exception | None = None) -> tuple[list[str], Any]:
    """The lines shown, and the tracker's state, after the whole log has come over a line that was cut."""
    follower, journal, clock = follower_of(CutLauncher(data, cuts, size, end))
    follower.start()
    await until(clock, lambda: follower.offset >= len(data))
    await follower.close()
    lines = [line for body in journal.of(LogLines) for line in body.lines]
    progress = follower.tracker.progress
    return lines, (follower.offset, follower.tracker.facts, progress.phase, progress.target, progress.draft)


@settings(max_examples=25, deadline=None)
@given(
    data=st.sampled_from([FORK, ODD]),
    cuts=st.lists(st.integers(1, 20_000), max_size=6),
    size=st.integers(1, 4_000).map(lambda size: max(size, 200)),
)
def test_cut_at_any_byte_no_line_is_lost_and_none_doubled(data: bytes, cuts: list[int], size: int) -> None:
    """Inside a line, a UTF-8 character, a bar or an escape sequence: as if the line had never been cut."""
    edges = sorted({cut for cut in cuts if cut < len(data)})
    assert asyncio.run(followed(data, edges, size)) == asyncio.run(followed(data, [], len(data)))


def test_cut_at_every_byte_of_odd_text() -> None:
    """Each byte of characters of three bytes, of `\\r\\n` and of a bar."""
    data = ODD[:140]
    whole = asyncio.run(followed(data, [], len(data)))
    assert asyncio.run(followed(data, list(range(1, len(data))), 1)) == whole


async def test_a_host_too_busy_for_one_more_command_is_asked_again() -> None:
    """The follower does not die of it in silence."""
    lines, (offset, *_) = await followed(FORK, [5_000], 700, HostError("no more channels"))
    assert offset == len(FORK)
    assert len(lines) == len(BootLog().feed(FORK, 0.0))


async def test_an_outage_is_no_silence_of_the_engine() -> None:
    """Half an hour without a line because the laptop slept is no stall; half an hour on a good line is."""
    follower, _, clock = follower_of(CutLauncher(FORK, [5_000]), outage_s=1800.0)
    follower.start()
    await until(clock, lambda: follower.offset >= 5_000)
    assert follower.silent_s() < 2
    await clock.sleep(1700.0)
    assert follower.silent_s() == 0
    await clock.sleep(110.0)
    await until(clock, lambda: follower.offset >= len(FORK))
    assert follower.silent_s() < 20
    await clock.sleep(1800.0)
    assert follower.silent_s() == pytest.approx(1800, abs=20)
    await follower.close()


async def test_warnings_of_the_log_are_told_with_their_evidence_and_again_for_the_next_attempt() -> None:
    """Whether they come while loading or in a pass; an engine that is kept is still the one that was warned of."""
    follower, journal, clock = follower_of(CutLauncher(FORK, []))
    follower.key = KEY
    follower.start()
    await until(clock, lambda: follower.offset >= len(FORK))
    (found,) = journal.of(FindingSeen)
    assert (found.level, found.code) == ("warn", "block-size-mismatch")
    assert "block size mismatch" in found.evidence[0]
    assert found.advice
    follower.key = KEY
    assert len(journal.of(FindingSeen)) == 1
    follower.key = AttemptKey("p", "E2", 1)
    assert [key and key.id for body, key in journal.bodies if isinstance(body, FindingSeen)] == ["E1", "E2"]
    await follower.close()
