"""The life of a toy engine: it loads with the port closed, works, ends as it is told, and leaves nothing behind."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from fakes.toy_engine import ANSWERS, DEADLINE_S, TREE, alive, engine, rank_pids


def test_the_port_is_closed_while_loading_and_sigterm_leaves_nothing(tmp_path: Path) -> None:
    """Refused, then 503, then 200; ranks carry SGLang's names; TERM drains, exits 0, and no child is left."""
    with engine(tmp_path, *TREE, speed=15) as running:
        running.wait_for(lambda: "shards: " in running.log(), "bar")
        assert running.status("/health") is None
        running.wait_ready()
        pids = rank_pids(tmp_path)
        names = [Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode() for pid in pids]
        assert names == [f"sglang::scheduler_TP{rank}" for rank in range(8)]
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(DEADLINE_S) == 0
        assert not any(alive(pid) for pid in pids)
        assert "SIGTERM received." in running.log()
        assert running.status("/health") is None
        assert list((tmp_path / "run").iterdir()) == []


def test_sigterm_lets_a_running_request_finish(tmp_path: Path) -> None:
    """The stream goes on to its end while /ready already says 503."""
    with engine(tmp_path, *TREE, scale="0.5") as running:
        running.wait_ready()
        body = {"text": ANSWERS["code-sieve"].prompt, "stream": True, "sampling_params": {"max_new_tokens": 400}}
        with running.client.stream("POST", "/generate", json=body) as response:
            lines = (line for line in response.iter_lines() if line)
            next(lines)
            running.process.send_signal(signal.SIGTERM)
            with httpx.Client(base_url=running.client.base_url) as other:
                running.wait_for(lambda: other.get("/ready").status_code == 503, "draining")
            *_, last, done = lines
        assert done == "data: [DONE]"
        assert json.loads(last.removeprefix("data: "))["text"] == ANSWERS["code-sieve"].answer
        assert running.process.wait(DEADLINE_S) == 0
        assert "Gracefully exiting... Remaining number of requests 1." in running.log()


def test_sigterm_to_the_whole_group_is_as_gentle(tmp_path: Path) -> None:
    """A launcher that ends the process group does not turn a clean end into a crash."""
    with engine(tmp_path, *TREE) as running:
        running.wait_ready()
        os.killpg(running.process.pid, signal.SIGTERM)
        assert running.process.wait(DEADLINE_S) == 0
        assert "crashed" not in running.log()


def test_ranks_follow_a_killed_root(tmp_path: Path) -> None:
    """KILL of the root alone ends all eight schedulers."""
    with engine(tmp_path, *TREE) as running:
        running.wait_ready()
        pids = rank_pids(tmp_path)
        assert all(alive(pid) for pid in pids)
        running.process.kill()
        running.process.wait()
        running.wait_for(lambda: not any(alive(pid) for pid in pids), "end of the ranks")


def test_a_killed_rank_brings_the_engine_down(tmp_path: Path) -> None:
    """As SGLang: the root notices, says so, and kills its tree, itself included."""
    with engine(tmp_path, *TREE) as running:
        running.wait_ready()
        pids = rank_pids(tmp_path)
        os.kill(pids[3], signal.SIGKILL)
        assert running.process.wait(DEADLINE_S) == -signal.SIGKILL
        assert f"Subprocess scheduler_3 (pid={pids[3]}) crashed with exit code -9." in running.log()
        assert not any(alive(pid) for pid in pids)


def test_abort_and_hang_up_free_the_engine(tmp_path: Path) -> None:
    """An aborted request says so; one whose client is gone does not run on."""
    with engine(tmp_path, *TREE, scale="1") as running:
        running.wait_ready()
        body = {"text": ANSWERS["code-sieve"].prompt, "stream": True, "rid": "R1",
                "sampling_params": {"max_new_tokens": 4000, "ignore_eos": True}}  # fmt: skip
        with running.client.stream("POST", "/generate", json=body) as response:
            lines = (line for line in response.iter_lines() if line)
            next(lines)
            assert httpx.post(f"{running.client.base_url}/flush_cache").status_code == 400
            assert httpx.post(f"{running.client.base_url}/abort_request", json={"rid": "R1"}).status_code == 200
            *_, last, _ = lines
        assert json.loads(last.removeprefix("data: "))["meta_info"]["finish_reason"]["type"] == "abort"
        with running.client.stream("POST", "/generate", json=body | {"rid": "R2"}) as response:
            next(response.iter_lines())
        running.wait_for(lambda: running.client.post("/flush_cache").status_code == 200, "idle engine")


def test_cards_follow_what_the_engine_does(tmp_path: Path) -> None:
    """Memory grows while loading, utilization and power rise while decoding and fall when it rests."""
    with engine(tmp_path, *TREE, speed=15, scale="0.5") as running:
        running.wait_for(lambda: any((tmp_path / "run").glob("engine-*.json")), "state file")
        assert running.state()["memory_mib"][0] < 60_000
        running.wait_ready()
        running.wait_for(lambda: running.state()["memory_mib"][0] > 85_000, "full memory")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(running.generate, "code-ring-buffer", 300, ignore_eos=True)
            running.wait_for(lambda: running.state()["utilization"][0] > 60, "utilization")
            assert running.state()["power_w"][0] > 250
            answer.result()
        running.wait_for(lambda: running.state()["utilization"] == [0] * 8, "rest")
        assert running.state()["pid"] == running.process.pid


def test_a_key_is_asked_for(tmp_path: Path) -> None:
    """Everything but the health paths needs the bearer token; the engine's own warm-up has it."""
    with engine(tmp_path, *TREE, "--api-key", "sk-toy-secret") as running:
        running.wait_ready()
        assert [running.status(path) for path in ("/health", "/ready", "/server_info")] == [200, 200, 401]
        keyed = running.client.get("/server_info", headers={"Authorization": "Bearer sk-toy-secret"})
        assert keyed.status_code == 200
        assert running.status("/metrics") == 404, "metrics are off without their flag"


@pytest.mark.parametrize(
    ("flags", "width", "mismatch"),
    [
        (("--speculative-algorithm", "DFLASH"), 8, 0),
        (("--speculative-algorithm", "DFLASH", "--speculative-num-draft-tokens", "16"), 16, 8),
        ((), 1, 0),
    ],
)
def test_controls_answer_alike(tmp_path: Path, flags: tuple[str, ...], width: int, mismatch: int) -> None:
    """Chain and no drafter give the same text; a wrong block size is a warning of all eight ranks and no more."""
    with engine(tmp_path, *flags) as running:
        running.wait_ready()
        answer = running.generate("small-merge-ranges")
        assert answer["text"] == ANSWERS["small-merge-ranges"].answer
        assert ("spec_verify_ct" in answer["meta_info"]) == bool(flags)
        assert f"num_tokens_per_req={width}, " in running.log()
        text = "using speculative_num_draft_tokens=16 but draft config block_size=8."
        assert running.log().count(f"DFLASH block size mismatch: {text}") == mismatch
