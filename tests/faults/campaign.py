"""A campaign of faults against a run of five experiments on the demo host.

    python -m faults.campaign --points 200 --seed 1 --jobs 6

Each point has a home of its own. A run is disturbed at a milestone of its stream, taken up again until the queue is at
its end, and then every promise is checked against a run that nothing happened to. A point that found nothing to hit is
drawn again and counts for nothing. Prints a table: faults tried, those that hit, survived, lost; the exit code is 1
when one was lost, or when fewer hit than were asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .outcomes import Outcome, exit_code, table, until_hit
from .plan import drawn
from .trial import try_point, undisturbed

JOBS_A_CORE = 3
"""Points that run side by side on a core: a point is a quarter work, the rest is waiting."""


def told(outcome: Outcome) -> Outcome:
    """Say how a point went, as soon as it is known."""
    hits = "; ".join(outcome.hits) or "nothing"
    print(f"{outcome.word:<9}{outcome.point} ({outcome.moment}) hit {hits}, {outcome.seconds:.0f} s", flush=True)
    for line in outcome.lost:
        print(f"         {line}", flush=True)
    return outcome


def main() -> int:
    """The whole campaign; 0 when as many faults hit as were asked for and nothing was lost."""
    parser = argparse.ArgumentParser(description="Faults against a run of five experiments on the demo host.")
    parser.add_argument("--points", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=JOBS_A_CORE * (os.cpu_count() or 1))
    parser.add_argument("--only", type=int, help="one point of the campaign, by its number")
    asked = parser.parse_args()
    numbers = range(asked.points) if asked.only is None else [asked.only]
    with tempfile.TemporaryDirectory(prefix="ddf") as base:
        folder = Path(base)
        reference = undisturbed(folder / "reference")
        count = len(reference.milestones)
        print(f"{len(numbers)} faults, seed {asked.seed}, in a run of {count} milestones", flush=True)

        def point(number: int) -> list[Outcome]:
            return until_hit(
                lambda draw: drawn(number, asked.seed, count - 2, draw),
                lambda point: told(try_point(folder / f"p{point.number}-{point.draw}", point, reference)),
            )

        with ThreadPoolExecutor(asked.jobs) as pool:
            outcomes = [outcome for tries in pool.map(point, numbers) for outcome in tries]
    print()
    for line in table(outcomes):
        print(line)
    return exit_code(outcomes, len(numbers))


if __name__ == "__main__":
    sys.exit(main())
