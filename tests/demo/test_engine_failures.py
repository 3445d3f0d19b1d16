"""Failures on demand: each leaves SGLang's evidence in the log, its exit status, and no process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fakes.toy_engine import engine

TREE = ("--speculative-algorithm", "DDTREE", "--speculative-draft-model-path", "Toy-DFlash")


def run(tmp_path: Path, *flags: str, port: int = 1, fail: str = "") -> tuple[int, list[str]]:
    """Run an engine until it ends; gives its exit status and the lines of its log, bars split."""
    env = os.environ | {
        "DDCONSOLE_DEMO_SPEED": "200",
        "DDCONSOLE_DEMO_HOME": str(tmp_path),
        "DDCONSOLE_DEMO_FAIL": fail,
    }
    argv = [sys.executable, "-m", "ddconsole.demo.engine", "--model-path", "Toy", "--port", str(port), *flags]
    # The ranks hold the pipe too: that its end is seen proves that they are gone.
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, timeout=30, check=False)
    return done.returncode, done.stdout.decode().replace("\r", "\n").splitlines()


def test_out_of_memory_at_load(tmp_path: Path) -> None:
    """Rank 5 is first, the seven others follow, and the root kills its tree."""
    status, lines = run(tmp_path, *TREE, "--fail", "oom-at-load")
    assert status == -signal.SIGKILL
    causes = [line for line in lines if line.startswith("torch.OutOfMemoryError: CUDA out of memory.")]
    assert len(causes) == 8
    assert "GPU 5 has a total capacity of 94.97 GiB" in causes[0]
    assert lines[-1].endswith("Received sigquit from a child process. It usually means the child failed.")
    assert not any("64/64" in line for line in lines)
    assert list((tmp_path / "run").iterdir()) == []


def test_crash_in_graph_capture(tmp_path: Path) -> None:
    """All weights are loaded, then the capture fails with advice; the environment can ask for it."""
    status, lines = run(tmp_path, *TREE, fail="graph-crash")
    assert status == -signal.SIGKILL
    assert any("64/64" in line for line in lines)
    assert sum("Capture cuda graph failed: CUDA out of memory." in line for line in lines) == 9
    assert "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)" in lines
    assert not any("Uvicorn running" in line for line in lines)


def test_hang_after_the_last_shard(tmp_path: Path) -> None:
    """Nothing is logged after 100 % until the watchdog, which is told by a flag, ends it."""
    status, lines = run(tmp_path, *TREE, "--fail", "hang-at-100", "--watchdog-timeout", "0.2")
    assert status == -signal.SIGKILL
    last = next(number for number, line in enumerate(lines) if "100% Completed | 64/64" in line)
    assert "Scheduler watchdog timeout (self.watchdog_timeout=0.2, self.soft=False)" in lines[last + 1]


@pytest.mark.parametrize("answers", [True, False])
def test_a_held_port_is_found_only_after_loading(tmp_path: Path, answers: bool) -> None:
    """Everything is loaded, the bind fails; the log says "fired up" only if the holder answers as an engine would."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        if not answers:
            holder.close()
            status, lines = run(tmp_path, *TREE, "--fail", "port-taken", port=port)
        else:
            status, lines = run_beside(tmp_path, holder, port)
    assert status == 1
    bind = (
        f"ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', {port}): address already in use"
    )
    assert any(line.endswith(bind) for line in lines)
    assert any("64/64" in line for line in lines)
    assert lines[-1].endswith("fired up and ready to roll!") == answers


def run_beside(tmp_path: Path, holder: socket.socket, port: int) -> tuple[int, list[str]]:
    """Run an engine on a port whose holder answers one request with 200."""

    def answer() -> None:
        connection, _ = holder.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    thread = threading.Thread(target=answer)
    thread.start()
    result = run(tmp_path, *TREE, port=port)
    thread.join(10)
    assert not thread.is_alive(), "the engine never asked the holder of its port"
    return result


def test_unknown_algorithm_is_an_early_error(tmp_path: Path) -> None:
    """A traceback that ends in SGLang's words, before anything is loaded."""
    status, lines = run(tmp_path, "--speculative-algorithm", "MEDUSA")
    assert (status, lines[-1]) == (1, "ValueError: Unknown speculative algorithm name: MEDUSA")


def test_garbage_at_one_budget(tmp_path: Path) -> None:
    """At the named budget the text loops up to its limit; speculation itself still works."""
    flags = (*TREE, "--fail", "garbage-at-budget=16", "--speculative-ddtree-budget", "16")
    with engine(tmp_path, *flags) as running:
        running.wait_ready()
        answer = running.generate("small-lru-hits", limit=300)
    tokens = answer["output_ids"]
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 300}
    assert tokens[-99:] == tokens[-3:] * 33
    assert answer["meta_info"]["spec_verify_ct"] > 0
