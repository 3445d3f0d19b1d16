"""The toy engine's log has SGLang's format, byte for byte."""

from __future__ import annotations

import re

import pytest

from ddconsole.demo.engine_log import EngineLog, capture_bar, shard_bar

STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
SHARDS = re.compile(
    r"\r(?P<desc>Multi-thread loading shards):\s+(?P<pct>\d+)% Completed \| (?P<n>\d+)/(?P<tot>\d+) "
    r"\[(?P<el>[\d:]+)<(?P<eta>[\d:?]+),\s*(?P<rate>[^\]]+)\]"
)


def test_lines_carry_time_and_rank(capfd: pytest.CaptureFixture[str]) -> None:
    """Schedulers name their rank, the root does not, and no line has a level but uvicorn's."""
    log = EngineLog(8)
    log.main("hello")
    log.rank(3, "Load weight begin. avail mem=94.27 GB")
    log.uvicorn("Started server process [1]")
    log.access("127.0.0.1:5", "GET /ready HTTP/1.1", "200 OK")
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert re.fullmatch(STAMP + r"\] hello", lines[0])
    assert re.fullmatch(STAMP + r" TP3\] Load weight begin\. avail mem=94\.27 GB", lines[1])
    assert re.fullmatch(STAMP + r"\] INFO:     Started server process \[1\]", lines[2])
    assert re.fullmatch(STAMP + r'\] INFO:     127\.0\.0\.1:5 - "GET /ready HTTP/1\.1" 200 OK\n', out)


def test_a_single_rank_has_no_name(capfd: pytest.CaptureFixture[str]) -> None:
    """With one card SGLang leaves the prefix out; milliseconds come when asked for."""
    EngineLog(1, milliseconds=True).rank(0, "x")
    assert re.fullmatch(STAMP + r"\.\d{3}\] x\n", capfd.readouterr().err)


def test_every_rank_speaks_once(capfd: pytest.CaptureFixture[str]) -> None:
    """In an accidental order, or with one rank first."""
    EngineLog(8).every_rank(lambda rank: f"from {rank}", first=5)
    lines = capfd.readouterr().err.splitlines()
    assert sorted(line[-1] for line in lines) == list("01234567")
    assert "TP5] from 5" in lines[0]


@pytest.mark.parametrize(
    ("done", "elapsed", "shown"),
    [
        (0, 0.0, ("0", "0", "00:00", "?", "?it/s")),
        (16, 90.24, ("25", "16", "01:30", "04:30", "5.64s/it")),
        (64, 9.0, ("100", "64", "00:09", "00:00", "7.11it/s")),
    ],
)
def test_the_shard_bar(done: int, elapsed: float, shown: tuple[str, ...]) -> None:
    """A carriage return, no line feed, and tqdm's fields."""
    match = SHARDS.fullmatch(shard_bar(done, 64, elapsed))
    assert match
    assert match.group("pct", "n", "el", "eta", "rate") == shown


def test_the_graph_bar() -> None:
    """As tqdm draws it."""
    assert capture_bar(4, 9.5, 2, 5, 12.4) == (
        "\rCapturing batches (bs=4 avail_mem=9.50 GB):  40%|████      | 2/5 [00:12<00:18,  6.20s/it]"
    )
