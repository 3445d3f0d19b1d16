"""ddconsole against the real SGLang on this machine's CPU, through a real sshd. Each step is checked.

    python -m real_engines.sglang_run [--only measure|crash|port] [--keep FOLDER]

The engine has to be set up: `python -m real_engines.sglang_setup`. Prints a table of the steps and the figures of the
run; the exit code is 1 when a step was not as it has to be. Whatever was started is ended by its pid.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from . import sglang_measure, sglang_trouble
from .sglang_setup import Place
from .steps import Steps
from .world import World

PARTS = {
    "measure": sglang_measure.measure,
    "crash": sglang_trouble.crash,
    "port": sglang_trouble.port,
}


def main() -> int:
    """The parts, one after another; none is built upon another."""
    parser = argparse.ArgumentParser(description="ddconsole against the real SGLang 0.5.23 on this machine's CPU.")
    parser.add_argument("--only", choices=list(PARTS), help="one part of the run")
    parser.add_argument("--keep", type=Path, help="keep home, logs and events of the run in this folder")
    asked = parser.parse_args()
    place = Place.from_environment()
    if not place.is_ready():
        print(f"the engine is not set up in {place.folder}: python -m real_engines.sglang_setup", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then, too
    folder = Path(tempfile.mkdtemp(prefix="ddreal"))
    steps, figures = Steps(), {}
    world = World(folder, place.folder)
    try:
        for name in [asked.only] if asked.only else PARTS:
            with steps.part():
                figures |= PARTS[name](world, steps)
            world.end_engines()
    finally:
        world.close()
        if asked.keep:
            shutil.copytree(folder, asked.keep, ignore=shutil.ignore_patterns("client_key", "host_key"))
        shutil.rmtree(folder, ignore_errors=True)
    print()
    for line in steps.table():
        print(line)
    print(json.dumps(figures, indent=1))
    return 0 if steps.all_ok else 1


if __name__ == "__main__":
    sys.exit(main())
