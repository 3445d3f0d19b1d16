"""Where the demo host keeps its keys and tells where it is; and who may be it.

One process holds the lock on `demo-host.lock` for as long as it serves. The lock, not a process id, says whether a
host runs: it cannot be stale.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USERNAME = "demo"
ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DemoHostInfo:
    """A running demo host, as `demo-host.json` tells it.

    Attributes:
        started: seconds since the epoch.
    """

    pid: int
    port: int
    host_key_public: str
    client_key_path: str
    known_hosts_path: str
    home: str
    started: float


@dataclass(frozen=True, slots=True)
class StateDir:
    """The files in the demo host's state folder, which is its owner's alone."""

    path: Path

    @property
    def home(self) -> Path:
        """The home folder of the user who logs in."""
        return self.path / "home"

    @property
    def info(self) -> Path:
        """Written when the host listens, removed before it stops."""
        return self.path / "demo-host.json"

    @property
    def log(self) -> Path:
        """What a detached host has to say."""
        return self.path / "demo-host.log"

    @property
    def host_key(self) -> Path:
        """The host's private key."""
        return self.path / "host_key"

    @property
    def client_key(self) -> Path:
        """The private key that opens the host."""
        return self.path / "client_key"

    @property
    def known_hosts(self) -> Path:
        """The host's public key, as an ssh client wants it."""
        return self.path / "known_hosts"

    def make(self) -> None:
        """Create the folder, closed to others."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    def read_info(self) -> DemoHostInfo | None:
        """What the last host wrote; None while there is nothing whole."""
        try:
            data = json.loads(self.info.read_text("utf-8"))
            return DemoHostInfo(**{name: data[name] for name in DemoHostInfo.__dataclass_fields__})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_info(self, info: DemoHostInfo) -> None:
        """Tell where the host is, to its owner alone."""
        write_private(self.info, json.dumps(asdict(info), indent=1).encode())

    @contextmanager
    def serving(self) -> Iterator[bool]:
        """Be the host of this folder while the block runs; False when another process is."""
        with self._locked("demo-host.lock", fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
            yield held

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Only one process at a time looks for a host and starts one."""
        with self._locked("demo-host.start.lock", fcntl.LOCK_EX):
            yield

    def is_served(self) -> bool:
        """Whether a host runs."""
        with self._locked("demo-host.lock", fcntl.LOCK_SH | fcntl.LOCK_NB) as held:
            return not held

    @contextmanager
    def _locked(self, name: str, operation: int) -> Iterator[bool]:
        self.make()
        handle = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, operation)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file by one that only its owner can read, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    part.replace(path)


def is_setting(name: str) -> bool:
    """Whether a variable sets how the demo plays (DDCONSOLE_DEMO_SPEED and its like); where its home is, does not."""
    return name.startswith("DDCONSOLE_DEMO_") and name != "DDCONSOLE_DEMO_HOME"


def login(info: DemoHostInfo) -> dict[str, Any]:
    """What an ssh client needs: host, port, username, client_keys, known_hosts, config, send_env, as plain values.

    The demo's settings go with each login, so that a host that runs already obeys the console that connects.
    """
    return {
        "host": ADDRESS,
        "port": info.port,
        "username": USERNAME,
        "client_keys": (info.client_key_path,),
        "known_hosts": (info.known_hosts_path,),
        "config": (),
        "send_env": {name: value for name, value in os.environ.items() if is_setting(name)},
    }


def login_command(info: DemoHostInfo) -> list[str]:
    """The argv that logs in with an ordinary OpenSSH client, whatever the user's own configuration says."""
    options = {"UserKnownHostsFile": info.known_hosts_path, "IdentitiesOnly": "yes"}
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-p", str(info.port), "-i", info.client_key_path, *flags, f"{USERNAME}@{ADDRESS}"]
