"""An editor that does what a test says: run as a process of its own on a file, as any editor is.

Each start takes the next step of `steps.json`: `replace` [old, new, …], `write` text, `exit` code.
A step with `waits` says that it is open, and goes on when it is let go.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

DEADLINE_S = 20.0
LOOK_S = 0.01


def main() -> int:
    """Edit the last argument's file; the exit code of the step."""
    here, path = Path(sys.argv[1]), Path(sys.argv[-1])
    steps = json.loads((here / "steps.json").read_text(encoding="utf-8"))
    step, rest = steps[0], steps[1:]
    (here / "steps.json").write_text(json.dumps(rest), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    with (here / "seen.txt").open("a", encoding="utf-8") as seen:
        seen.write(f"{' '.join(sys.argv[2:-1])}\n{text}\n=====\n")
    if step.get("waits"):
        (here / "open").touch()
        deadline = time.monotonic() + DEADLINE_S
        while not (here / "go").exists():
            if time.monotonic() > deadline:
                return 99
            time.sleep(LOOK_S)
    words = step.get("replace", [])
    for old, new in zip(words[::2], words[1::2], strict=True):
        if old not in text:
            return 98
        text = text.replace(old, new)
    path.write_text(step.get("write", text), encoding="utf-8")
    return int(step.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
