"""The main job, end to end: a real ssh connection, real processes, a real DDTree, and nothing left behind."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
from typing import Any

import pytest
from fakes.command import Cli, wait_for

from .conftest import THREE

pytestmark = pytest.mark.xdist_group("e2e")


def by_id(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in items}


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_three_configs_are_started_measured_and_make_way(cli: Cli) -> None:
    """Tree, chain, and a tree beyond the trained block size: verdicts, τ in order, equal text, a clean host."""
    cli.profile(*THREE)
    done = cli.run("run", "e2e", "--json")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    results = by_id(cli.json("results", "e2e", "list")["items"])
    tree, chain, wide = results["E1"], results["E2"], results["E3"]

    assert [results[id_]["outcome"] for id_ in ("E1", "E2", "E3")] == ["passed"] * 3
    assert tree["tau"] > chain["tau"] > 1
    assert wide["tau"] > 1
    assert all(result["coding"] == {"passed": 5, "total": 5} for result in results.values())
    assert len({result["text_sha256"] for result in results.values()}) == 1, "the drafter must never change the text"
    assert tree["tau"] == pytest.approx(tree["completion_tokens"] / tree["verify_steps"], rel=1e-3)
    assert "coding 5/5" in tree["verdict"]
    assert tree["tau_definition"] == "ΣC/ΣV"

    ready = [event for event in told if event["kind"] == "ready"]
    assert [event["kept"] for event in ready] == [False, False, False]
    widths = [fact for event in ready for fact in event["proved"] if fact.startswith("verify width")]
    assert [fact.split()[2] for fact in widths] == ["13", "8", "27"]
    assert [event["kind"] for event in told][-1] == "connection"
    ends = [event["kind"] for event in told if event["kind"] in ("run_started", "run_finished")]
    assert ends == ["run_started", "run_finished"]

    database = sqlite3.connect(cli.home / "dd" / "data" / "ddconsole.db")
    assert database.execute("SELECT count(*) FROM requests").fetchone()[0] == 3 * (5 + 3)
    assert database.execute("SELECT count(*) FROM engines").fetchone()[0] == 0
    database.close()

    ports = [int(fact.split()[1]) for event in ready for fact in event["proved"] if fact.startswith("port")]
    assert len(ports) == 3
    assert cli.engine_pids() == []
    assert all(port_is_free(port) for port in ports)


def test_a_second_terminal_edits_the_queue_while_one_runs(cli: Cli) -> None:
    """What another process puts in front runs next; what it holds or removes does not run."""
    cli.profile(*(f"{spec} passes=throughput" for spec in THREE), scale=0.5)
    with cli.start("run", "e2e", "--json") as run:
        assert run.stdout is not None
        started = (json.loads(line) for line in run.stdout)
        assert next(event for event in started if event["kind"] == "experiment_started")["id"] == "E1"
        assert cli.run("queue", "e2e", "next", "b=4", "B=6", "passes=throughput").returncode == 0
        assert cli.run("queue", "e2e", "remove", "E2").returncode == 0
        assert cli.run("queue", "e2e", "hold", "E3").returncode == 0
        refused = cli.run("queue", "e2e", "edit", "E1", "B=20")
        assert refused.returncode == 3
        assert "running" in refused.stderr
        order = [event["id"] for event in started if event["kind"] == "experiment_started"]
        assert run.wait(60) == 0
    assert order == ["E4"]
    assert cli.states() == {"E1": "done", "E3": "held", "E4": "done"}


@pytest.mark.parametrize("moment", ["boot_progress", "ready", "request"])
def test_a_killed_runner_loses_nothing(cli: Cli, moment: str) -> None:
    """Kill -9 while loading, when ready, in a pass: everything is there, the engine is found, the queue goes on."""
    cli.profile(*(f"{spec} passes=throughput" for spec in THREE[:2]), scale=0.2)
    with cli.start("run", "e2e", "--json") as run:
        assert run.stdout is not None
        next(line for line in run.stdout if json.loads(line)["kind"] == moment)
        run.send_signal(signal.SIGKILL)
        run.wait(10)
    before = cli.states()
    assert set(before) == {"E1", "E2"}

    stopped = cli.run("run", "e2e")
    assert stopped.returncode == 3, "after an unclean end the queue waits for a word"
    assert cli.states() == {"E1": "queued", "E2": "queued"}
    items = cli.json("queue", "e2e", "list")["items"]
    assert [item["id"] for item in items] == ["E1", "E2"], "what was interrupted is at the front"

    resumed = cli.run("run", "e2e", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    results = [(item["id"], item["attempt"], item["outcome"]) for item in cli.json("results", "e2e", "list")["items"]]
    assert [one for one in results if one[2] != "interrupted"] == [("E1", 2, "passed"), ("E2", 1, "passed")]
    wait_for(lambda: cli.engine_pids() == [], what="no engine left")


def test_the_engine_of_a_killed_runner_is_adopted_when_the_queue_goes_on(cli: Cli) -> None:
    """It is not loaded a second time: the same process serves the new attempt, and is ended behind it."""
    cli.profile(f"{THREE[0]} passes=throughput", scale=0.2)
    with cli.start("run", "e2e", "--json") as run:
        assert run.stdout is not None
        next(line for line in run.stdout if json.loads(line)["kind"] == "request")
        run.send_signal(signal.SIGKILL)
        run.wait(10)
    before = cli.engine_pids()
    assert before, "the engine outlives its console"
    with cli.start("run", "e2e", "--resume", "--json") as resumed:
        assert resumed.stdout is not None
        told = map(json.loads, resumed.stdout)
        ready = next(event for event in told if event["kind"] == "ready" and event["attempt"] == 2)
        assert ready["kept"]
        assert cli.engine_pids() == before
        assert [event["outcome"] for event in told if event["kind"] == "experiment_finished"] == ["passed"]
        assert resumed.wait(30) == 0
    wait_for(lambda: cli.engine_pids() == [], what="no engine left")


def test_one_failed_experiment_is_recorded_and_the_queue_goes_on(cli: Cli) -> None:
    """Out of memory at load has its cause, evidence and advice; the next experiment runs."""
    cli.profile("add b=8 B=12 arg.fail=oom-at-load", "add b=8 B=12 passes=throughput")
    done = cli.run("run", "e2e")
    assert done.returncode == 1
    results = by_id(cli.json("results", "e2e", "list")["items"])
    failure = results["E1"]["failure"]
    assert failure["cause"] == "gpu-oom"
    assert any("CUDA out of memory" in line for line in failure["evidence"])
    assert failure["advice"]
    assert results["E2"]["outcome"] == "passed"
    assert cli.engine_pids() == []


def test_ctrl_c_ends_in_order(cli: Cli) -> None:
    """The experiment goes back to the front, the engine is stopped, the exit code is 130."""
    cli.profile(f"{THREE[0]} passes=throughput", scale=0.3)
    with cli.start("run", "e2e", "--json") as run:
        assert run.stdout is not None
        next(line for line in run.stdout if json.loads(line)["kind"] == "request")
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 130
    assert cli.states() == {"E1": "queued"}
    assert cli.engine_pids() == []
    assert cli.run("run", "e2e", "--max", "1").returncode == 0, "it ended cleanly, so it starts again without a word"


def test_an_engine_that_was_left_running_is_shown_and_ended_by_command(cli: Cli) -> None:
    """`run --keep-engine`, then `engine status`, `log` and `stop`: found by its record, ended with proof."""
    cli.profile(f"{THREE[0]} passes=throughput")
    assert cli.run("run", "e2e", "--keep-engine").returncode == 0
    (kept,) = cli.json("engine", "e2e", "status")["engines"]
    assert kept["alive"]
    assert kept["pid"] in cli.engine_pids()
    assert "Decode batch" in cli.run("engine", "e2e", "log").stdout
    (ended,) = cli.json("engine", "e2e", "stop")["stopped"]
    assert (ended["id"], ended["pid"], ended["remains"]) == ("E1", kept["pid"], [])
    assert "its processes are gone" in ended["proved"]
    assert cli.engine_pids() == []
    assert cli.json("engine", "e2e", "status")["engines"] == []


def test_doctor_tells_what_a_launch_would_find(cli: Cli) -> None:
    """Before paying for it: a warning is exit code 0, what would be refused is 1, nothing is started."""
    cli.profile()
    warned = cli.json("doctor", "e2e", "b=16", "B=26")
    assert [finding["code"] for finding in warned["findings"]] == ["trained-block-size", "numa-spread"]
    blocked = cli.run("doctor", "e2e", "B=12", "arg.page-size=64")
    assert blocked.returncode == 1
    assert "page" in blocked.stdout
    assert cli.engine_pids() == []


def test_a_reader_that_goes_away_does_not_end_the_run(cli: Cli) -> None:
    """`run --json | head -1`: the experiment is measured, the end is clean, no trace of ours on stderr."""
    cli.profile(f"{THREE[0]} passes=throughput")
    with cli.start("run", "e2e", "--json") as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        told = run.stderr.read()
        assert run.wait(60) == 0, told
    assert "Traceback" not in told
    assert "no more events go to stdout" in told
    assert cli.states() == {"E1": "done"}
