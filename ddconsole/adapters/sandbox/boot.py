"""The first thing that runs inside the sandbox: sets its own limits, then becomes the program on standard input.

Executed as `python -I -S -c SOURCE LIMITS`, so: standard library only. LIMITS is a JSON object:
`{"limits": {"RLIMIT_CPU": 10, …}, "uid": 65534 | null}`.
"""

from __future__ import annotations

import json
import os
import resource
import sys


def drop_to(uid: int) -> None:
    """Become an ordinary user, whom the limit on processes binds (it never binds root)."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def limit(name: str, value: int) -> None:
    """Set a limit for good: soft and hard. macOS refuses some, and goes without."""
    kind = getattr(resource, name, None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    kept = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (kept, kept))
    except (OSError, ValueError):
        if sys.platform.startswith("linux"):
            raise


def main() -> None:
    """Read the program, bind ourselves, and run it as `__main__` with an empty standard input."""
    spec = json.loads(sys.argv[1])
    source = sys.stdin.buffer.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if spec["uid"] is not None:
        drop_to(spec["uid"])
    for name, value in spec["limits"].items():
        limit(name, value)
    sys.argv[:] = ["answer"]
    space = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(compile(source, "<answer>", "exec"), space)


if __name__ == "__main__":
    main()
