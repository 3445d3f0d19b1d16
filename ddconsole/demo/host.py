"""The demo host: an ssh server on the loopback interface, a process of its own.

It accepts one throw-away key, runs commands as real processes in its home folder, and forwards to loopback ports
only. It ends by itself some time after its last connection, and takes the engines in its home with it, unless one
was kept on purpose.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.demo.connector import LINGER_S
from ddconsole.demo.home import prepare_home
from ddconsole.demo.host_engines import end_engines, engine_is_kept
from ddconsole.demo.host_session import Sessions
from ddconsole.demo.host_state import ADDRESS, DemoHostInfo, StateDir, write_private

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

FIRST_VISIT_S = 15.0
"""Whoever started a host needs some time to come, however short the linger time is."""

KEEP_CHECK_S = 1.0
"""How often a host that lingers looks whether the kept engine still runs."""


class Door:
    """Counts connections, and knows when the last one has been gone for long enough."""

    def __init__(self, linger_s: float | None, is_kept: Callable[[], bool]) -> None:
        self._linger_s = linger_s
        self._is_kept = is_kept
        self._open: set[asyncssh.SSHServerConnection] = set()
        self._was_visited = False
        self._changed = asyncio.Event()

    def enter(self, connection: asyncssh.SSHServerConnection) -> None:
        """A client connects."""
        self._open.add(connection)
        self._was_visited = True
        self._changed.set()

    def leave(self, connection: asyncssh.SSHServerConnection | None) -> None:
        """A client is gone."""
        self._open -= {connection}
        self._changed.set()

    def turn_out(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            connection.close()

    async def wait_deserted(self) -> None:
        """Return when nobody has been here for the linger time and no engine is kept; never without a linger time."""
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._patience())
            except TimeoutError:
                if not self._is_kept():
                    return
                await asyncio.sleep(KEEP_CHECK_S)

    def _patience(self) -> float | None:
        if self._open or self._linger_s is None:
            return None
        return self._linger_s if self._was_visited else max(FIRST_VISIT_S, self._linger_s)


class Guest(asyncssh.SSHServer):
    """One client's connection."""

    def __init__(self, door: Door, key: asyncssh.SSHKey) -> None:
        self._door = door
        self._key = key
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Called for each connection, before anybody is who they say."""
        self._connection = conn
        self._door.enter(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called once for each connection that was made."""
        self._door.leave(self._connection)

    def public_key_auth_supported(self) -> bool:
        """Keys are the only way in."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whoever holds the throw-away key may be anybody."""
        return key == self._key

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        """Forward to this machine's loopback only.

        Raises:
            ChannelOpenError: administratively prohibited, for any other place.
        """
        if dest_host not in LOOPBACK:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "the demo host forwards to loopback only"
            )
        return True


def load_keys(state: StateDir) -> tuple[asyncssh.SSHKey, asyncssh.SSHKey]:
    """The host's and the client's key of this folder, made once."""
    for path in (state.host_key, state.client_key):
        if not path.exists():
            key = asyncssh.generate_private_key("ssh-ed25519", comment="ddconsole demo, throw-away")
            write_private(path, key.export_private_key())
    return asyncssh.read_private_key(str(state.host_key)), asyncssh.read_private_key(str(state.client_key))


def _public(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


async def serve(
    state: StateDir,
    *,
    port: int = 0,
    linger_s: float | None = LINGER_S,
    on_ready: Callable[[DemoHostInfo], None] = lambda info: None,
) -> None:
    """Serve until SIGINT, SIGTERM, or desertion. The caller holds `state.serving()`.

    Raises:
        OSError: the port is taken.
    """
    prepare_home(state.home)
    host_key, client_key = load_keys(state)
    door = Door(linger_s, lambda: engine_is_kept(state.home))
    public = client_key.convert_to_public()
    server = await asyncssh.listen(
        ADDRESS,
        port,
        server_factory=lambda: Guest(door, public),
        server_host_keys=[host_key],
        process_factory=Sessions(state.home).serve,
        encoding=None,
        allow_scp=False,
        line_editor=False,
        keepalive_interval=15,
        keepalive_count_max=3,
    )
    try:
        on_ready(_announce(state, server.get_port(), host_key))
        await _until_ended(door)
    finally:
        ours = _is_ours(state)
        if ours:
            state.info.unlink(missing_ok=True)
        server.close()
        door.turn_out()
        await server.wait_closed()
        if ours:
            await asyncio.to_thread(end_engines, state.home)


def _is_ours(state: StateDir) -> bool:
    """Whether the folder is still this host's. One that was deleted and made anew has another host, and its engines."""
    info = state.read_info()
    return info is not None and info.pid == os.getpid()


def _announce(state: StateDir, port: int, host_key: asyncssh.SSHKey) -> DemoHostInfo:
    write_private(state.known_hosts, f"[{ADDRESS}]:{port} {_public(host_key)}\n".encode())
    info = DemoHostInfo(
        pid=os.getpid(),
        port=port,
        host_key_public=_public(host_key),
        client_key_path=str(state.client_key),
        known_hosts_path=str(state.known_hosts),
        home=str(state.home),
        started=time.time(),
    )
    state.write_info(info)
    return info


async def _until_ended(door: Door) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    ends = [asyncio.create_task(asked.wait()), asyncio.create_task(door.wait_deserted())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()


def main(args: list[str] | None = None) -> int:
    """Run detached, as `ensure_demo_host` starts it. A byte on `--ready-fd` says that it listens."""
    parser = argparse.ArgumentParser(prog="python -m ddconsole.demo.host", description=__doc__)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--linger", type=float, default=LINGER_S)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--detach", action="store_true", help="go on as a child of init")
    options = parser.parse_args(args)
    if options.detach and os.fork():
        return 0

    def tell(_: DemoHostInfo) -> None:
        if options.ready_fd is not None:
            os.write(options.ready_fd, b"1")
            os.close(options.ready_fd)

    state = StateDir(options.state_dir)
    with state.serving() as mine:
        if not mine:
            sys.stderr.write(f"another demo host serves {state.path}\n")
            return 3
        asyncio.run(serve(state, port=options.port, linger_s=options.linger, on_ready=tell))
    return 0


if __name__ == "__main__":
    sys.exit(main())
