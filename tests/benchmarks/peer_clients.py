"""The peers of the client's benchmark: AIPerf, and SGLang's own client on GuideLLM's mock server.

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
from typing import TYPE_CHECKING

import httpx

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import summarise_level
from ddconsole.core.ports import Prompt
from ddconsole.engines.sglang.dialect import ChatDialect
from ddconsole.passes.base import PassContext
from ddconsole.passes.load import closed_loop

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

CHEAPER_THAN = 0.5
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
    parser.add_argument("--sglang", default=_sglang(), help="the Python of an environment with SGLang and a tokenizer")


def _sglang() -> str | None:
    """Where `make real-sglang` puts it."""
    found = Path.home() / ".cache/ddconsole-real/sglang-0.5.23/venv/bin/python"
    return str(found) if found.exists() else None


def run(options: argparse.Namespace, our_cost: float) -> bool:
    """Every peer that is there; whether all bounds held."""
    say("")
    fine = True
    if options.aiperf:
        fine &= beside_aiperf(options.aiperf, our_cost, quick=options.quick)
    else:
        say("AIPerf: not installed, skipped (pip install aiperf==0.13.0 in an environment of its own)")
    if options.guidellm:
        fine &= on_mock_server(options.guidellm, options.sglang)
    else:
        say("guidellm mock-server: not installed, skipped (pip install guidellm==0.8.1 in an environment of its own)")
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


def on_mock_server(program: str, sglang: str | None) -> bool:
    """Our figures on TTFT 200 ms and ITL 10 ms: 20 requests, 64 tokens in and out, concurrency 4.

    Beside them, in turns on the same server, SGLang's own `bench_serving` where it is installed, and a plain loop with
    the formulas of vLLM's and SGLang's benches; ours has to agree with each.
    """
    port = _free_port()
    argv = [program, "mock-server", "--host", "127.0.0.1", "--port", str(port), "--ttft-ms", "200", "--itl-ms", "10"]
    rounds: dict[str, list[Figures]] = {"ours": [], "vLLM's and SGLang's, in a plain loop": []}
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _await_port(url, process)
            for _ in range(5):
                for name, taken in zip(rounds, (_ours_on_mock, _vllm_on_mock), strict=False):
                    rounds[name].append(asyncio.run(taken(url)))
                if sglang is not None:
                    rounds.setdefault("SGLang bench_serving", []).append(_sglang_on_mock(url, sglang))
        finally:
            os.killpg(process.pid, 15)
    say("guidellm mock-server                        TTFT ms   ITL ms  TPOT ms  output tok/s   ours is off by at most")
    fine = True
    for name, rows in rounds.items():
        off = _off(rounds["ours"], rows)
        fine &= off <= WITHIN
        word = "" if name == "ours" else f"{off:10.1%}  {'ok' if off <= WITHIN else 'BROKEN'}"
        say(_line(name, _medians(rows)) + word)
    for name, figures in THEIRS.items():
        say(_line(f"{name} (kept, idle machine)", figures))
    return fine


def _line(name: str, row: Figures) -> str:
    return f"{name:42} {row[0]:8.1f} {row[1]:8.2f} {row[2]:8.2f} {row[3]:13.1f}"


def _off(ours: list[Figures], theirs: list[Figures]) -> float:
    """The largest of the four medians of the rounds' ratios, less one."""
    ratios = [tuple(a / b for a, b in zip(*pair, strict=True)) for pair in zip(ours, theirs, strict=True)]
    return max(abs(statistics.median(column) - 1) for column in zip(*ratios, strict=True))


def _sglang_on_mock(url: str, python: str) -> Figures:
    """By SGLang's own client, from the environment of `make real-sglang` with its tokenizer."""
    tokenizer = Path(python).parents[2] / "smollm2-135m"
    argv = [
        python, "-m", "sglang.bench_serving", "--backend", "sglang-oai-chat", "--base-url", url, "--dataset-name",
        "random-ids", "--random-input-len", "64", "--random-output-len", "64", "--random-range-ratio", "1.0",
        "--num-prompts", str(len(MOCK_PROMPTS)), "--max-concurrency", "4", "--model", asyncio.run(_model(url)),
        "--tokenizer", str(tokenizer), "--disable-tqdm", "--warmup-requests", "1",
    ]  # fmt: skip
    kernels = Path(__file__).parents[1] / "real_engines"
    env = os.environ | {
        "PYTHONPATH": str(kernels), "SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=180, check=True)
    wanted = ("Mean TTFT (ms)", "Mean ITL (ms)", "Mean TPOT (ms)", "Output token throughput (tok/s)")
    said = dict(line.split(":", 1) for line in done.stdout.splitlines() if line.count(":") == 1)
    ttft, itl, tpot, rate = (float(said[name]) for name in wanted)
    return ttft, itl, tpot, rate


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
