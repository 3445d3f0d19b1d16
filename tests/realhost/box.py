"""A small systemd machine for tests: booted in namespaces of this one, reached by ssh on the loopback interface."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from ddconsole.adapters.ssh import SshConnector, SshTarget
from ddconsole.core.ports import Completed, Host

BOOT = Path(__file__).with_name("boot.sh")
NEEDED = {
    "/lib/systemd/systemd": "systemd (Debian: systemd, dbus)",
    "/usr/sbin/sshd": "OpenSSH's sshd (Debian: openssh-server)",
    "/usr/bin/dbus-daemon": "a message bus (Debian: dbus)",
    "/usr/bin/python3": "a python3 of the system",
}
BOOT_S = 30.0


def cannot_boot() -> str | None:
    """Why this machine cannot have such a machine inside; None when it can."""
    if os.geteuid() != 0:
        return "only root can boot a systemd in namespaces"
    for path, what in NEEDED.items():
        if not Path(path).exists():
            return f"needs {what}"
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "needs unshare and setpriv (util-linux)"
    tried = subprocess.run(
        ["unshare", "--pid", "--mount", "--cgroup", "--fork", "true"], capture_output=True, text=True
    )
    return None if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


@dataclass
class Box:
    """The machine while it runs."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @classmethod
    def boot(cls, folder: Path) -> Box:
        """Start it. Its end is tied to this process's."""
        for name in ("host_key", "client_key"):
            key = asyncssh.generate_private_key("ssh-ed25519")
            key.write_private_key(str(folder / name))
            key.write_public_key(str(folder / f"{name}.pub"))
            (folder / name).chmod(0o600)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
        spaces = ("--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc", "--cgroup")
        with (folder / "boot.log").open("wb") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "sh", str(BOOT), str(folder), str(port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return cls(folder, port, process)

    async def until_up(self) -> None:
        """Wait until it answers and calls itself running."""
        deadline = time.monotonic() + BOOT_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.folder / "boot.log").read_text(errors="replace")
            with contextlib.suppress(OSError, asyncssh.Error):
                host = await self.connect()
                try:
                    if (await host.run(["systemctl", "is-system-running", "--wait"])).stdout.strip():
                        return
                finally:
                    await host.close()
        raise AssertionError((self.folder / "boot.log").read_text(errors="replace"))

    async def connect(self) -> Host:
        """A connection as root."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5):
            pass
        target = SshTarget(
            "127.0.0.1",
            port=self.port,
            username="root",
            client_keys=(str(self.folder / "client_key"),),
            known_hosts=(str(self.folder / "known_hosts"),),
            config=(),
        )
        return await SshConnector(target, name="box").connect()

    def end(self) -> None:
        """Kill its first process, and with it everything inside."""
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        self.process.kill()
        self.process.wait()


class AsNobody:
    """The same host as a login without any rights."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.name = host.name

    async def run(self, argv: list[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        """Run a command as nobody."""
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR"]
        return await self._host.run([*drop, "HOME=/tmp", "USER=nobody", *argv], stdin=stdin, timeout=timeout)
