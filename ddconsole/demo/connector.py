"""Finds the demo host that runs, or starts one that outlives this process."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import ddconsole
from ddconsole.core.errors import UnreachableError
from ddconsole.demo.host_state import DemoHostInfo, StateDir

if TYPE_CHECKING:
    from collections.abc import Mapping

START_S = 30.0
"""A host that does not listen after so long is given up; it takes about one second."""

LINGER_S = 30.0
"""A host ends so long after its last connection, unless an engine was kept on purpose."""

_POLL_S = 0.05


def ensure_demo_host(
    state_dir: Path, env: Mapping[str, str] | None = None, *, linger_s: float = LINGER_S
) -> DemoHostInfo:
    """The demo host of `state_dir`, started if there is none. Blocks for a second or two; call it in a thread.

    `env` is the environment of a host that has to be started; None is this process's own.

    Raises:
        UnreachableError: it could not be started; the evidence is the end of its log.
    """
    state = StateDir(Path(state_dir).absolute())
    with state.starting():
        return _running(state) or _start(state, dict(os.environ if env is None else env), linger_s)


def _running(state: StateDir) -> DemoHostInfo | None:
    """The host that serves the folder. One that is just starting or stopping is waited for."""
    deadline = time.monotonic() + START_S
    while state.is_served():
        info = state.read_info()
        if info is not None:
            return info
        if time.monotonic() > deadline:
            raise _failed(state, "it neither listens nor ends")
        time.sleep(_POLL_S)
    return None


def _start(state: StateDir, env: dict[str, str], linger_s: float) -> DemoHostInfo:
    source = str(Path(ddconsole.__file__).parents[1])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (source, env.get("PYTHONPATH"))))
    reader, writer = os.pipe()
    words = ["--detach", "--state-dir", str(state.path), "--linger", str(linger_s), "--ready-fd", str(writer)]
    try:
        with state.log.open("ab") as log:
            started = subprocess.run(
                [sys.executable, "-m", "ddconsole.demo.host", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=state.path,
                env=env,
                pass_fds=(writer,),
                start_new_session=True,
                check=False,
            )
        os.close(writer)
        ready = started.returncode == 0 and _wait_ready(reader)
    finally:
        os.close(reader)
    info = state.read_info() if ready else None
    if info is None:
        raise _failed(state, f"exit status {started.returncode}" if started.returncode else "it does not listen")
    return info


def _wait_ready(reader: int) -> bool:
    """The host writes one byte when it listens; the end of the pipe is the end of the process."""
    readable, _, _ = select.select([reader], [], [], START_S)
    return bool(readable) and os.read(reader, 1) != b""


def _failed(state: StateDir, how: str) -> UnreachableError:
    try:
        said = state.log.read_text("utf-8", "replace").splitlines()[-5:]
    except OSError:
        said = []
    return UnreachableError(
        "the demo host could not be started",
        evidence=(how, *said),
        advice=f"Its log is {state.log}. `ddconsole demo-host` runs it in the foreground.",
    )
