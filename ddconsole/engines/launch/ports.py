"""TCP ports of the host: who listens, and which are free."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.engines.launch.scripts import LISTENERS, PLAIN, PRELUDE, USED_PORTS

if TYPE_CHECKING:
    from ddconsole.core.ports import Host

FIRST_PORT: Final = 30_000
LAST_PORT: Final = 30_999
"""Where a port is chosen for `port: auto`: below the range from which Linux gives ports to clients."""

NO_TOKEN: Final = "-"
"""Stands for no launch; no process carries it."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that listens on a port. `pid` 0 belongs to another user and cannot be seen.

    Attributes:
        session: the session that it is in.
        carries_token: it has the token that was asked for in its environment.
    """

    pid: int
    session: int
    carries_token: bool
    user: str
    command: str

    def words(self) -> str:
        """Who it is, in a few words."""
        if self.pid == 0:
            return f"a process of {self.user}"
        return f"pid {self.pid} ({self.user}{f', {self.command}' if self.command else ''})"


async def listeners(host: Host, port: int, token: str = NO_TOKEN) -> list[Listener]:
    """Who listens on `port` of the host."""
    done = await host.run(["sh", "-c", PLAIN + PRELUDE + LISTENERS, "sh", str(port), token], timeout=30)
    found = []
    for line in done.stdout.splitlines():
        mark, *cells = line.split("\t")
        if mark == "listener" and len(cells) == 5 and cells[0].isdigit():
            pid, session, ours, user, command = cells
            found.append(Listener(int(pid), int(session or 0), ours == "yes", user, command.strip()))
    return found


async def choose_port(host: Host) -> int:
    """A free TCP port of the host between FIRST_PORT and LAST_PORT, at random so that two consoles rarely meet.

    Raises:
        HostError: all of them are taken.
    """
    done = await host.run(["sh", "-c", PLAIN + PRELUDE + USED_PORTS, "sh"], timeout=30)
    used = {int(word, 16) for word in done.stdout.split() if len(word) == 4}
    free = [port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in used]
    if not free:
        raise HostError(
            f"no free TCP port between {FIRST_PORT} and {LAST_PORT} on {host.name}",
            advice="give engine.port in the profile",
        )
    return random.choice(free)
