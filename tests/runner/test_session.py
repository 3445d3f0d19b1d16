"""A connection is opened, watched, lost and opened again; the steps given to it survive that."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from fakes.clock import VirtualClock

from ddconsole.core.errors import UnreachableError
from ddconsole.core.events import Body, Connection
from ddconsole.runner.session import LAST_RETRY_S, Session
from ddconsole.runner.tasks import end_task


class Line:
    """A host whose line the test cuts."""

    name = "ct200"

    def __init__(self) -> None:
        self.cut = False
        self.closed = False

    async def ping(self) -> float:
        if self.cut:
            raise UnreachableError("the line is dead")
        return 0.012

    async def close(self) -> None:
        self.closed = True


class Lines:
    """Hands out lines, after as many failures as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.given: list[Line] = []

    async def connect(self) -> Line:
        if self.failures:
            self.failures -= 1
            raise UnreachableError("no route to ct200")
        self.given.append(Line())
        return self.given[-1]


class Notes:
    """A journal that only remembers."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []

    async def emit(self, body: Body) -> None:
        self.bodies.append(body)

    def tell(self, body: Body) -> None:
        self.bodies.append(body)

    def states(self) -> list[str]:
        """Connection states, repeats left out."""
        states = [body.state for body in self.bodies if isinstance(body, Connection)]
        return [s for n, s in enumerate(states) if n == 0 or states[n - 1] != s]


def session_over(lines: Lines, *, patient: bool = False) -> tuple[Session, Notes, VirtualClock]:
    notes, clock = Notes(), VirtualClock()
    return Session(lines, notes, clock, patient=patient), notes, clock  # type: ignore[arg-type]


async def test_the_first_failure_is_final_for_a_run() -> None:
    """`ddconsole run` must end with exit code 5, not try for ever."""
    session, notes, _ = session_over(Lines(failures=1))
    with pytest.raises(UnreachableError, match="no route"):
        await session.host()
    assert notes.states() == ["connecting", "unreachable"]


async def test_a_patient_session_tries_again_with_growing_waits() -> None:
    """A console opened before the host is up comes to life with it; waits grow, with jitter, up to a limit."""
    session, notes, clock = session_over(Lines(failures=12), patient=True)
    await session.host()
    waits = clock.slept[:12]
    assert all(0 < wait <= LAST_RETRY_S for wait in waits)
    assert waits[-1] > waits[0]
    assert notes.states()[-1] == "connected"
    await session.close()


async def test_a_step_is_repeated_on_the_next_connection() -> None:
    """A line that breaks inside a step costs a reconnection, not the step."""
    lines = Lines()
    session, notes, _ = session_over(lines)
    tries: list[Line] = []

    async def step(host: Line) -> str:
        tries.append(host)
        if len(tries) == 1:
            raise UnreachableError("cut")
        return "done"

    assert await session.on_host(step) == "done"  # type: ignore[arg-type]
    assert tries[0] is not tries[1]
    assert tries[0].closed
    assert notes.states() == ["connecting", "connected", "lost", "connecting", "connected"]
    await session.close()


async def test_a_dead_line_is_noticed_by_the_ping_alone() -> None:
    """Nobody has to send a command for a loss to be seen; who waits on `lost` hears of it."""
    lines = Lines()
    session, notes, _ = session_over(lines)
    await session.host()
    lost = session.lost
    lines.given[0].cut = True
    await asyncio.wait_for(lost.wait(), 5)
    assert "lost" in notes.states()
    assert await session.host() is lines.given[1]
    await session.close()


async def test_many_callers_share_one_connection() -> None:
    """Ten steps that start together open one connection, not ten."""
    lines = Lines()
    session, _, _ = session_over(lines)
    hosts = await asyncio.gather(*(session.host() for _ in range(10)))
    assert len(lines.given) == 1
    assert len(set(map(id, hosts))) == 1
    await session.close()


async def test_a_late_report_of_an_old_loss_does_not_end_the_new_line() -> None:
    """Two tasks may both find the old line dead; only the first one's word counts."""
    lines = Lines()
    session, _, _ = session_over(lines)
    old = await session.host()
    await session.give_up(old, "cut")
    fresh = await session.host()
    await session.give_up(old, "cut, said late")
    assert await session.host() is fresh
    await session.close()


async def test_closing_leaves_no_task_behind() -> None:
    """The ping ends with the session."""
    session, notes, _ = session_over(Lines())
    await session.host()
    await session.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        with suppress(asyncio.CancelledError):
            await end_task(task)
    assert others == []
    assert notes.states()[-1] == "closed"
