"""What a session does about connections that want an answer, have something to say, or stand and do not answer."""

from __future__ import annotations

import asyncio

import pytest
from fakes.clock import VirtualClock

from ddconsole.core.errors import AnswerNeededError, UnreachableError
from ddconsole.core.events import Body, Connection, Warned
from ddconsole.runner.session import ANSWER_RETRY_S, Session


class Line:
    """A host with notes, which may be deaf."""

    name = "ct200"
    notes = ("the agent is dead", "a new key was recorded")

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.closed = False

    async def ping(self) -> float:
        if self.deaf:
            raise UnreachableError("no answer")
        return 0.01

    async def close(self) -> None:
        self.closed = True


class Lines:
    """Hands out what a test lined up: hosts, and errors to raise."""

    def __init__(self, *turns: Line | UnreachableError) -> None:
        self.turns = list(turns)
        self.asked = 0

    async def connect(self) -> Line:
        self.asked += 1
        turn = self.turns.pop(0)
        if isinstance(turn, UnreachableError):
            raise turn
        return turn


class Notes:
    """A journal that only remembers."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []

    async def emit(self, body: Body) -> None:
        self.bodies.append(body)

    def tell(self, body: Body) -> None:
        self.bodies.append(body)


def session(lines: Lines, *, patient: bool) -> tuple[Session, Notes, VirtualClock]:
    notes, clock = Notes(), VirtualClock()
    return Session(lines, notes, clock, patient=patient), notes, clock  # type: ignore[arg-type]


async def test_a_first_failure_is_final_for_whoever_asks_again() -> None:
    """A question that was cancelled must not come up a second time because two parts want the host."""
    lines = Lines(AnswerNeededError("cancelled"), Line())
    one, _, _ = session(lines, patient=False)
    for _ in range(2):
        with pytest.raises(AnswerNeededError, match="cancelled"):
            await one.host()
    assert lines.asked == 1


async def test_tries_that_need_an_answer_are_far_apart() -> None:
    """Each is a login that fails, and hosts bar who fails too often."""
    lines = Lines(*(AnswerNeededError("a code") for _ in range(3)), Line())
    one, _, clock = session(lines, patient=True)
    before = clock.monotonic()
    async with asyncio.timeout(10):
        await one.host()
    assert clock.monotonic() - before >= 3 * ANSWER_RETRY_S / 2
    await one.close()


async def test_what_a_connection_has_to_say_is_said_once() -> None:
    """Not again after each reconnect."""
    first, second = Line(), Line()
    one, notes, _ = session(Lines(first, second), patient=True)
    await one.give_up(await one.host(), "cut")
    await one.host()
    assert [body.text for body in notes.bodies if isinstance(body, Warned)] == list(Line.notes)
    await one.close()


async def test_a_connection_that_never_answers_is_closed_again() -> None:
    """It must not stay open behind the next one."""
    deaf = Line(deaf=True)
    one, notes, _ = session(Lines(deaf, Line()), patient=True)
    await one.host()
    assert deaf.closed
    assert [body.state for body in notes.bodies if isinstance(body, Connection)][:3] == [
        "connecting", "unreachable", "connecting",
    ]  # fmt: skip
    await one.close()
