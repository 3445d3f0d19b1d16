"""A toy engine as a process of its own, for tests that need a real one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from ddconsole.demo.language import load_language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANSWERS = {doc.id: doc for doc in load_language().documents}
TREE = ("--speculative-algorithm", "DDTREE", "--speculative-num-draft-tokens", "8", "--speculative-ddtree-budget", "12",
        "--speculative-ddtree-topk", "6", "--speculative-draft-window-size", "2048")  # fmt: skip
DEADLINE_S = 20.0


@dataclass
class Running:
    """An engine that a test started."""

    process: subprocess.Popen[bytes]
    port: int
    home: Path
    client: httpx.Client

    def log(self) -> str:
        return (self.home / "engine.log").read_bytes().decode()

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Poll a condition until a deadline; fail at once with the log when the engine has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what} in time:\n{self.log()[-2000:]}"
            time.sleep(0.02)

    def wait_ready(self) -> None:
        self.wait_for(lambda: self.process.poll() is not None or self.status("/ready") == 200, "readiness")
        assert self.process.poll() is None, self.log()[-2000:]

    def status(self, path: str) -> int | None:
        """The status of a GET, or None when the connection is refused."""
        try:
            return self.client.get(path).status_code
        except httpx.TransportError:
            return None

    def state(self) -> dict[str, Any]:
        (file,) = (self.home / "run").glob("engine-*.json")
        data: dict[str, Any] = json.loads(file.read_text())
        return data

    def steps(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "steps.jsonl").read_text().splitlines()]

    def generate(self, doc: str, limit: int = 400, **sampling: Any) -> dict[str, Any]:
        body = {"text": ANSWERS[doc].prompt, "sampling_params": {"temperature": 0, "max_new_tokens": limit, **sampling}}
        answer: dict[str, Any] = self.client.post("/generate", json=body).raise_for_status().json()
        return answer


@contextmanager
def engine(
    home: Path, *flags: str, speed: float = 100, port: int | None = None, scale: str = "0.02"
) -> Iterator[Running]:
    """Start an engine with its log in `home`; whatever happens, nothing of it is left afterwards."""
    port = port or free_port()
    env = os.environ | {
        "DDCONSOLE_DEMO_HOME": str(home),
        "DDCONSOLE_DEMO_SPEED": str(speed),
        "DDCONSOLE_DEMO_STEP_LOG": str(home / "steps.jsonl"),
    }
    argv = [sys.executable, "-m", "ddconsole.demo.engine", "--model-path", "Toy", "--port", str(port),
            "--speculative-draft-model-path", "Toy-DFlash", "--step-scale", scale, *flags]  # fmt: skip
    with (home / "engine.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=env, start_new_session=True)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        try:
            yield Running(process, port, home, client)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether a process lives; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def rank_pids(home: Path) -> list[int]:
    (file,) = (home / "run").glob("engine-*.json")
    return list(json.loads(file.read_text())["ranks"])
