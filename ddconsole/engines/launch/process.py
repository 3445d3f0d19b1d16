"""An engine as a process of its own session: it outlives us, is found again, and is ended with proof.

On the host, `<state_dir>/runs/<name>/` (mode 700) holds `engine.log`, `launch` (token, port), `pid` (pid, start ticks,
boot id) and, once the engine has ended, `exit`. Secrets pass through a file of mode 600 that the engine reads and
removes before it starts. A small watcher outside the engine's session waits for it and writes the exit status.

Hosts without /proc (macOS) are served by small branches with ps and lsof, which are untested.
"""

from __future__ import annotations

import re
import secrets
import shlex
import time
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.core.ports import Launched, Liveness, StopProof
from ddconsole.engines.launch.ports import listeners
from ddconsole.engines.launch.scripts import (
    DETACH,
    ENGINE,
    FIND,
    LAUNCH,
    LIVENESS,
    MEMBERS,
    PLAIN,
    PRELUDE,
    STOP,
    TOLD,
    WATCH,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.ports import ByteStream, Host, LaunchPlan

LAUNCH_TIMEOUT_S: Final = 30.0
KILL_S: Final = 10
"""Seconds after KILL in which processes have to be gone."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ProcessLauncher:
    """A `Launcher` that needs nothing of the host but a shell.

    Args:
        state_dir: folder on the host; `~` is the home there.
        grace_s: seconds between TERM and KILL.
    """

    def __init__(self, state_dir: str = "~/.ddconsole", grace_s: float = 30.0) -> None:
        self._state_dir = state_dir
        self._grace_s = grace_s

    async def launch(self, host: Host, plan: LaunchPlan, name: str) -> Launched:
        """Start `plan` in a session of its own, its output in `<state_dir>/runs/<name>/engine.log`.

        Raises:
            HostError: it could not be started.
        """
        if not _NAME.fullmatch(name):
            raise HostError(f"{name!r} cannot name a run on the host", advice="letters, digits, dot, dash, underscore")
        token = secrets.token_hex(16)
        words = [*(f"{_checked(key)}={value}" for key, value in plan.env.items()), *plan.argv]
        watch, engine = PRELUDE + DETACH + WATCH, PRELUDE + ENGINE
        place = (self._state_dir, name, token, str(plan.port))
        done = await host.run(
            ["sh", "-c", PRELUDE + DETACH + TOLD + LAUNCH, "sh", *place, watch, engine, *words],
            stdin=secret_lines(plan.secret_env),
            timeout=LAUNCH_TIMEOUT_S,
        )
        launched = _launched(done.stdout)
        if launched is None:
            evidence = tuple(line for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip())[-6:]
            raise HostError(
                "the engine could not be started", evidence=evidence, advice="is the state folder writable?"
            )
        return launched

    async def find(self, host: Host, name: str) -> Launched | None:
        """The launch of that name by its folder on the host, dead or alive; None when none got as far as a process."""
        if not _NAME.fullmatch(name):
            return None
        done = await host.run(["sh", "-c", PLAIN + PRELUDE + TOLD + FIND, "sh", self._state_dir, name])
        return _launched(done.stdout)

    async def liveness(self, host: Host, launched: Launched) -> Liveness:
        """Whether the process we started lives, by pid, start ticks and boot; a zombie does not."""
        identity = (str(launched.pid), str(launched.start_ticks), launched.boot_id)
        done = await host.run(["sh", "-c", PLAIN + PRELUDE + LIVENESS, "sh", *identity, _run_dir(launched)])
        mark, _, status = done.stdout.strip().partition("\t")
        if mark not in ("alive", "dead"):
            raise HostError("the host did not say whether the engine lives", evidence=(done.stdout, done.stderr))
        return Liveness(mark == "alive", int(status) if re.fullmatch(r"\d{1,3}", status) else None)

    async def owns_port(self, host: Host, launched: Launched) -> tuple[bool, str]:
        """Whether a process of this launch listens on its port, and who does."""
        found = await listeners(host, launched.port, launched.token)
        if not found:
            return False, f"nobody listens on port {launched.port}"
        ours = [one for one in found if one.carries_token or one.session == launched.pid]
        if len(ours) < len(found):
            others = ", ".join(one.words() for one in found if one not in ours)
            return False, f"port {launched.port} is held by {others}"
        return True, f"port {launched.port} is held by {ours[0].words()}"

    async def follow(self, host: Host, launched: Launched, offset: int) -> ByteStream:
        """The log's bytes from `offset` on, as they are written."""
        return await host.stream(["tail", "-c", f"+{offset + 1}", "-f", launched.log_path])

    async def keep(self, host: Host, launched: Launched) -> None:
        """Leave a file `kept` in the run's folder."""
        await host.run(["touch", f"{_run_dir(launched)}/kept"])

    async def stop(self, host: Host, launched: Launched) -> StopProof:
        """TERM, wait, KILL, then prove that neither process nor port of ours is left.

        Strangers are never touched, and one that holds the port is no remainder of this launch.
        """
        began = time.monotonic()
        identity = (str(launched.pid), str(launched.start_ticks), launched.boot_id, launched.token)
        done = await host.run(
            ["sh", "-c", PLAIN + PRELUDE + MEMBERS + STOP, "sh", *identity, str(max(1, round(self._grace_s)))],
            timeout=self._grace_s + KILL_S + 30,
        )
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        forced = [row[1] for row in rows if row[0] == "forced" and len(row) == 2]
        if not forced:
            raise HostError("the stop did not come to its end", evidence=(done.stdout[-500:], done.stderr[-500:]))
        remains = [f"process {row[1]} {row[2].strip()}".strip() for row in rows if row[0] == "left" and len(row) == 3]
        ours, _ = await self.owns_port(host, launched)
        remains += [f"port {launched.port} is still served by this launch"] if ours else []
        return StopProof(tuple(remains), forced[0] == "yes", time.monotonic() - began)


def _checked(name: str) -> str:
    """A variable's name that cannot be anything else to a shell or to env."""
    if not _VARIABLE.fullmatch(name):
        raise HostError(f"{name!r} is no name of an environment variable", advice="mend engine.env in the profile")
    return name


def secret_lines(values: Mapping[str, str]) -> bytes:
    """Secrets as a file that a shell reads with `.`; each value is quoted whole."""
    return "".join(f"export {_checked(name)}={shlex.quote(value)}\n" for name, value in values.items()).encode()


def _run_dir(launched: Launched) -> str:
    return launched.log_path.rpartition("/")[0]


def _launched(stdout: str) -> Launched | None:
    """The record that a script printed."""
    for line in stdout.splitlines():
        mark, *cells = line.split("\t")
        if mark == "launched" and len(cells) == 7:
            pid, ticks, boot_id, token, port, state_dir, run = cells
            return Launched(
                launcher="process",
                pid=int(pid),
                pgid=int(pid),
                start_ticks=int(ticks or 0),
                boot_id=boot_id,
                token=token,
                log_path=f"{run}/engine.log",
                state_dir=state_dir,
                port=int(port),
            )
    return None
