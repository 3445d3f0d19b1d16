"""What in a log is a word of the engine, and what only echoes requests; downloads, told by their bars."""

from __future__ import annotations

import pytest

from ddconsole.core.progress import Download, Phase
from ddconsole.engines.sglang.bootlog import BootLog

STAMP = "[2026-11-18 14:02:01] "
POLL = 'INFO:     127.0.0.1:51450 - "GET /ready HTTP/1.1" 503 Service Unavailable'
SICK = "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 14:01"


def spoke_at(*texts: str, size: int | None = None) -> float | None:
    """When the log last spoke, after one text at 10.0 s, the next at 20.0 s and so on, each in pieces of `size`."""
    log = BootLog()
    for number, text in enumerate(texts, 1):
        data = text.encode()
        step = size or len(data)
        for start in range(0, len(data), step):
            log.feed(data[start : start + step], 10.0 * number)
    return log.spoke_at


@pytest.mark.parametrize("size", [None, 1, 7], ids=["whole", "byte by byte", "in pieces"])
@pytest.mark.parametrize(
    "echo",
    [
        f"{STAMP}{POLL}\n",
        f"{POLL}\n",
        f"{STAMP}{POLL}\n" * 50,
        f'{STAMP}INFO:     127.0.0.1:51450 - "GET /health HTTP/1.1" 200 OK\n',
        f"{STAMP}Prefill batch, #new-seq: 1, #new-token: 1, cuda graph: False, input throughput (token/s): 3.10\n",
        f"{STAMP}{SICK}\n{STAMP}{POLL}\n",
        "\n",
    ],
    ids=["stamped", "bare", "many", "health", "its generation", "a hung engine's health check", "an empty line"],
)
def test_an_echo_of_our_own_probe_is_no_word_of_the_engine(echo: str, size: int | None) -> None:
    """Whatever we ask is logged; were it life, no engine would ever be silent."""
    assert spoke_at(f"{STAMP}Load weight begin.\n", echo, echo, size=size) == 10.0


@pytest.mark.parametrize("size", [None, 1], ids=["whole", "byte by byte"])
@pytest.mark.parametrize(
    "text",
    [
        f"{STAMP}KV Cache is allocated.\n",
        '  File "x.py", line 3, in f\n',
        f"{STAMP}{POLL}\n{STAMP}The server is fired up and ready to roll!\n",
        "\rMulti-thread loading shards:  25% Completed | 1/4 [00:03<00:09,  3.01s/it]",
        "model.safetensors:  11%|█         | 100M/892M [00:03<00:26, 30.3MB/s]\r",
        f"{STAMP}INFO:     Application startup complete.\n",
    ],
    ids=["line", "bare line", "behind a poll", "a bar's state", "a download's", "the server"],
)
def test_everything_else_is_a_word(text: str, size: int | None) -> None:
    """Lines with a meaning or without, and bars that move though no line ends."""
    assert spoke_at(f"{STAMP}Load weight begin.\n", f"{STAMP}{POLL}\n", text, size=size) == 30.0


def test_an_error_that_is_open_does_not_make_polls_a_word() -> None:
    """Bare lines behind a traceback belong to it; those of the HTTP server say nothing all the same."""
    trace = f'{STAMP}Scheduler hit an exception: Traceback (most recent call last):\n  File "x.py", line 3, in f\n'
    assert spoke_at(trace, f"{POLL}\n{POLL}\n") == 10.0
    assert spoke_at(trace, f'{POLL}\n  File "x.py", line 9, in g\n') == 20.0


def test_a_bar_that_stands_still_is_no_word() -> None:
    """Its last state stays unfinished in the log, and polls are glued to it."""
    bar = "\rMulti-thread loading shards: 100% Completed | 64/64 [06:01<00:00,  5.64s/it]"
    assert spoke_at(bar, f"{STAMP}{POLL}\n", f"{STAMP}{POLL}\n") == 10.0


def test_nothing_was_said_before_the_first_line() -> None:
    """No time is made up."""
    assert BootLog().spoke_at is None
    assert spoke_at(f"{STAMP}{POLL}\n") is None


FILES = (
    "Fetching 64 files:   3%|▎         | 2/64 [01:40<51:40, 50.00s/it]\r"
    "model-00001-of-00064.safetensors:  23%|██        | 1.15G/4.98G [00:12<00:39, 95.8MB/s]\r"
    "model-00002-of-00064.safetensors:  50%|█████     | 2.50G/5.00G [00:12<00:39, 95.8MB/s]\r"
)


def test_a_download_is_told_by_files_and_bytes_and_is_no_bar_of_weights() -> None:
    """The counts of all bars together; nothing of it is a shard."""
    log = BootLog()
    log.feed(f"{STAMP}Init parallel begin.\n{FILES}".encode(), 0.0)
    progress = log.progress
    assert progress.download == Download(3_650_000_000, 9_980_000_000, 2, 64)
    assert (progress.phase, progress.target, progress.draft, progress.graphs) == (Phase.INIT, None, None, None)


@pytest.mark.parametrize(
    "after",
    [
        "\rMulti-thread loading shards:  25% Completed | 1/4 [00:03<00:09,  3.01s/it]",
        f"\n{STAMP}Load weight begin.\n{STAMP}Load weight end. elapsed=4.14 s, type=X, avail mem=1.0 GB\n",
        FILES.replace("2/64", "64/64").replace("1.15G", "4.98G").replace("2.50G", "5.00G"),
    ],
    ids=["weights are loaded", "and were loaded", "it is whole"],
)
def test_a_download_is_over_when_what_it_fetched_is_used_or_whole(after: str) -> None:
    """Else a screen would say "downloading" for ever."""
    log = BootLog()
    log.feed((FILES + after).encode(), 0.0)
    assert log.progress.download is None


def test_a_file_of_unknown_size_has_no_total() -> None:
    """And a bar of bytes alone counts no files."""
    log = BootLog()
    log.feed(b"x.bin:   0%|          | 1.50M/? [00:01<?, 1.50MB/s]\r", 0.0)
    assert log.progress.download == Download(1_500_000, None)


def test_an_error_glued_to_a_download_is_kept() -> None:
    """It may be why the engine dies."""
    log = BootLog()
    lines = log.feed(f"{FILES.rstrip()}{STAMP}ValueError: Unknown speculative algorithm name: X\n".encode(), 0.0)
    assert lines == [f"{STAMP}ValueError: Unknown speculative algorithm name: X"]
