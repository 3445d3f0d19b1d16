"""The peers of the client's benchmark: AIPerf, GuideLLM's mock server, and an engine that tells its own rate.

Each needs a program from an environment of its own, and is skipped, and said to be, where there is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import summarise_level
from ddconsole.core.ports import Answer, HttpRequest, Prompt
from ddconsole.engines.sglang.dialect import ChatDialect
from ddconsole.passes.base import PassContext
from ddconsole.passes.load import closed_loop

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

CHEAPER_THAN = 0.5
SLOWED_BY = 0.05
"""Share of an engine's own decode rate that our measuring may cost it."""

THEIRS = {
    "SGLang bench_serving": (216.5, 10.81, 10.81, 283.5),
    "vllm bench serve": (218.4, 10.56, 10.73, 285.5),
}
"""TTFT, ITL, TPOT in ms and output tok/s, as measured once on a two-core machine: 20 requests at concurrency 4."""

Figures = tuple[float, float, float, float]
"""TTFT, ITL and TPOT in ms, output tok/s."""

WITHIN = 0.03
MOCK_PROMPTS = [Prompt(f"p{number}", "word " * 64, 64) for number in range(20)]

TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = {word: n for n, word in enumerate(["<unk>", "</s>"] + [chr(c) for c in range(33, 127)])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", pad_token="</s>")
fast.save_pretrained(sys.argv[1])
"""
"""AIPerf wants one, and takes it from the Hugging Face cache alone; with the server's own counts any one will do."""

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def say(text: str) -> None:
    """A line of the table: the product of this program."""
    print(text, flush=True)  # noqa: T201


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where the peers are."""
    parser.add_argument("--aiperf", default=shutil.which("aiperf"), help="AIPerf's program")
    parser.add_argument("--guidellm", default=shutil.which("guidellm"), help="GuideLLM's program")
    parser.add_argument("--observed", help="URL of a chat server whose last chunk has `timings`, as llama.cpp's has")


def run(options: argparse.Namespace, our_cost: float) -> bool:
    """Every peer that is there; whether all bounds held."""
    say("")
    fine = True
    if options.aiperf:
        fine &= beside_aiperf(options.aiperf, our_cost, quick=options.quick)
    else:
        say("AIPerf: not installed, skipped (pip install aiperf==0.13.0 in an environment of its own)")
    if options.guidellm:
        fine &= on_mock_server(options.guidellm)
    else:
        say("guidellm mock-server: not installed, skipped (pip install guidellm==0.8.1 in an environment of its own)")
    if options.observed:
        fine &= observed(options.observed)
    else:
        with stamped(ttft_s=0.05, gap_s=0.02, chunks=12) as url:
            say("the observed: no --observed URL of a real engine; on the stamped server, which costs no CPU:")
            fine &= observed(url)
    return fine


@contextlib.contextmanager
def stamped(**script: float) -> Iterator[str]:
    """The stamped server, which gives every request this script."""
    argv = [sys.executable, "-m", "tests.benchmarks.stamped_server", json.dumps(script)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()


# --- AIPerf


def beside_aiperf(program: str, our_cost: float, *, quick: bool) -> bool:
    """CPU seconds for 1,000 tokens of AIPerf's whole process tree; its start is taken off by two runs of two sizes."""
    few, many = (32, 96) if quick else (48, 240)
    with tempfile.TemporaryDirectory() as folder, stamped(ttft_s=0.05, gap_s=0.02, chunks=100, tokens=4) as url:
        home = Path(folder)
        python = str(Path(program).with_name("python"))
        snapshot = home / "hub/models--smol--tok/snapshots" / COMMIT
        subprocess.run([python, "-c", TOKENIZER, str(snapshot)], check=True, capture_output=True)
        refs = home / "hub/models--smol--tok/refs"
        refs.mkdir()
        (refs / "main").write_text(COMMIT)
        small, large = (_aiperf(program, url, home, count) for count in (few, many))
    if small is None or large is None:
        return True
    cost = (large - small) / ((many - few) * 400) * 1000
    fine = our_cost < CHEAPER_THAN * cost
    say(
        f"AIPerf, 16 streams: {cost:.4f} CPU s / 1,000 tokens beyond its start ({small:.1f} CPU s for {few} requests); "
        f"ours costs {our_cost / cost:.2f} of it  {'ok' if fine else 'BROKEN'}"
    )
    return fine


def _aiperf(program: str, url: str, home: Path, requests: int) -> float | None:
    """CPU seconds of one run, children and all; None where it failed, which is said."""
    argv = [
        program, "profile", "--model", "smol", "--url", url, "--endpoint-type", "chat", "--streaming",
        "--tokenizer", "smol/tok", "--use-server-token-count", "--concurrency", "16", "--request-count", str(requests),
        "--synthetic-input-tokens-mean", "64", "--output-tokens-mean", "400", "--ui", "none",
        "--artifact-dir", str(home / f"run-{requests}"),
    ]  # fmt: skip
    env = os.environ | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, timeout=300, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        say(f"AIPerf failed ({done.returncode}), skipped: {(done.stderr or done.stdout).strip()[-400:]}")
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# --- GuideLLM's mock server


def on_mock_server(program: str) -> bool:
    """Our figures on TTFT 200 ms and ITL 10 ms: 20 requests, 64 tokens in and out, concurrency 4.

    Beside them, in turns on the same server, a plain loop with the formulas of vLLM's and SGLang's benches; the two
    have to agree.
    """
    port = _free_port()
    argv = [program, "mock-server", "--host", "127.0.0.1", "--port", str(port), "--ttft-ms", "200", "--itl-ms", "10"]
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _await_port(url, process)
            rounds = [(asyncio.run(_ours_on_mock(url)), asyncio.run(_vllm_on_mock(url))) for _ in range(5)]
        finally:
            os.killpg(process.pid, 15)
    ours, plain = (_medians([pair[side] for pair in rounds]) for side in (0, 1))
    ratios = [tuple(one / other for one, other in zip(*pair, strict=True)) for pair in rounds]
    off = max(abs(statistics.median(column) - 1) for column in zip(*ratios, strict=True))
    say("guidellm mock-server                        TTFT ms   ITL ms  TPOT ms  output tok/s")
    kept = {f"{name} (kept, idle machine)": figures for name, figures in THEIRS.items()}
    for name, row in {"ours": ours, "vLLM's and SGLang's, in a plain loop": plain, **kept}.items():
        say(f"{name:42} {row[0]:8.1f} {row[1]:8.2f} {row[2]:8.2f} {row[3]:13.1f}")
    say(f"ours is off the plain loop by at most {off:.1%}  {'ok' if off <= WITHIN else 'BROKEN'}")
    return off <= WITHIN


def _medians(rows: list[Figures]) -> Figures:
    return tuple(statistics.median(column) for column in zip(*rows, strict=True))  # type: ignore[return-value]


async def _model(url: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return str((await client.get(f"{url}/v1/models")).json()["data"][0]["id"])


async def _ours_on_mock(url: str) -> Figures:
    context = PassContext(url, ChatDialect(model=await _model(url)), Workload(), SystemClock(), lambda *_: None)
    records, wall_s = await closed_loop(context, MOCK_PROMPTS, 4, lambda _: None)
    level = summarise_level(records, wall_s, 4).to_json()
    assert not level["failed"], [record.error for record in records]
    return level["ttft_ms"]["mean"], level["itl_ms"]["mean"], level["tpot_ms"]["mean"], level["output_tok_s"]


async def _vllm_on_mock(url: str) -> Figures:
    """vLLM's TTFT (first chunk with choices), TPOT ((tn − t0 − TTFT)/(C − 1)), ΣC/D; SGLang's ITL (between texts)."""
    dialect, places = ChatDialect(model=await _model(url)), asyncio.Semaphore(4)
    ttfts: list[float] = []
    itls: list[float] = []
    tpots: list[float] = []
    counts: list[int] = []

    async def one(client: httpx.AsyncClient, prompt: Prompt) -> None:
        stamps: list[float] = []
        texts: list[float] = []
        tokens = 0
        body = dialect.request(prompt, Workload()).body
        async with places:
            began = time.perf_counter()
            async with client.stream("POST", "/v1/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if not line.startswith("data: ") or line == "data: [DONE]":
                        continue
                    event = json.loads(line[6:])
                    if event.get("choices"):
                        stamps.append(time.perf_counter())
                        if event["choices"][0]["delta"].get("content"):
                            texts.append(stamps[-1])
                    tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
        ttfts.append(stamps[0] - began)
        itls.extend(after - before for before, after in pairwise(texts))
        tpots.append((stamps[-1] - stamps[0]) / (tokens - 1))
        counts.append(tokens)

    started = time.perf_counter()
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
        await asyncio.gather(*(one(client, prompt) for prompt in MOCK_PROMPTS))
    wall = time.perf_counter() - started
    return (
        statistics.mean(ttfts) * 1000,
        statistics.mean(itls) * 1000,
        statistics.mean(tpots) * 1000,
        sum(counts) / wall,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_port(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"{url}/v1/models", trust_env=False).raise_for_status()
            return
        time.sleep(0.2)
    raise SystemExit("guidellm's mock server did not start")


# --- the observer must not slow the observed


class TimingsDialect:
    """The chat dialect, and what the server says of its own rate."""

    name = "timings"

    def __init__(self) -> None:
        self._chat = ChatDialect(model="m")
        self.rates: list[float] = []

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        request = self._chat.request(prompt, workload)
        return HttpRequest(request.path, {**request.body, "cache_prompt": False})

    def read(self, answer: Answer, data: str) -> None:
        self._chat.read(answer, data)
        if '"predicted_per_second"' in data:
            self.rates.append(float(json.loads(data)["timings"]["predicted_per_second"]))


def observed(url: str) -> bool:
    """The engine's own decode rate under a bare curl and under our client at concurrency 1, in turns."""
    if shutil.which("curl") is None:
        say("the observed: no curl here, skipped")
        return True
    bare: list[float] = []
    under: list[float] = []
    for _ in range(4):
        bare += [_curl_rate(url) for _ in range(4)]
        under += asyncio.run(_our_rates(url, 4))
    share = statistics.median(under) / statistics.median(bare)
    fine = share >= 1 - SLOWED_BY
    say(
        f"the observed: {statistics.median(bare):.1f} tok/s by its own word under curl, "
        f"{statistics.median(under):.1f} under our client ({share - 1:+.1%})  {'ok' if fine else 'BROKEN'}"
    )
    return fine


def _body() -> dict[str, Any]:
    prompt = Prompt("p", "Write a function that adds two numbers.", 48)
    return TimingsDialect().request(prompt, Workload()).body


def _curl_rate(url: str) -> float:
    argv = ["curl", "-sN", "--noproxy", "*", "-H", "Content-Type: application/json", "-d", json.dumps(_body())]
    done = subprocess.run([*argv, f"{url}/v1/chat/completions"], capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if '"predicted_per_second"' in line)
    return float(json.loads(line.removeprefix("data: "))["timings"]["predicted_per_second"])


async def _our_rates(url: str, count: int) -> list[float]:
    dialect = TimingsDialect()
    context = PassContext(url, dialect, Workload(), SystemClock(), lambda *_: None)
    prompts = [Prompt(f"p{n}", "Write a function that adds two numbers.", 48) for n in range(count)]
    await closed_loop(context, prompts, 1, lambda _: None)
    return dialect.rates
