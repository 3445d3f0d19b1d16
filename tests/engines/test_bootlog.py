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
LOGS = sorted(DATA.glob("*.log"))


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
    assert warning.code == "block-size-mismatch"
    assert "trained at block size 8 and runs at 16" in warning.what
    assert "block size mismatch" in warning.evidence
    assert warning.advice


def whole(data: bytes) -> tuple[list[str], tuple[Any, ...]]:
    """Lines and state after one feed."""
    log = BootLog()
    return log.feed(data, 0.0), state(log)


def in_pieces(data: bytes, edges: list[int]) -> tuple[list[str], tuple[Any, ...]]:
    """Lines and state after a feed for each piece between two edges."""
    log = BootLog()
    lines = [line for a, b in pairwise([0, *edges, len(data)]) for line in log.feed(data[a:b], 0.0)]
    return lines, state(log)


@pytest.mark.parametrize("path", [BOOTS[0], DATA / "fail-sm120-shared-memory.log"], ids=lambda path: path.stem)
def test_byte_by_byte_is_the_same_as_whole(path: Path) -> None:
    """Cut at every place: the same state and the same lines."""
    data = path.read_bytes()
    assert in_pieces(data, list(range(1, len(data)))) == whole(data)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_line_by_line_is_the_same_as_whole(path: Path) -> None:
    """Blocks of lines are read another way than single ones."""
    data = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    assert in_pieces(data, ends) == whole(data)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
@settings(max_examples=12, deadline=None)
@given(size=st.integers(2, 5_000), cuts=st.lists(st.integers(0, 30_000), max_size=40))
def test_every_sample_cut_anywhere_gives_the_same(path: Path, size: int, cuts: list[int]) -> None:
    """Phases, facts, bars, decode line, lines and failure, in pieces of one size and in pieces of any."""
    data = path.read_bytes()
    expected = whole(data)
    assert in_pieces(data, list(range(size, len(data), size))) == expected
    assert in_pieces(data, sorted(min(cut, len(data)) for cut in cuts)) == expected


STAMPED = st.builds(
    lambda rank, message: f"[2026-11-18 14:02:0{len(message) % 10}{rank}] {message}",
    st.sampled_from(["", " TP0", " TP3", " DP1 TP7"]),
    st.sampled_from(
        [
            "Init parallel begin.", "Load weight begin. avail mem=94.23 GB", "KV Cache is allocated.",
            "Load weight end. elapsed=4.14 s, type=Qwen3ForCausalLM, avail mem=21.03 GB",
            "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=13, avail mem=1.63 GB",
            "Decode batch, #running-req: 1, accept len: 4.62, accept rate: 0.52, cuda graph: True, gen throughput "
            "(token/s): 141.20, #queue-req: 0",
            "Decode batch, #running-req: 1, accept len: 1.02, accept rate: 0.01, cuda graph: False, gen throughput "
            "(token/s): 31.20, #queue-req: 0",
            "Decode batch [7], accept len: 1.10, cuda graph: True, gen throughput (token/s): 1.0",
            "Prefill batch, #new-seq: 1, #new-token: 71, cuda graph: False, input throughput (token/s): 3.10",
            'INFO:     127.0.0.1:51450 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
            'INFO:     127.0.0.1:51450 - "GET /x?api_key=abcdefgh HTTP/1.1" 401 Unauthorized',
            "DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config block_size=8.",
            "Scheduler hit an exception: Traceback (most recent call last):",
            "NCCL error in: x", "The server is fired up and ready to roll!", "nothing of note", "bs=[2, 4]",
            "server_args={api_key='sk-EXAMPLE-do-not-show'}", "x < 3 and 3:<4", "",
        ]
    ),
)  # fmt: skip
ODD = st.sampled_from(
    [
        "  File \"x.py\", line 3, in f", "ValueError: odd", "", "   ", "\tindented", "caf\u00e9 \u2588\u2588",
        "\x1b[31mred\x1b[0m", "Multi-thread loading shards:  25% Completed | 1/4 [00:03<00:09,  3.01s/it]",
        "Capturing batches (bs=8 avail_mem=9.55 GB):  20%|\u2588\u2588  | 1/5 [00:01<00:04,  1.80s/it]", "x" * 5_000,
        "Decode batch, accept len: 1.01, gen throughput (token/s): 9.0",
    ]
)  # fmt: skip
LOG_LINES = st.lists(st.tuples(st.one_of(STAMPED, STAMPED, ODD), st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", ""])))


@settings(max_examples=150, deadline=None)
@given(parts=LOG_LINES, junk=st.binary(max_size=6), cuts=st.lists(st.integers(0, 4_000), max_size=10))
def test_any_mix_of_lines_cut_anywhere_gives_the_same(
    parts: list[tuple[str, str]], junk: bytes, cuts: list[int]
) -> None:
    """Routine in runs, glued lines, bars, colours, bad bytes, secrets and silent troubles in any order."""
    half = len(parts) // 2
    head, tail = ("".join(text + end for text, end in some).encode() for some in (parts[:half], parts[half:]))
    data = head + junk + tail
    assert in_pieces(data, sorted(min(cut, len(data)) for cut in cuts)) == whole(data)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    """Whatever a host prints, and a failure can be told at any time."""
    log = BootLog()
    for number, piece in enumerate(pieces):
        for line in log.feed(piece, float(number)):
            assert line.isprintable()
    assert log.failure(None).what


def line(rank: str, message: str, second: int = 1) -> bytes:
    """A line as SGLang's logger writes it."""
    return f"[2026-11-18 14:02:{second:02d}{' ' if rank else ''}{rank}] {message}\n".encode()


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
    log.feed(b"\n" + line("", "KV Cache is allocated. dtype: x, #tokens: 8192, K size: 0.22 GB", second=6), 5.0)
    assert log.progress.phase is Phase.KV
    assert log.progress.finished[Phase.LOAD_TARGET] == 5.0


@pytest.mark.parametrize(
    ("lines", "phase"),
    [
        (["Init parallel begin.", "Load weight begin.", "Load weight end."], Phase.LOAD_TARGET),  # a drafter may follow
        (["server_args={speculative_algorithm='DFLASH'}", "Load weight begin.", "Load weight end."], Phase.LOAD_TARGET),
        (["server_args={'speculative_algorithm': None}", "Load weight begin.", "Load weight end."], Phase.KV),
        (["server_args=ServerArgs(x=1, speculative_algorithm=None)", "Load weight begin.", "Load weight end."],
         Phase.KV),
        (["Load weight begin.", "Load weight end.", "Load weight begin.", "Load weight end."], Phase.KV),
        (["Init torch distributed begin.", "Load weight begin.", "Load weight end."], Phase.KV),  # each model by itself
    ],
)  # fmt: skip
def test_once_all_weights_are_in_the_cache_is_next(lines: list[str], phase: Phase) -> None:
    """A minute may pass before its first line; what dies in it did not die while loading."""
    log = BootLog()
    log.feed("".join(f"[2026-11-18 14:02:22] {line}\n" for line in lines).encode(), 0.0)
    assert log.progress.phase is phase


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


@pytest.mark.parametrize(
    ("name", "dialect"),
    [("boot-0.5.11-dflash-b8", "0.5.11 to 0.5.12"), ("boot-0.5.23-dflash-b8", "0.5.16 or later")],
)
def test_the_dialect_is_told_by_its_words(name: str, dialect: str) -> None:
    """Old engines load, allocate and capture for the target before they load the draft."""
    assert boot(name).facts.dialect == dialect


def test_phases_come_from_the_logs_own_time_when_its_lines_came_late() -> None:
    """After a lost connection a whole boot arrives at once; nine minutes are not told as none."""
    finished = boot("boot-ddtree-fork-b8-B12").progress.finished
    assert finished[Phase.LOAD_TARGET] == pytest.approx(400, abs=2)
    assert finished[Phase.GRAPHS] == pytest.approx(48, abs=2)
    assert sum(finished.values()) == pytest.approx(513, abs=5)


def test_stamps_that_agree_leave_the_finer_time_of_arrival() -> None:
    """Stamps are whole seconds."""
    log = BootLog()
    log.feed(line("", "Load weight begin."), 10.0)
    log.feed(line("", "KV Cache is allocated.", second=4), 12.345)
    assert log.progress.finished[Phase.LOAD_TARGET] == pytest.approx(2.345)


def test_each_rank_tells_how_long_it_loaded_and_which_are_waited_for() -> None:
    """The slow disk or card of eight is named."""
    log = boot("boot-0.5.23-dflash-b8")
    loads = log.progress.loads
    assert set(loads) == {"target", "draft"}
    assert all(390 < seconds < 410 for seconds in loads["target"].values())
    assert set(loads["target"]) == set(loads["draft"]) == {f"TP{rank}" for rank in range(8)}
    late = BootLog()
    late.feed(b"".join(line(f"TP{rank}", "Load weight begin.") for rank in range(4)), 0.0)
    late.feed(b"".join(line(f"TP{rank}", "KV Cache is allocated.") for rank in (0, 1, 3)), 1.0)
    assert late.progress.phase is Phase.LOAD_TARGET
    assert late.progress.waits_for == ("TP2",)


def test_the_real_engines_boot_is_followed_to_its_ready() -> None:
    """SGLang 0.5.23 as it printed on a CPU: warnings without a prefix, one rank, no speculation."""
    progress = boot("real-0.5.23-cpu-boot-8-shards").progress
    assert progress.phase is Phase.READY
    assert progress.target == ShardBar(8, 8)
    assert progress.draft is None
    assert progress.loads == {"target": {"": 4.14}}
    assert {Phase.INIT, Phase.LOAD_TARGET, Phase.KV, Phase.WARMUP} == set(progress.finished)
    assert boot("real-0.5.23-cpu-boot").facts.warnings == ()


def test_a_line_of_many_megabytes_costs_no_memory() -> None:
    """It is told once, cut, and the line after it is read."""
    log = BootLog()
    lines = [line for _ in range(80) for line in log.feed(b"y" * 65_536, 0.0)]
    assert [len(line) for line in lines] == [4096]
    assert log.feed(b"\n" + line("", "Load weight begin."), 0.0) == ["[2026-11-18 14:02:01] Load weight begin."]
    assert log.progress.phase is Phase.LOAD_TARGET
