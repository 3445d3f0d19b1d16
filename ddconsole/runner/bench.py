"""Everything that an attempt works with, in one hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ddconsole.core.ports import Clock, Connector, Engine, Launcher, Lease, RunLock, Sandbox, Store
    from ddconsole.core.profile import Profile


END_S = 60.0


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts that the command line wires together for one profile.

    Attributes:
        name: the profile's name, under which the store keeps its queue.
        read_only: nothing is changed: no edit, no run, no record of what is seen.
        version: ddconsole's own, kept with every result.
        lock: keeps other runners of this host away on this machine, `lease` those on other machines.
        end_s: seconds that ending the engine may take when a run is over, its grace included, before a host that does
            not answer is given up.
        digest: hash of the profile's file, kept with every result.
    """

    name: str
    profile: Profile
    engine: Engine
    launcher: Launcher
    connector: Connector
    open_sandbox: Callable[[], Awaitable[Sandbox]]
    clock: Clock
    open_store: Callable[[], Store]
    lock: RunLock
    lease: Lease
    version: str = ""
    digest: str = ""
    read_only: bool = False
    end_s: float = END_S
