"""A campaign of faults against a run of five experiments on the demo host.

    python -m faults.campaign --points 200 --seed 1 --jobs 2

Each point has a home of its own. A run is disturbed at an event of its stream, taken up again until the queue is at
its end, and then every promise is checked against a run that nothing happened to. Prints a table: faults tried,
survived, lost; the exit code is 1 when one was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fakes.command import Cli, end_demo, wait_for

from .kinds import KINDS, TWICE, Scene
from .line import Line, put_between
from .promises import Undisturbed, broken

QUEUE = (
    "sweep b=8 B=12,16",
    "add b=8 B=16 passes=throughput",  # the same engine once more: it is kept
    "add algorithm=chain b=8",
    "add algorithm=off passes=throughput",
)

PROFILE = "e2e"

DELAY_S = 0.3
"""A fault comes up to so many seconds after its event."""

RUN_S = 180.0
"""Seconds that one run may take before it is a hang."""

ROUNDS = 6
"""Runs after which a queue that is not at its end is lost."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fault: what, at which event of the run, how long after it, and whether it comes again in the recovery."""

    number: int
    kind: str
    event: int
    delay_s: float
    again: int | None = None

    def __str__(self) -> str:
        again = "" if self.again is None else f", again at event {self.again} of the recovery"
        return f"point {self.number}: {self.kind} {self.delay_s:.2f} s after event {self.event}{again}"


@dataclass(slots=True)
class Outcome:
    """What became of a point."""

    point: Point
    kind_of_event: str
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)


def points(count: int, seed: int, events: int) -> list[Point]:
    """The points of a campaign: kinds in turn, moments at random, the same for the same seed."""
    dice = random.Random(seed)
    names = list(KINDS)
    found = []
    for number in range(count):
        kind = names[number % len(names)]
        again = dice.randrange(1, 20) if kind in TWICE and number // len(names) % 2 else None
        found.append(Point(number, kind, dice.randrange(1, events), dice.uniform(0, DELAY_S), again))
    return found


@contextmanager
def home(folder: Path) -> Iterator[tuple[Cli, Line]]:
    """A home with its profile and a demo host behind a line; nothing of it is left afterwards."""
    folder.mkdir()
    world = Cli(folder)
    world.env["DDCONSOLE_DEMO_SPEED"] = "200"
    world.profile(*QUEUE, scale=0.02)
    server = world.start("demo-host")
    try:
        wait_for(world.demo_host, what="the demo host listens")
        line = put_between(folder / "dd" / "state" / "demo")
        try:
            yield world, line
        finally:
            line.close()
    finally:
        server.terminate()
        server.communicate(timeout=30)
        end_demo(world)
        shutil.rmtree(folder, ignore_errors=True)


def undisturbed(folder: Path) -> Undisturbed:
    """The run that every other is compared with."""
    with home(folder) as (world, _):
        done = world.run("run", PROFILE, "--json", timeout=RUN_S)
        assert done.returncode == 0, done.stderr
        items = world.json("results", PROFILE, "list")["items"]
        kinds = tuple(json.loads(line)["kind"] for line in done.stdout.splitlines())
        return Undisturbed({item["id"]: item for item in items}, kinds)


def try_point(folder: Path, point: Point, reference: Undisturbed) -> Outcome:
    """Let it happen, take the run up again, and look at what is left."""
    outcome = Outcome(point, reference.events[point.event])
    began = time.monotonic()
    try:
        with home(folder) as (world, line):
            disturbed(world, line, point.kind, point.event, point.delay_s)
            if point.again is not None:
                disturbed(world, line, point.kind, point.again, point.delay_s, "--resume")
            outcome.lost = taken_up(world) or broken(world, reference)
    except Exception as error:
        outcome.lost = [f"{type(error).__name__}: {error}"]
    outcome.seconds = time.monotonic() - began
    return outcome


def disturbed(world: Cli, line: Line, kind: str, event: int, delay_s: float, *words: str) -> None:
    """A run with a fault after its `event`th event, waited for until it ends by itself or by the fault."""
    with world.start("run", PROFILE, "--json", *words) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        with ThreadPoolExecutor(1) as reader:
            said = reader.submit(run.stderr.read)
            for number, _ in enumerate(run.stdout):
                if number == event:
                    signal.sigtimedwait([], delay_s)
                    KINDS[kind](Scene(world, run, line))
            ended(run)
            said.result()


def ended(run: subprocess.Popen[str]) -> None:
    """Its output is at an end; so must it be."""
    try:
        run.wait(RUN_S)
    except subprocess.TimeoutExpired:
        run.kill()
        raise


def taken_up(world: Cli) -> list[str]:
    """Run until nothing is left to do; what failed is tried again once its failure is on record."""
    said = ""
    for _ in range(ROUNDS):
        states = world.states()
        failed = [id_ for id_, state in states.items() if state == "failed"]
        for id_ in failed:
            world.run("queue", PROFILE, "retry", id_)
        if not failed and all(state == "done" for state in states.values()):
            return []
        done = world.run("run", PROFILE, "--resume", timeout=RUN_S)
        said = done.stderr[-2000:]
    return [f"not at its end after {ROUNDS} runs: {world.states()}", said]


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Faults tried, survived and lost, by kind."""
    yield f"{'fault':<20}{'tried':>7}{'survived':>10}{'lost':>6}{'median s':>10}"
    for kind in KINDS:
        of_kind = [one for one in outcomes if one.point.kind == kind]
        if of_kind:
            lost = sum(bool(one.lost) for one in of_kind)
            seconds = sorted(one.seconds for one in of_kind)[len(of_kind) // 2]
            yield f"{kind:<20}{len(of_kind):>7}{len(of_kind) - lost:>10}{lost:>6}{seconds:>10.0f}"
    lost = sum(bool(one.lost) for one in outcomes)
    yield f"{'in all':<20}{len(outcomes):>7}{len(outcomes) - lost:>10}{lost:>6}"


def told(outcome: Outcome) -> Outcome:
    """Say how a point went, as soon as it is known."""
    word = "lost" if outcome.lost else "survived"
    print(f"{word:<9}{outcome.point} ({outcome.kind_of_event}), {outcome.seconds:.0f} s", flush=True)
    for line in outcome.lost:
        print(f"         {line}", flush=True)
    return outcome


def main() -> int:
    """The whole campaign; 0 when nothing was lost."""
    parser = argparse.ArgumentParser(description="Faults against a run of five experiments on the demo host.")
    parser.add_argument("--points", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="one point of the campaign, by its number")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ddf") as base:
        folder = Path(base)
        reference = undisturbed(folder / "reference")
        plan = points(asked.points, asked.seed, len(reference.events) - 2)
        if asked.only is not None:
            plan = [plan[asked.only]]
        print(f"{len(plan)} faults, seed {asked.seed}, in a run of {len(reference.events)} events", flush=True)
        with ThreadPoolExecutor(asked.jobs) as pool:
            outcomes = list(
                pool.map(lambda point: told(try_point(folder / f"p{point.number}", point, reference)), plan)
            )
    print()
    for line in table(outcomes):
        print(line)
    return int(any(one.lost for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
