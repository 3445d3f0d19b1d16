"""The installed command as a user runs it: its own process, its own home, the demo host over real ssh."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROFILE = """
schema: 1
host: demo
autostart: true
engine:
  command: [ddconsole-toy-engine]
  port: auto
  model: models/Toy-K2.6
  drafter: models/Toy-K2.6-DFlash
  args: {{tp-size: "8", page-size: "1", attention-backend: triton, enable-metrics: "true", step-scale: "{scale}"}}
launcher: {{stop_grace_s: 5}}
knobs:
  topk: {{flag: --speculative-ddtree-topk, default: 6}}
passes:
  quick:
    coding: {{max_tokens: 512, allow_no_isolation: true}}
    throughput: {{requests: 3, max_tokens: 96}}
queue: [{queue}]
"""


def wait_for(condition: Callable[[], Any], *, what: str, seconds: float = 60.0) -> Any:
    """Poll until the condition gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        signal.sigtimedwait([], 0.05)
    return found


class Cli:
    """`ddconsole` with a home folder, and everything it leaves on this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "dumb",
            "DDCONSOLE_HOME": str(home / "dd"),
            "DDCONSOLE_DEMO_SPEED": "60",
        }

    def profile(self, *specs: str, scale: float = 0.05) -> None:
        """Write the profile `e2e` with a starting queue."""
        folder = self.home / "dd" / "config" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        queue = ", ".join(f'"{spec}"' for spec in specs)
        (folder / "e2e.yaml").write_text(PROFILE.format(scale=scale, queue=queue))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        argv = [sys.executable, "-m", "ddconsole", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )

    def run(self, *words: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=timeout)
            return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> dict[str, Any]:
        """The document that a command prints."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def states(self) -> dict[str, str]:
        """State by experiment."""
        return {item["id"]: item["state"] for item in self.json("queue", "e2e", "list")["items"]}

    def demo_host(self) -> dict[str, Any] | None:
        """What the demo host tells of itself, or None when it does not run."""
        with contextlib.suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((self.home / "dd" / "state" / "demo" / "demo-host.json").read_text())
            return found
        return None

    def engine_pids(self) -> list[int]:
        """Living processes of toy engines that belong to this home.

        A preflight that was left asks one for its version; the host's guard ends that one in its own time.
        """
        mark = f"DDCONSOLE_DEMO_HOME={self.home}/".encode()
        return [pid for pid in _pids() if mark in _read(pid, "environ") and _serves(_read(pid, "cmdline"))]

    def engine_roots(self) -> list[int]:
        """Those of `engine_pids` that lead their process group."""
        return [pid for pid in self.engine_pids() if _group(pid) == pid]

    def engine_ranks(self) -> list[int]:
        """The schedulers of living engines: forked by a root into its group, under a name of their own."""
        roots = self.engine_roots()
        return [pid for pid in self.processes() if pid not in roots and _group(pid) in roots] if roots else []

    def processes(self) -> dict[int, str]:
        """Whatever runs for this home, consoles and the demo host included: command line by process id."""
        mark = os.fsencode(self.home) + b"/"
        found = {}
        for pid in _pids():
            words = _read(pid, "cmdline")
            if pid != os.getpid() and words and (mark in words or mark in _read(pid, "environ")):
                found[pid] = words.replace(b"\0", b" ").decode("utf-8", "replace").strip()
        return found


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _group(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _serves(cmdline: bytes) -> bool:
    words = cmdline.split(b"\0")
    return b"ddconsole.demo.engine" in words and not {b"--version", b"--help"} & set(words)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def end_demo(command: Cli) -> None:
    """End a home's demo host and whatever engine is left, by their recorded pids."""
    info = command.demo_host()
    for pid in [*command.engine_pids(), *([info["pid"]] if info else [])]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not command.engine_pids() and command.demo_host() is None, what="the demo host ended")
