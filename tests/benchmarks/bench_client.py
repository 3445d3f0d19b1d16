"""The measuring client against the truth, and beside its peers on the same server, as ratios.

    python -m tests.benchmarks.bench_client [--quick] [--aiperf PATH] [--guidellm PATH] [--sglang PYTHON]

1. *Error*: what the client says of TTFT and of the gaps between chunks against the server's own send stamps (one
   monotonic clock for both processes), for 1, 16 and 64 streams. The 99th percentile has to stay within the event
   loop's lag that the client itself reports for the level, and 2 ms.
2. *Cost*: CPU seconds for 1,000 output tokens, and the highest token rate, beside a plain httpx loop that reads the
   same stream (lines, JSON, usage) and keeps nothing. Ours has to cost less than half.
3. *Peers*, where they are installed: AIPerf's cost on the same load, and our figures on `guidellm mock-server` beside
   SGLang's own client. Each of them within 3 %.

`--aiperf` and `--guidellm` name programs in environments of their own (`pip install aiperf==0.13.0`,
`pip install guidellm==0.8.1`).
Exit status 1 when a bound is broken; what is not installed is said and skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import httpx

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.ports import Answer, HttpRequest, Prompt
from ddconsole.core.stats import percentile
from ddconsole.engines.sglang.dialect import ChatDialect
from ddconsole.passes.client import ask, open_client
from ddconsole.passes.load import LoadWatch
from tests.benchmarks import peer_clients
from tests.benchmarks.peer_clients import say, stamped

if TYPE_CHECKING:
    from ddconsole.core.metrics import RequestRecord

STREAMS = (1, 16, 64)
FIRST_TOKENS = 64
"""Requests at the least behind a level's TTFT: the 99th percentile of one request would be that request."""
MIN_CHUNKS = 8
ALLOWED_S = 0.002
"""Error that is allowed beyond the client's own reported lag."""

CHEAPER_THAN = 0.5
"""Share of a peer's CPU that ours may cost."""


@dataclass(frozen=True, slots=True)
class Script:
    """What the stamped server does for each request."""

    ttft_s: float
    gap_s: float
    chunks: int
    tokens: int = 4

    def body(self) -> dict[str, Any]:
        """The `script` of a request."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class StampedDialect:
    """SGLang's chat dialect, which also keeps the server's stamps."""

    name = "stamped"

    def __init__(self, script: Script) -> None:
        self._chat = ChatDialect(model="m")
        self._script = script
        self.stamps: list[float] = []

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        request = self._chat.request(prompt, workload)
        return HttpRequest(request.path, request.body | {"script": self._script.body()})

    def read(self, answer: Answer, data: str) -> None:
        self._chat.read(answer, data)
        if answer.new_tokens:
            self.stamps.append(float(data[data.rindex('"sent":') + 7 : -1]))


# --- 1. error


async def measure_error(url: str, streams: int, script: Script) -> tuple[float, float, float, float]:
    """99th percentiles in seconds: error of TTFT, error of the gaps, the client's own lag; and its CPU share.

    Each stream asks one request after the other until there are FIRST_TOKENS of them; `script.chunks` are a stream's
    chunks in all.
    """
    clock, watch = SystemClock(), LoadWatch()
    rounds = -(-FIRST_TOKENS // streams)
    script = replace(script, chunks=max(MIN_CHUNKS, script.chunks // rounds))
    dialects = [StampedDialect(script) for _ in range(streams * rounds)]

    async def stream(client: Any, own: list[StampedDialect]) -> list[RequestRecord]:
        options = {"clock": clock, "concurrency": streams, "origin": 0.0}
        return [await ask(client, dialect, Prompt("p", "x"), Workload(), **options) for dialect in own]

    async with watch.watching(), open_client(url, streams=streams, clock=clock) as client:
        asked = [stream(client, dialects[n * rounds : (n + 1) * rounds]) for n in range(streams)]
        records = [record for own in await asyncio.gather(*asked) for record in own]
    first: list[float] = []
    gaps: list[float] = []
    for record, dialect in zip(records, dialects, strict=True):
        assert record.ok, record.error
        arrived = [record.started_s + at for at, tokens in record.chunks if tokens]
        late = [at - sent for at, sent in zip(arrived, dialect.stamps, strict=True)]
        first.append(late[0])
        gaps += [abs(after - before) for before, after in pairwise(late)]
    load = watch.result()
    return percentile(first, 0.99) or 0, percentile(gaps, 0.99) or 0, load.lag_p99_s or 0, load.cpu_share or 0


async def errors(url: str, quick: bool) -> bool:
    """The table of errors; whether every bound held."""
    say("streams  requests   TTFT error p99   ITL error p99   own lag p99   allowed   CPU share")
    held = True
    for streams in STREAMS:
        script = Script(ttft_s=0.1, gap_s=0.02, chunks=100 if quick else 400)
        first, gap, lag, share = await measure_error(url, streams, script)
        allowed = lag + ALLOWED_S
        fine = max(first, gap) <= allowed
        held &= fine
        cells = f"{first * 1000:11.2f} ms {gap * 1000:12.2f} ms {lag * 1000:10.2f} ms {allowed * 1000:6.2f} ms"
        say(
            f"{streams:7} {streams * -(-FIRST_TOKENS // streams):9} {cells} {share:10.0%}  {'ok' if fine else 'BROKEN'}"
        )
    return held


# --- 2. cost


async def ours(url: str, streams: int, script: Script) -> int:
    """All streams at once through our client; the tokens."""
    clock = SystemClock()
    async with open_client(url, streams=streams, clock=clock) as client:
        asked = [ask(client, StampedDialect(script), Prompt("p", "x"), Workload(), clock=clock) for _ in range(streams)]
        records: list[RequestRecord] = await asyncio.gather(*asked)
    assert all(record.ok for record in records)
    return sum(record.completion_tokens or 0 for record in records)


async def plain_httpx(url: str, streams: int, script: Script) -> int:
    """The loop that everybody writes first: lines, JSON, usage; nothing is kept."""
    body = StampedDialect(script).request(Prompt("p", "x"), Workload()).body

    async def one(client: httpx.AsyncClient) -> int:
        tokens = 0
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    event = json.loads(line[6:])
                    time.monotonic()
                    tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
        return tokens

    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits) as client:
        return sum(await asyncio.gather(*(one(client) for _ in range(streams))))


def cost_of(contestant: Any, url: str, streams: int, script: Script) -> tuple[float, float]:
    """(CPU seconds for 1,000 tokens, tokens a wall second)."""
    cpu, wall = time.process_time(), time.perf_counter()
    tokens = asyncio.run(contestant(url, streams, script))
    return (time.process_time() - cpu) / tokens * 1000, tokens / (time.perf_counter() - wall)


def costs(url: str, quick: bool) -> tuple[bool, float]:
    """The table of costs; whether ours is cheap enough, and our CPU seconds for 1,000 tokens on the paced load."""
    paced = Script(ttft_s=0.05, gap_s=0.02, chunks=100 if quick else 250)
    flood = Script(ttft_s=0.0, gap_s=0.0, chunks=400 if quick else 2000)
    rounds = 3 if quick else 5
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "httpx": []}
    for _ in range(rounds):
        for name, contestant in (("ours", ours), ("httpx", plain_httpx)):
            cost, _ = cost_of(contestant, url, 16, paced)
            _, rate = cost_of(contestant, url, 16, flood)
            found[name].append((cost, rate))
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in found.items()}
    say("\n16 streams, 4 tokens a chunk   CPU s / 1,000 tokens   highest tokens/s (server on the same machine)")
    for name, (cost, rate) in medians.items():
        say(f"{name:30} {cost:21.4f} {rate:18,.0f}")
    share, faster = medians["ours"][0] / medians["httpx"][0], medians["ours"][1] / medians["httpx"][1]
    fine = share < CHEAPER_THAN
    word = "ok" if fine else "BROKEN"
    say(f"ours costs {share:.2f} of the plain httpx loop and reaches {faster:.1f} × its rate  {word}")
    return fine, medians["ours"][0]


def main() -> int:
    """Run what can be run here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    peer_clients.add_options(parser)
    options = parser.parse_args()
    with stamped() as url:
        fine = asyncio.run(errors(url, options.quick))
        cheap, cost = costs(url, options.quick)
        fine &= cheap
    fine &= peer_clients.run(options, cost)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
