"""Puts the rooms together for one profile. The only place that knows which adapter stands behind which port."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from ddconsole import __version__
from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.paths import Paths, is_read_only, refuse_change
from ddconsole.adapters.run_lock import NoLock, console_name, console_token, run_lock
from ddconsole.adapters.sandbox import open_sandbox
from ddconsole.adapters.secrets import read_secrets
from ddconsole.adapters.store import SqliteStore
from ddconsole.core.errors import StoreError
from ddconsole.core.spec import SpecContext, SpecRefusal, parse
from ddconsole.engines.engine import make_engine, make_launcher
from ddconsole.engines.launch.lease import HostLease
from ddconsole.runner.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Asker, Connector, Host
    from ddconsole.core.profile import Profile
    from ddconsole.core.queue import Edit, Queue

DEMO = "demo"
LOCAL = "local"


def make_bench(
    loaded: LoadedProfile,
    asker: Asker | None = None,
    *,
    accept_new: bool = False,
    consent: Asker | None = None,
    take_over: bool = False,
) -> Bench:
    """Everything that a run of this profile works with. Nothing is connected or started yet.

    `asker` answers what a connection has to ask; `accept_new` takes an unknown host key unseen. `consent` is asked
    whether the host's service may be taken over, which `take_over` says already.

    Raises:
        RefusedError: `accept_new`, which writes known_hosts, and this ddconsole is read-only.
    """
    if accept_new and is_read_only():
        raise refuse_change()
    profile, paths = loaded.profile, Paths.from_environment()
    return Bench(
        name=loaded.name,
        profile=profile,
        engine=make_engine(profile, read_secrets(profile.engine.secrets)),
        launcher=make_launcher(profile, consent, take_over=take_over),
        connector=make_connector(profile, paths, asker, accept_new=accept_new),
        open_sandbox=open_sandbox,
        clock=SystemClock(),
        open_store=lambda: SqliteStore(paths.database, read_only=is_read_only()),
        lock=NoLock() if is_read_only() else run_lock(paths.state, profile.host),
        lease=HostLease(profile.launcher.state_dir, _token(paths.state), console_name()),
        version=__version__,
        digest=loaded.digest,
        read_only=is_read_only(),
    )


def _token(state: Path) -> str:
    """One for now where none can be kept: that console can look. Who works on a host needs the same folder's lock."""
    try:
        return console_token(state)
    except StoreError:
        return secrets.token_hex(16)


def make_connector(
    profile: Profile, paths: Paths, asker: Asker | None = None, *, accept_new: bool = False
) -> Connector:
    """What reaches the profile's host: this machine, the demo host, or an ssh alias by the profile's transport."""
    host = profile.host
    if host == LOCAL:
        from ddconsole.adapters.local import LocalConnector

        return LocalConnector()
    if host == DEMO:
        return DemoConnector(paths)
    from ddconsole.adapters.openssh import OpenSshConnector
    from ddconsole.adapters.ssh import SshConnector, SshTarget

    connector = OpenSshConnector if profile.transport == "openssh" else SshConnector
    return connector(SshTarget.parse(host), name=host, asker=asker, accept_new=accept_new)


def parse_edit(loaded: LoadedProfile) -> Callable[[str, Queue], Edit]:
    """Reads one line of the queue's language against a queue.

    The function raises SpecError, with the column, for what it cannot read.
    """

    def read(text: str, queue: Queue) -> Edit:
        command = parse(text, SpecContext.of(loaded.profile, queue))
        if isinstance(command, SpecRefusal):
            raise command.to_error(text)
        return command.edit

    return read


class DemoConnector:
    """Starts the demo host when it does not run, and connects to it as to any other host."""

    def __init__(self, paths: Paths) -> None:
        self._state_dir = paths.state / "demo"

    async def connect(self) -> Host:
        """A fresh connection.

        Raises:
            UnreachableError: the demo host could not be started or reached.
        """
        from ddconsole.adapters.ssh import SshConnector, SshTarget
        from ddconsole.demo.connector import ensure_demo_host
        from ddconsole.demo.host_state import login

        info = await asyncio.to_thread(ensure_demo_host, self._state_dir)
        return await SshConnector(SshTarget(**login(info)), name=DEMO).connect()
