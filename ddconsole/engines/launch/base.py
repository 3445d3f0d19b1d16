"""What all launchers share: a launch is found by its folder on the host, followed, and ended with proof.

On the host, `<state_dir>/runs/<name>/` (mode 700) holds `engine.log`, `launch` (token, port), `pid` (pid, start ticks,
boot id), `gpus` (memory in use before) and, once the engine has ended, `exit`; with systemd also `unit` (kind, unit,
scope) and `invocation`. An engine is handled by what this record says, whichever launcher the profile names today.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.core.ports import Liveness, StopProof
from ddconsole.engines.launch.deaths import death_notes
from ddconsole.engines.launch.gpus import prove_given_back
from ddconsole.engines.launch.logs import follow_log
from ddconsole.engines.launch.manager import MANAGER
from ddconsole.engines.launch.ports import listeners
from ddconsole.engines.launch.record import NAME, parse_launched, run_dir
from ddconsole.engines.launch.scripts import FIND, LIVENESS, MEMBERS, PLAIN, PRELUDE, STOP, TOLD

if TYPE_CHECKING:
    from ddconsole.core.ports import ByteStream, Finding, Host, Launched

KILL_S: Final = 10
"""Seconds after KILL in which processes have to be gone."""


class FoundLauncher:
    """All of a `Launcher` but the launch itself.

    Args:
        state_dir: folder on the host; `~` is the home there.
        grace_s: seconds between TERM and KILL.
    """

    def __init__(self, state_dir: str = "~/.ddconsole", grace_s: float = 30.0) -> None:
        self._state_dir = state_dir
        self._grace_s = grace_s

    async def review(self, host: Host, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Nothing stands against a plain launch that the engine's own preflight does not know."""
        return findings

    async def restore(self, host: Host) -> tuple[str, ...]:
        """Plain launches displace nothing."""
        return ()

    async def find(self, host: Host, name: str) -> Launched | None:
        """The launch of that name by its folder on the host, dead or alive; None when none got as far as a process."""
        if not NAME.fullmatch(name):
            return None
        done = await host.run(["sh", "-c", PLAIN + PRELUDE + TOLD + FIND, "sh", self._state_dir, name])
        return parse_launched(done.stdout)

    async def liveness(self, host: Host, launched: Launched) -> Liveness:
        """Whether the process we started lives, by pid, start ticks and boot; a zombie does not."""
        identity = (str(launched.pid), str(launched.start_ticks), launched.boot_id)
        place = (run_dir(launched), launched.scope or "", launched.unit or "")
        script = PLAIN + PRELUDE + "run=$4 scope=$5 unit=$6\n" + MANAGER + LIVENESS
        done = await host.run(["sh", "-c", script, "sh", *identity, *place])
        mark, _, status = done.stdout.strip().partition("\t")
        if mark not in ("alive", "dead"):
            raise HostError("the host did not say whether the engine lives", evidence=(done.stdout, done.stderr))
        if mark == "alive":
            return Liveness(True)
        ended = int(status) if re.fullmatch(r"\d{1,3}", status) else None
        return Liveness(False, ended, await death_notes(host, launched))

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
        return await follow_log(host, launched, offset)

    async def keep(self, host: Host, launched: Launched) -> None:
        """Leave a file `kept` in the run's folder."""
        await host.run(["touch", f"{run_dir(launched)}/kept"])

    async def stop(self, host: Host, launched: Launched) -> StopProof:
        """TERM, wait, KILL, then prove that neither process nor port of ours is left, and the cards' memory is back.

        Strangers are never touched, and one that holds the port is no remainder of this launch.
        """
        began = time.monotonic()
        forced, remains = await self._end(host, launched)
        ours, _ = await self.owns_port(host, launched)
        proved = [] if remains else ["its processes are gone"]
        remains += [f"port {launched.port} is still served by this launch"] if ours else []
        proved += [] if ours else [f"port {launched.port} is not served by it"]
        held, cards = await prove_given_back(host, run_dir(launched))
        remains += held
        proved += [f"GPU memory is as before the launch on {cards} cards"] if cards and not held else []
        return StopProof(tuple(remains), forced, time.monotonic() - began, tuple(proved))

    async def _end(self, host: Host, launched: Launched) -> tuple[bool, list[str]]:
        """Whether KILL was needed, and the processes that are left, in words."""
        identity = (str(launched.pid), str(launched.start_ticks), launched.boot_id, launched.token)
        place = (run_dir(launched), launched.scope or "", launched.unit or "")
        script = PLAIN + PRELUDE + "run=$6 scope=$7 unit=$8\n" + MANAGER + MEMBERS + STOP
        grace = max(1, round(self._grace_s))
        done = await host.run(
            ["sh", "-c", script, "sh", *identity, str(grace), *place],
            timeout=2 * grace + KILL_S + 30,
        )
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        forced = [row[1] for row in rows if row[0] == "forced" and len(row) == 2]
        if not forced:
            raise HostError("the stop did not come to its end", evidence=(done.stdout[-500:], done.stderr[-500:]))
        left = [f"process {row[1]} {row[2].strip()}".strip() for row in rows if row[0] == "left" and len(row) == 3]
        return forced[0] == "yes", left
