"""A connection is opened, watched, lost and opened again; the steps given to it survive that."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from runner.lines import Line, Lines, session_over

from ddconsole.core.errors import UnreachableError
from ddconsole.runner.session import LAST_RETRY_S
from ddconsole.runner.tasks import end_task


async def test_the_first_failure_is_final_for_a_run() -> None:
    """`ddconsole run` must end with exit code 5, not try for ever."""
    session, notes, _ = session_over(Lines(UnreachableError("no route to ct200")))
    with pytest.raises(UnreachableError, match="no route"):
        await session.host()
    assert notes.states() == ["connecting", "unreachable"]


async def test_a_patient_session_tries_again_with_growing_waits() -> None:
    """A console opened before the host is up comes to life with it; waits grow, with jitter, up to a limit."""
    session, notes, clock = session_over(Lines(*[UnreachableError("no route to ct200")] * 12), patient=True)
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
