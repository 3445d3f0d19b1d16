"""OpenSSH's own sshd on the loopback interface, with keys of its own and an alias for it in a home's ssh_config."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fakes.command import wait_for

WHERE = "/usr/sbin:/usr/local/sbin:/usr/bin"
"""Folders in which sshd is looked for."""

NICE = 5
"""What is started through it runs at this niceness: a measurement here is no reason to starve the machine."""


class Sshd:
    """A running sshd. `alias` is what the ssh_config of `home` calls it.

    OpenSSH looks for ssh_config in the account's own home, whatever $HOME says: `programs`, to be put first into PATH,
    holds an `ssh` that reads ours. Commands find `env` in their environment.
    """

    def __init__(self, home: Path, alias: str, env: Mapping[str, str] | None = None) -> None:
        program = shutil.which("sshd", path=WHERE)
        if program is None:
            raise SystemExit("OpenSSH's sshd is not installed (Debian: apt install openssh-server)")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        folder = home / ".ssh"
        folder.mkdir(mode=0o700)
        for name in ("host_key", "client_key"):
            make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(make_key, check=True)
        port = free_port()
        (folder / "config").write_text(
            f"Host {alias}\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {folder / 'client_key'}\n  UserKnownHostsFile {folder / 'known_hosts'}\n"
        )
        self.programs = home / "bin"
        self.programs.mkdir()
        wrapper = self.programs / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder / "config"} "$@"\n')
        wrapper.chmod(0o755)
        options = ["ListenAddress=127.0.0.1", "PidFile=none", "StrictModes=no", "UsePAM=no",
                   f"AuthorizedKeysFile={folder / 'client_key.pub'}"]  # fmt: skip
        if env:
            options.append("SetEnv=" + " ".join(f"{name}={value}" for name, value in env.items()))
        words = ["nice", "-n", str(NICE), program, "-D", "-e", "-f", "/dev/null", "-p", str(port),
                 "-h", str(folder / "host_key"), *(word for option in options for word in ("-o", option))]  # fmt: skip
        with (home / "sshd.log").open("wb") as log:
            self._process = subprocess.Popen(words, stderr=log)
        wait_for(lambda: is_open(port), what="sshd listens", seconds=10)

    def cut(self) -> int:
        """End the process behind each connection, by its pid: to the client the line is lost. How many there were."""
        pids = children(self._process.pid)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def stop(self) -> None:
        """End it and its connections."""
        self.cut()
        self._process.kill()
        self._process.wait()


def children(parent: int) -> list[int]:
    """Child processes of a process."""
    answer = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, ppid in (line.split() for line in answer.splitlines()) if int(ppid) == parent]


def free_port() -> int:
    """A port of the loopback interface that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def is_open(port: int) -> bool:
    """Whether something listens on a port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
