"""The tracker on whole boots, on pieces of them, and on lines that are out of the ordinary."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.progress import Phase, ShardBar
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.phases import PhaseClock

DATA = Path(__file__).parent / "data"
BOOTS = sorted(DATA.glob("boot-*.log"))
FORK = (DATA / "boot-ddtree-fork-b16-B24-trained-8.log").read_bytes()


def state(log: BootLog) -> tuple[Any, ...]:
    """All that a tracker knows."""
    return log.progress, log.facts, log.decode, log.failure(137)


def boot(name: str) -> BootLog:
    """A tracker that has seen a whole boot."""
    log = BootLog()
    log.feed((DATA / f"{name}.log").read_bytes(), 0.0)
    return log


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("boot-0.5.11-dflash-b8", (8, None, 2048, None, None)),
        ("boot-0.5.23-dflash-b8", (8, None, 2048, 8, None)),
        ("boot-ddtree-fork-b8-B12", (8, 12, 2048, 13, None)),
        ("boot-ddtree-fork-b16-B24-trained-8", (16, 24, 2048, 25, 8)),
    ],
)
def test_facts_of_each_version(name: str, facts: tuple[int | None, ...]) -> None:
    """Block size, budget, window, verify width of the target, and the drafter's own block size."""
    found = boot(name).facts
    assert (found.block_size, found.budget, found.window, found.verify_width, found.trained_block_size) == facts


@pytest.mark.parametrize("path", BOOTS, ids=lambda path: path.stem)
def test_a_whole_boot_is_ready_with_all_its_bars(path: Path) -> None:
    """Target of 64 shards, draft of 3, five graphs, in the old order and the new."""
    progress = boot(path.stem).progress
    assert progress.phase is Phase.READY
    assert progress.fired_up
    assert progress.target == ShardBar(64, 64)
    assert progress.draft == ShardBar(3, 3)
    assert progress.graphs == ShardBar(5, 5)
    loads = {Phase.INIT, Phase.LOAD_TARGET, Phase.LOAD_DRAFT, Phase.KV, Phase.GRAPHS, Phase.WARMUP}
    assert set(progress.finished) == loads


def test_decode_lines_are_told() -> None:
    """The last one."""
    decode = boot("boot-ddtree-fork-b8-B12").decode
    assert decode is not None
    assert (decode.running, decode.accept_len, decode.accept_rate, decode.tokens_per_s) == (1, 4.81, 0.54, 149.02)
    assert decode.graph is True


def test_a_mismatch_is_one_warning_though_every_rank_prints_it() -> None:
    """Eight ranks, one warning."""
    (warning,) = boot("boot-ddtree-fork-b16-B24-trained-8").facts.warnings
    assert "block size mismatch" in warning


@pytest.mark.parametrize("path", [*BOOTS, DATA / "fail-sm120-shared-memory.log"], ids=lambda path: path.stem)
def test_byte_by_byte_is_the_same_as_whole(path: Path) -> None:
    """Cut at every place: the same state and the same lines."""
    data = path.read_bytes()
    whole, parts = BootLog(), BootLog()
    lines = whole.feed(data, 0.0)
    assert [line for i in range(len(data)) for line in parts.feed(data[i : i + 1], 0.0)] == lines
    assert state(parts) == state(whole)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, len(FORK)), max_size=40))
def test_cut_anywhere_the_state_is_the_same(cuts: list[int]) -> None:
    """Pieces of random size."""
    whole, parts = BootLog(), BootLog()
    lines = whole.feed(FORK, 0.0)
    edges = [0, *sorted(cuts), len(FORK)]
    assert [line for a, b in pairwise(edges) for line in parts.feed(FORK[a:b], 0.0)] == lines
    assert state(parts) == state(whole)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    """Whatever a host prints, and a failure can be told at any time."""
    log = BootLog()
    for number, piece in enumerate(pieces):
        for line in log.feed(piece, float(number)):
            assert line.isprintable()
    assert log.failure(None).what


def line(rank: str, message: str) -> bytes:
    """A line as SGLang's logger writes it."""
    return f"[2026-11-18 14:02:01{' ' if rank else ''}{rank}] {message}\n".encode()


def shard(done: int, total: int = 4) -> bytes:
    """A state of the bar, written over the one before."""
    return f"\rMulti-thread loading shards:  25% Completed | {done}/{total} [00:03<00:09,  3.01s/it]".encode()


def test_the_bar_moves_with_every_write_though_no_line_ends() -> None:
    """A line-based reader would show nothing until the end."""
    log = BootLog()
    log.feed(line("TP0", "Load weight begin. avail mem=94.23 GB"), 0.0)
    seen = []
    for done in range(5):
        assert log.feed(shard(done), 10.0 * done) == []
        assert log.progress.target is not None
        seen.append((log.progress.target.done, log.progress.target.eta_s))
    assert seen == [(0, None), (1, None), (2, None), (3, 10.0), (4, 0.0)]


def test_the_finished_bar_is_one_line() -> None:
    """Thousands of states become the last one."""
    log = BootLog()
    lines = log.feed(b"".join(shard(done) for done in range(5)) + b"\n", 0.0)
    assert len(lines) == 1
    assert "4/4" in lines[0]


def test_an_error_glued_to_a_bar_is_kept() -> None:
    """It is shown as a line of its own, and it explains the death."""
    log = BootLog()
    lines = log.feed(shard(3) + line("TP3", "ValueError: Unknown speculative algorithm name: X"), 0.0)
    assert lines == ["[2026-11-18 14:02:01 TP3] ValueError: Unknown speculative algorithm name: X"]
    assert log.failure(1).cause == "unknown-algorithm"


def test_two_ranks_lines_that_came_out_as_one_are_taken_apart() -> None:
    """The newline of the first was written after the second."""
    log = BootLog()
    glued = line("TP0", "Load weight begin.")[:-1] + line("TP1", "Load weight begin.") + b"\n"
    assert len(log.feed(glued, 0.0)) == 2
    assert log.progress.phase is Phase.LOAD_TARGET


def test_a_draft_bar_is_the_leaders_second_load() -> None:
    """Another rank that is ahead does not turn the leader's target bar into a draft bar."""
    log = BootLog()
    log.feed(line("TP0", "Load weight begin.") + line("TP1", "Load weight begin."), 0.0)
    log.feed(line("TP1", "Load weight begin.") + shard(1, 64), 1.0)
    assert log.progress.target == ShardBar(1, 64)
    assert log.progress.draft is None
    log.feed(b"\n" + line("TP0", "Load weight begin.") + shard(1, 3), 2.0)
    assert log.progress.draft == ShardBar(1, 3)


def test_one_gpu_has_no_rank_in_its_lines() -> None:
    """As the real SGLang prints on one device."""
    log = BootLog()
    log.feed(line("", "Load weight begin. avail mem=21.55 GB") + shard(4), 0.0)
    log.feed(b"\n" + line("", "KV Cache is allocated. dtype: x, #tokens: 8192, K size: 0.22 GB"), 5.0)
    assert log.progress.phase is Phase.KV
    assert log.progress.finished[Phase.LOAD_TARGET] == 5.0


def test_phases_are_measured_by_when_their_lines_arrived() -> None:
    """The slowest rank decides; a phase that comes twice adds up."""
    clock = PhaseClock()
    clock.start(0.0)
    for rank in ("TP0", "TP1"):
        clock.join(rank)
    clock.enter("TP0", Phase.LOAD_TARGET, 1.0)
    assert clock.phase is Phase.INIT
    clock.enter("TP1", Phase.LOAD_TARGET, 2.0)
    clock.enter("TP1", Phase.KV, 10.0)
    assert clock.phase is Phase.LOAD_TARGET
    clock.enter("TP0", Phase.KV, 12.0)
    for rank in ("TP0", "TP1"):
        clock.enter(rank, Phase.LOAD_DRAFT, 13.0)
    for rank in ("TP0", "TP1"):
        clock.enter(rank, Phase.KV, 20.0)
    clock.enter_all(Phase.WARMUP, 22.0)
    clock.enter("TP0", Phase.GRAPHS, 23.0)
    clock.enter_all(Phase.READY, 30.0)
    assert clock.finished == {
        Phase.INIT: 2.0, Phase.LOAD_TARGET: 10.0, Phase.KV: 3.0, Phase.LOAD_DRAFT: 7.0, Phase.WARMUP: 8.0,
    }  # fmt: skip


def test_secrets_do_not_leave_the_tracker() -> None:
    """SGLang prints its API key in clear; the profile's own secrets are known by their value."""
    log = BootLog(secrets=("tops3cret",))
    lines = log.feed(line("", "server_args={api_key='sk-EXAMPLE-do-not-show', x='tops3cret'} Error"), 0.0)
    told = "\n".join([*lines, *log.failure(1).evidence])
    assert "do-not-show" not in told
    assert "tops3cret" not in told


def test_a_long_line_is_cut_and_the_tail_is_bounded() -> None:
    """`server_args` is one line of many thousand characters; a flood does not grow the tracker."""
    log = BootLog()
    (shown,) = log.feed(line("", "server_args={" + "x" * 20_000 + "}"), 0.0)
    assert len(shown) == 4096
    for number in range(2_000):
        log.feed(line("TP1", f"RuntimeError: number {number}"), 1.0)
    evidence = log._evidence
    assert len(evidence.tail) == 400
    assert len(evidence.errors()) < 120


def test_a_false_ready_still_tells_that_the_port_was_held() -> None:
    """The log's own "fired up" is its word alone."""
    log = boot("fail-port-held-false-ready")
    assert log.progress.fired_up
    assert log.facts.bind_failed is not None
    assert "address already in use" in log.facts.bind_failed
