"""A home for the run: a real sshd, profiles whose engine is the real one, and the command with its events."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.command import Cli, wait_for

from .sshd import Sshd, free_port, is_open

ALIAS = "sglang-cpu"
SHIPPED = Path(__file__).parents[2] / "profiles" / "sglang-cpu.yaml"
REAL_HOME = ".cache/ddconsole-real/sglang-0.5.23"
"""Where the shipped profile looks for the engine, below the login's home."""

Event = dict[str, Any]


class Run:
    """`ddconsole run --json` and its events as they come."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.process = cli.start("run", *words, "--json")
        self.seen: list[Event] = []
        self.said = ""
        self._arriving: queue.Queue[Event | None] = queue.Queue()
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._read, self._listen)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arriving.put(json.loads(line))
        self._arriving.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line

    def until(self, what: str, *, seconds: float, **wanted: Any) -> Event:
        """The next event whose fields are as wanted; every event on the way is kept in `seen`."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                event = self._arriving.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not within {seconds:.0f} s: {what}; last: {self.last()}") from None
            assert event is not None, f"the run ended before: {what}\n{self.said[-2000:]}"
            self.seen.append(event)
            if all(event.get(key) == value for key, value in wanted.items()):
                return event
            ended = event["kind"] == "experiment_finished"
            assert not ended, f"the experiment ended before: {what}: {event['verdict']} {event['failure']}"

    def last(self) -> list[str]:
        """The last events in short."""
        return [f"{one['kind']} {one.get('phase', one.get('state', ''))}" for one in self.seen[-5:]]

    def of(self, kind: str, **wanted: Any) -> list[Event]:
        """Events of a kind that were seen."""
        return [one for one in self.seen
                if one["kind"] == kind and all(one.get(key) == value for key, value in wanted.items())]  # fmt: skip

    def end(self, seconds: float = 120.0) -> int:
        """Its exit code."""
        code = self.process.wait(seconds)
        for thread in self._threads:
            thread.join(10)
        while (event := self._arriving.get()) is not None:
            self.seen.append(event)
        self._close()
        return code

    def kill(self) -> None:
        """End it as nothing can be prepared for; once is enough."""
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(10)
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class World:
    """One home, one sshd, one port that engines get, and a folder for what the host keeps."""

    def __init__(self, folder: Path, real: Path) -> None:
        self.folder = folder
        self.real = real
        self.cli = Cli(folder)
        self.state = folder / "host"
        self.port = free_port()
        self.sshd = Sshd(folder, ALIAS)
        self.cli.env["PATH"] = f"{self.sshd.programs}:{self.cli.env['PATH']}"

    def profile(self, name: str, **changed: str) -> str:
        """The shipped profile as `name`, on our sshd, port and folder; `changed` replaces further words of it."""
        text = SHIPPED.read_text()
        words = {
            "host: local ": f"host: {ALIAS} ",
            "port: 30000": f"port: {self.port}",
            "~/.ddconsole": str(self.state),
            REAL_HOME: str(self.real),
        } | changed
        for old, new in words.items():
            assert old in text, f"profiles/sglang-cpu.yaml has no {old!r}"
            text = text.replace(old, new)
        place = self.folder / "dd" / "config" / "profiles" / f"{name}.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return name

    def json(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The document that a command prints, and its exit code as it has to be."""
        done = self.cli.run(*words, "--json", timeout=300)
        assert done.returncode == code, f"{' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def engines(self) -> list[int]:
        """Living processes of engines that were launched from here: those in the sessions that the host recorded."""
        sessions = {int(path.read_text().split()[0]) for path in self.state.glob("runs/*/pid")}
        return [pid for pid in _pids() if _session(pid) in sessions]

    def engine_log(self, name: str) -> str:
        """The host's own log of the newest launch of a profile."""
        logs = sorted(self.state.glob(f"runs/{name}-*/engine.log"), key=lambda path: path.stat().st_mtime)
        return logs[-1].read_text(errors="replace") if logs else ""

    def end_engines(self) -> None:
        """End what is left of engines, by pid: a part that went wrong leaves nothing to the next."""
        for pid in self.engines():
            end(pid)
        wait_for(lambda: not self.engines(), what="no engine is left", seconds=30)

    def close(self) -> None:
        """Nothing of it is left."""
        self.end_engines()
        self.sshd.stop()


def evict(folder: Path) -> None:
    """Let the page cache forget the files of a folder, so that they are read from disk as on a first boot."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def stale_server(port: int) -> Iterator[int]:
    """Somebody else's server on a port; its pid."""
    script = Path(__file__).parent / "stale_server.py"
    process = subprocess.Popen([sys.executable, str(script), str(port)])
    try:
        wait_for(lambda: is_open(port), what="the old server listens", seconds=20)
        assert process.poll() is None, f"port {port} was somebody else's"
        yield process.pid
    finally:
        process.kill()
        process.wait()


def end(pid: int) -> None:
    """KILL, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _session(pid: int) -> int | None:
    """The session of a living process; a zombie is dead, though a signal still reaches it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in ("Z", "X") else int(words[3])


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
