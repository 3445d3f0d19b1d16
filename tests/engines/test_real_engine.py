"""What the real SGLang 0.5.23 logged and answered on a CPU, in the runs of `make real-sglang`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddconsole.core.ports import Answer, RequestDialect
from ddconsole.core.progress import ShardBar
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect

DATA = Path(__file__).parent / "data"


def boot(name: str) -> BootLog:
    """A tracker that has seen a whole log."""
    log = BootLog()
    log.feed((DATA / f"real-0.5.23-cpu-{name}.log").read_bytes(), 0.0)
    return log


def test_it_says_that_it_is_ready_after_it_could_not_bind() -> None:
    """An old server held the port and answered its warm-up: the failure is named all the same."""
    log = boot("port-held")
    assert log.progress.fired_up
    assert log.progress.target == ShardBar(9, 9)
    assert log.facts.bind_failed is not None
    assert "('127.0.0.1', 36201): address already in use" in log.facts.bind_failed
    assert log.failure(0).cause == "port-held"


def test_a_stop_is_told_from_the_noise_that_follows_it() -> None:
    """After TERM it drains, and its kernels' binding complains of what it leaked, line after line."""
    log = boot("stopped")
    failure = log.failure(0)
    assert failure.cause == "stopped"
    assert not any("leaked" in line for line in failure.evidence)


def test_what_libraries_print_at_their_exit_is_nobodys_last_word() -> None:
    """Dozens of lines of leaks would hide the engine's own last lines, and the end of a traceback."""
    noise = "".join(
        line
        for line in (DATA / "real-0.5.23-cpu-stopped.log").read_text().splitlines(keepends=True)
        if ("leaked" in line or "nanobind" in line or "skipped remainder" in line) and "kill_process" not in line
    )
    assert len(noise.splitlines()) > 50
    own = "[2026-12-02 14:47:28] Load weight begin. avail mem=20.62 GB\n[2026-12-02 14:47:29] its last own word\n"
    log = BootLog()
    log.feed((own + noise).encode(), 0.0)
    failure = log.failure(1)
    assert failure.cause == "unknown"
    assert failure.evidence == tuple(own.splitlines())
    raised = "[2026-12-02 14:47:30] Scheduler hit an exception: Traceback (most recent call last):\nKeyError: 'x'\n"
    log = BootLog()
    log.feed((own + raised + noise).encode(), 0.0)
    assert log.failure(1).evidence == tuple(raised.splitlines())


def test_a_crash_between_the_weights_and_the_first_word_of_the_cache_is_one_of_the_cache() -> None:
    """NGRAM without its kernel dies in the KV pool: the weights were in, and the engine had no drafter to load."""
    failure = boot("crash").failure(1)
    assert (failure.phase, failure.cause) == ("kv", "missing-kernel")
    assert "copy_all_layer_kv_cache_cpu" in failure.what


@pytest.mark.parametrize(
    ("name", "dialect", "text", "counts"),
    [
        ("chat-usage-stream", ChatDialect(), "The colour is a rare and", (34, 6)),
        ("generate-stream", NativeDialect(), " Paris.\n\nThe", (5, 5)),
    ],
)
def test_a_stream_is_counted_token_by_token(
    name: str, dialect: RequestDialect, text: str, counts: tuple[int, int]
) -> None:
    """Without speculation each chunk brings one token, and nothing is said of verify steps."""
    answer, added = Answer(), []
    for line in (DATA / f"real-0.5.23-{name}.sse").read_text().splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            dialect.read(answer, line.removeprefix("data: "))
            added.append(answer.new_tokens)
    assert (answer.text, answer.finish_reason) == (text, "length")
    assert (answer.prompt_tokens, answer.completion_tokens) == counts
    assert [tokens for tokens in added if tokens] == [1] * counts[1]
    assert answer.verify_steps is None


def test_generate_tells_its_own_times() -> None:
    """As the engine measured them, beside ours."""
    answer = Answer()
    last = (DATA / "real-0.5.23-generate-stream.sse").read_text().splitlines()[-4]
    NativeDialect().read(answer, last.removeprefix("data: "))
    told = json.loads(last.removeprefix("data: "))["meta_info"]
    assert answer.server_e2e_s == pytest.approx(told["e2e_latency"])
    assert answer.server_ttft_s == pytest.approx(told["first_token_latency"])
