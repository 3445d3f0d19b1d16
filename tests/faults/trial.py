"""One point: a home, a run, a fault in it, the run taken up again, and a look at what is left."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from fakes.command import Cli, end_demo, wait_for

from .engines import found_again, is_left_alone
from .kinds import KINDS, Hits, Scene
from .line import Line, put_between
from .outcomes import Outcome
from .plan import Point, is_milestone, name_of
from .promises import Undisturbed, broken, stored_events

QUEUE = (
    "sweep b=8 B=12,16",
    "add b=8 B=16 passes=throughput",  # the same engine once more: it is kept
    "add algorithm=chain b=8",
    "add algorithm=off passes=throughput",
)

PROFILE = "e2e"

RUN_S = 180.0
"""Seconds that one run may take before it is a hang."""

ROUNDS = 6
"""Runs after which a queue that is not at its end is lost."""


@contextmanager
def home(folder: Path) -> Iterator[tuple[Cli, Line]]:
    """A home with its profile and a demo host behind a line; nothing of it is left afterwards."""
    folder.mkdir()
    world = Cli(folder)
    (folder / "tmp").mkdir()
    world.env |= {"DDCONSOLE_DEMO_SPEED": "200", "TMPDIR": str(folder / "tmp")}
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
        events = map(json.loads, done.stdout.splitlines())
        milestones = tuple(name_of(event) for event in events if is_milestone(event))
        reference = Undisturbed({item["id"]: item for item in items}, milestones)
        assert not (said := broken(world, reference)), said
        return reference


def try_point(folder: Path, point: Point, reference: Undisturbed) -> Outcome:
    """Let it happen, take the run up again, and look at what is left; a fault that hit nothing is left at that."""
    outcome = Outcome(point, reference.milestones[point.milestone])
    began = time.monotonic()
    try:
        with home(folder) as (world, line):
            outcome.hits = disturbed(world, line, point.kind, point.milestone, point.delay_s)
            outcome.whole = bool(outcome.hits)
            if outcome.hits:
                roots = left_alone(world)
                outcome.whole = again(world, line, point, outcome)
                outcome.lost = taken_up(world) or [*broken(world, reference), *not_found(world, roots)]
    except Exception as error:
        outcome.lost = [f"{type(error).__name__}: {error}"]
    outcome.seconds = time.monotonic() - began
    return outcome


def again(world: Cli, line: Line, point: Point, outcome: Outcome) -> bool:
    """The second fault, in the recovery from the first; False when it found nothing to hit."""
    if point.again is None:
        return True
    hits = disturbed(world, line, point.kind, point.again, point.delay_s, "--resume")
    outcome.hits += hits
    return bool(hits)


def disturbed(world: Cli, line: Line, kind: str, milestone: int, delay_s: float, *words: str) -> Hits:
    """A run with a fault after its `milestone`th milestone, until it ends by itself or by the fault. What was hit.

    A run in which nothing was hit is ended at once: it would only be a run like any other.
    """
    hits: Hits = ()
    with world.start("run", PROFILE, "--json", *words) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        with ThreadPoolExecutor(1) as reader:
            said = reader.submit(run.stderr.read)
            milestones = (text for text in run.stdout if is_milestone(json.loads(text)))
            for number, _ in enumerate(milestones):
                if number == milestone:
                    signal.sigtimedwait([], delay_s)
                    hits = KINDS[kind](Scene(world, run, line))
                    if not hits and not words:
                        run.kill()
            ended(run)
            said.result()
    return hits


def ended(run: subprocess.Popen[str]) -> None:
    """Its output is at an end; so must it be."""
    try:
        run.wait(RUN_S)
    except subprocess.TimeoutExpired:
        run.kill()
        raise


def left_alone(world: Cli) -> list[int]:
    """Engines that live on without a console, in the middle of an attempt: the next console has to find them."""
    with closing(sqlite3.connect(world.home / "dd" / "data" / "ddconsole.db")) as db:
        return world.engine_roots() if is_left_alone(stored_events(db)) else []


def not_found(world: Cli, roots: list[int]) -> Iterator[str]:
    """Those of them that were not found again."""
    with closing(sqlite3.connect(world.home / "dd" / "data" / "ddconsole.db")) as db:
        found = found_again(stored_events(db))
    for pid in roots:
        if pid not in found:
            yield f"the engine that a dead console had left, pid {pid}, was not found again"


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
