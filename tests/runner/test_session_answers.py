"""What a session does about connections that want an answer, have something to say, or stand and do not answer."""

from __future__ import annotations

import asyncio

import pytest
from runner.lines import Line, Lines, session_over

from ddconsole.core.errors import AnswerNeededError
from ddconsole.core.events import Connection, Warned
from ddconsole.runner.session import ANSWER_RETRY_S


async def test_a_first_failure_is_final_for_whoever_asks_again() -> None:
    """A question that was cancelled must not come up a second time because two parts want the host."""
    lines = Lines(AnswerNeededError("cancelled"), Line())
    one, _, _ = session_over(lines)
    for _ in range(2):
        with pytest.raises(AnswerNeededError, match="cancelled"):
            await one.host()
    assert lines.asked == 1


async def test_tries_that_need_an_answer_are_far_apart() -> None:
    """Each is a login that fails, and hosts bar who fails too often."""
    lines = Lines(*(AnswerNeededError("a code") for _ in range(3)), Line())
    one, _, clock = session_over(lines, patient=True)
    before = clock.monotonic()
    async with asyncio.timeout(10):
        await one.host()
    assert clock.monotonic() - before >= 3 * ANSWER_RETRY_S / 2
    await one.close()


async def test_what_a_connection_has_to_say_is_said_once() -> None:
    """Not again after each reconnect."""
    notes_of_it = ("the agent is dead", "a new key was recorded")
    first, second = Line(*notes_of_it), Line(*notes_of_it)
    one, notes, _ = session_over(Lines(first, second), patient=True)
    await one.give_up(await one.host(), "cut")
    await one.host()
    assert [body.text for body in notes.bodies if isinstance(body, Warned)] == list(notes_of_it)
    await one.close()


async def test_a_connection_that_never_answers_is_closed_again() -> None:
    """It must not stay open behind the next one."""
    deaf = Line(cut=True)
    one, notes, _ = session_over(Lines(deaf, Line()), patient=True)
    await one.host()
    assert deaf.closed
    assert [body.state for body in notes.bodies if isinstance(body, Connection)][:3] == [
        "connecting", "unreachable", "connecting",
    ]  # fmt: skip
    await one.close()
