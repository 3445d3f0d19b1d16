"""The first thing that runs inside the sandbox: forks, keeps watch in the parent, and is the program in the child.

Its `main` is executed by `python -I -S -c SOURCE SPEC`, so: standard library only. SPEC is a JSON object:
`{"limits": {"RLIMIT_CPU": 10, …}, "uid": 65534 | null, "report": descriptor, "tasks": 64, "memory": bytes,
"homes": [folders], "keep": [folders], "guard": bool}`.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

from ddconsole.adapters.sandbox.keeper import LINUX, Keeper, fork_program
from ddconsole.adapters.sandbox.telling import take_notes

if TYPE_CHECKING:
    from ddconsole.adapters.sandbox.telling import Notes

PR_SET_PDEATHSIG = 1


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
        if LINUX:
            raise


def leave_parent() -> None:
    """A group of its own, which the keeper can end at one stroke; and no life without the keeper."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def be_program(source: bytes, notes: Notes, say: int) -> None:
    """Run it as `__main__`, and whisper what it did not catch."""
    me = os.getpid()
    space = {"__name__": "__main__", "__builtins__": builtins}
    try:
        exec(compile(source, "<answer>", "exec"), space)
    except SystemExit:
        raise
    except BaseException as error:
        if os.getpid() == me:  # a forked copy of it is not the program
            os.write(say, notes.verdict_of(error).encode())
        raise


def main() -> None:
    """Read the program, become its keeper and it."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    source = sys.stdin.buffer.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if spec["uid"] is not None:
        drop_to(spec["uid"])
    pid, pipe = fork_program()
    if pid:
        Keeper(pid, pipe, spec["report"], tasks=spec["tasks"], memory=spec["memory"]).keep()
    os.close(spec["report"])
    if LINUX:
        leave_parent()
    for name, value in spec["limits"].items():
        limit(name, value)
    sys.argv[:] = ["answer"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "ddconsole"]:
        del sys.modules[name]
    be_program(source, take_notes(spec["homes"], spec["keep"], guard=spec["guard"]), pipe)
