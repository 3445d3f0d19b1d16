"""Connections as a session's tests want them, and a journal that remembers."""

from __future__ import annotations

from fakes.clock import VirtualClock

from ddconsole.core.errors import UnreachableError
from ddconsole.core.events import Body, Connection
from ddconsole.runner.session import Session


class Line:
    """A host whose line the test cuts; `notes` are what its connection has to say."""

    name = "ct200"

    def __init__(self, *notes: str, cut: bool = False) -> None:
        self.notes = notes
        self.cut = cut
        self.closed = False

    async def ping(self) -> float:
        if self.cut:
            raise UnreachableError("the line is dead")
        return 0.012

    async def close(self) -> None:
        self.closed = True


class Lines:
    """Hands out what a test lined up, hosts and errors to raise, and whole hosts after that."""

    def __init__(self, *turns: Line | UnreachableError) -> None:
        self._turns = list(turns)
        self.asked = 0
        self.given: list[Line] = []

    async def connect(self) -> Line:
        self.asked += 1
        turn = self._turns.pop(0) if self._turns else Line()
        if isinstance(turn, UnreachableError):
            raise turn
        self.given.append(turn)
        return turn


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
    """A session over these lines, in a time of its own."""
    notes, clock = Notes(), VirtualClock()
    return Session(lines, notes, clock, patient=patient), notes, clock  # type: ignore[arg-type]
