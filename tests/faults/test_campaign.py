"""The campaign's own logic: what hit nothing counts for nothing, and the same seed is the same campaign."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli
from faults.engines import found_again, is_left_alone, started_twice
from faults.kinds import Scene, killed
from faults.line import Line
from faults.outcomes import Outcome, exit_code, table, until_hit
from faults.plan import DRAWS, Point, drawn, is_milestone


def point(draw: int = 0, kind: str = "engine killed") -> Point:
    return Point(4, kind, 7, 0.1, None, draw)


def outcome(hit: bool, lost: str = "", draw: int = 0) -> Outcome:
    return Outcome(point(draw), "", ("engine pid 1",) if hit else (), hit, 1.0, [lost] if lost else [])


@pytest.fixture
def living() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_a_fault_that_hits_nothing_is_drawn_again_and_the_draw_that_hits_counts() -> None:
    tries = until_hit(point, lambda one: outcome(hit=one.draw == 2))
    assert [one.word for one in tries] == ["missed", "missed", "survived"]
    assert next(row for row in table(tries) if row.startswith("engine killed")).split()[2:6] == ["3", "1", "1", "0"]
    assert exit_code(tries, 1) == 0


def test_a_point_that_never_hits_is_given_up_and_the_campaign_is_not_whole() -> None:
    tries = until_hit(point, lambda one: outcome(hit=False))
    assert len(tries) == DRAWS
    assert list(table(tries))[-1].split()[2:6] == [str(DRAWS), "0", "0", "0"]
    assert exit_code(tries, 1) == 1


def test_a_broken_promise_is_lost_even_when_the_second_fault_missed() -> None:
    tries = until_hit(point, lambda one: outcome(hit=False, lost="E1 is lost"))
    assert [one.word for one in tries] == ["lost"]
    assert exit_code([*tries, outcome(hit=True)], 1) == 1


def test_the_same_seed_gives_the_same_points_whatever_was_drawn_again() -> None:
    assert [drawn(n, 1, 100) for n in range(40)] == [drawn(n, 1, 100) for n in range(40)]
    assert drawn(17, 1, 100).draw == 0
    assert drawn(4, 1, 100, 1).kind == drawn(4, 1, 100).kind
    assert drawn(4, 1, 100, 1).milestone != drawn(4, 1, 100).milestone
    assert drawn(4, 2, 100) != drawn(4, 1, 100)


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        ({"seq": 0, "kind": "boot_progress"}, False),
        ({"seq": 0, "kind": "connection", "state": "connected"}, False),
        ({"seq": 9, "kind": "connection", "state": "lost"}, False),
        ({"seq": 9, "kind": "phase", "phase": "graphs", "state": "started"}, False),
        ({"seq": 9, "kind": "phase", "phase": "graphs", "state": "done"}, True),
        ({"seq": 9, "kind": "phase", "phase": "launch", "state": "started"}, True),
        ({"seq": 9, "kind": "request"}, True),
    ],
)
def test_only_what_every_run_brings_is_a_milestone(event: dict[str, Any], counts: bool) -> None:
    assert is_milestone(event) is counts


class NoEngine(Cli):
    def engine_pids(self) -> list[int]:
        return []


@pytest.mark.parametrize("fault", [Scene.kill_engine, Scene.kill_rank, Scene.kill_server, Scene.cut, Scene.kill_all])
def test_a_fault_with_nothing_to_hit_says_so(fault: Callable[[Scene], tuple[str, ...]], tmp_path: Path) -> None:
    """No engine, no ssh server, no connection, a console that has ended."""
    console = subprocess.Popen([sys.executable, "-c", ""], text=True)
    console.wait(30)
    line = Line(9)
    assert fault(Scene(NoEngine(tmp_path), console, line)) == ()
    line.close()


def test_a_fault_tells_what_it_hit(living: subprocess.Popen[str], tmp_path: Path) -> None:
    line = Line(9)
    assert Scene(NoEngine(tmp_path), living, line).kill_all() == (f"console pid {living.pid}",)
    line.close()
    assert living.wait(30) == -signal.SIGKILL
    assert killed("engine", [living.pid]) == ()


def test_a_process_of_a_home_is_seen_and_one_of_another_is_not(tmp_path: Path) -> None:
    """Homes p1 and p12 are told apart."""
    env = os.environ | {"DDCONSOLE_HOME": str(tmp_path / "p12" / "dd")}
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in Cli(tmp_path / "p12").processes()
        assert process.pid not in Cli(tmp_path / "p1").processes()
        process.kill()


def event(kind: str, id_: str = "E1", attempt: int = 1, **cells: Any) -> dict[str, Any]:
    return {"kind": kind, "id": id_, "attempt": attempt, **cells}


def launched(id_: str, attempt: int = 1, width: int = 13) -> list[dict[str, Any]]:
    return [
        event("experiment_started", id_, attempt, effective={"width": width}),
        event("phase", id_, attempt, phase="launch", state="started"),
    ]


FOUND = event("warning", text="found the engine of E1 again, pid 4711")
DEAD = event("warning", text="the engine of E1 had ended; nothing of it is left")
STOPPED = event("phase", phase="stop", state="done")


@pytest.mark.parametrize(
    ("between", "twice"),
    [
        ([event("run_started"), FOUND], True),
        ([event("run_started"), DEAD], False),
        ([STOPPED], False),
        ([event("run_finished")], False),
        ([], True),
    ],
)
def test_an_engine_that_lives_may_not_be_started_again(between: list[dict[str, Any]], twice: bool) -> None:
    events = [event("run_started"), *launched("E1"), *between, *launched("E1", 2)]
    assert bool(list(started_twice(events))) is twice


def test_another_config_is_another_engine() -> None:
    assert not list(started_twice([*launched("E1"), FOUND, *launched("E2", width=27)]))


def test_an_engine_has_to_be_found_again_after_a_death_in_the_middle_alone() -> None:
    assert is_left_alone(launched("E1"))
    assert not is_left_alone([*launched("E1"), event("phase", phase="stop", state="started")])
    assert not is_left_alone([*launched("E1"), event("experiment_finished")])
    assert found_again([FOUND, DEAD]) == {4711}
